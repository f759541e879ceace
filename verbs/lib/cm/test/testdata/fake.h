/*
 * fake.h - a urdmad inside the test program: it answers the calls of internal.h that the librdmacm part
 * makes, and sends events on request.
 */
#ifndef URDMA_CM_FAKE_H
#define URDMA_CM_FAKE_H

#include "../../cm.h"

#define FAKE_IDS 4096u

struct fake_id {
	uint32_t channel; /* 0: destroyed */
	struct urdma_abi_addr local;
	struct urdma_abi_cm_param param; /* from the last connect, accept or reject */
};

extern struct fake_id fake_ids[FAKE_IDS];

/* Makes requests of a type fail with an errno value; 0: no longer. */
void fake_refuse(enum urdma_abi_type type, int error);

/* Sets whether urdma_client_get finds a urdmad. */
void fake_set_running(bool running);

/* Sets how many devices urdmad has; only device 0 can be shown. */
void fake_set_devices(uint32_t n);

/* Sets the transport of device 0. */
void fake_set_transport(enum ibv_transport_type transport);

/* Returns how many requests of a type were made since the start. */
unsigned fake_count(enum urdma_abi_type type);

/* Returns the handle of a new child id for a listener. */
uint32_t fake_new_child(uint32_t listener);

/* Sends an event to the id's present channel (fake_send_on: to this channel). */
void fake_send(const struct urdma_abi_cm_event *event);
void fake_send_on(uint32_t channel, const struct urdma_abi_cm_event *event);

/* Closes urdmad's end of every channel, and refuses all later requests. */
void fake_die(void);

#endif
