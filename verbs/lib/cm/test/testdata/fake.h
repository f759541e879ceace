/*
 * fake.h - a urdmad inside the test program: it answers the calls of
 * internal.h that the librdmacm half makes, and sends events when told to.
 */
#ifndef URDMA_CM_FAKE_H
#define URDMA_CM_FAKE_H

#include "../../cm.h"

#define FAKE_IDS 4096u

struct fake_id {
	uint32_t channel; /* 0: destroyed */
	struct urdma_abi_addr local;
	struct urdma_abi_cm_param param; /* of the last connect, accept, reject */
};

extern struct fake_id fake_ids[FAKE_IDS];

/* Makes requests of a type fail with an errno value; 0: none. */
void fake_refuse(enum urdma_abi_type type, int error);

/* Whether urdma_client_get finds a urdmad. */
void fake_set_running(bool running);

/* How many devices urdmad has; those after device 0 can't be shown. */
void fake_set_devices(uint32_t n);

/* Which transport device 0 shows. */
void fake_set_transport(enum ibv_transport_type transport);

/* How many requests of a type were made since the start. */
unsigned fake_count(enum urdma_abi_type type);

/* The id and child a test wants named, by handle. */
uint32_t fake_new_child(uint32_t listener);

/* Sends an event to the channel that the id is on now (or was on, from). */
void fake_send(const struct urdma_abi_cm_event *event);
void fake_send_on(uint32_t channel, const struct urdma_abi_cm_event *event);

/* Closes urdmad's end of every channel, and refuses what is asked from now. */
void fake_die(void);

#endif
