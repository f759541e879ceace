/* context.h - devices, and the contexts that programs open on them. */
#ifndef URDMA_CONTEXT_H
#define URDMA_CONTEXT_H

#include "../datapath/objects.h"
#include "../session/kept.h"
#include "../session/readers.h"
#include "device.h"

/*
 * Provider libraries (libmlx5 in perftest) read memory behind any ibv_device to check whether it is
 * theirs. So our structures are followed by zeroed bytes.
 */
#define URDMA_BEHIND_DEVICE 1024u

struct urdma_device {
	struct ibv_device device;
	uint8_t behind[URDMA_BEHIND_DEVICE];
	struct urdma_client *client;
	uint32_t number; /* number of its first port */
};

/* Bytes of device memory of one context (max_dm_size), about as much as NICs have. */
#define URDMA_MAX_DM ((size_t)1 << 20)

struct urdma_context {
	struct verbs_context verbs; /* the ibv_context is its last field */
	struct urdma_client *client;
	const struct urdma_abi_device *info; /* of the first port; the other ports follow */
	uint32_t device;
	uint32_t handle;
	bool fatal_reported; /* IBV_EVENT_DEVICE_FATAL was delivered */
	bool on_demand;      /* memory can be registered for on-demand paging */
	uint64_t device_memory; /* bytes of device memory allocated; atomic */
	struct urdma_readers readers; /* threads in ibv_get_async_event */
	struct urdma_kept events;   /* context.async_fd */
	struct urdma_kept commands; /* context.cmd_fd */
};

/* The devices of a session (device.c). */
struct urdma_devices {
	struct urdma_device **list;  /* indexed by the number of the first port; NULL if the device can't be shown */
	struct ibv_context **shared; /* contexts that rdma_cm opened, with the same index, or NULL */
};

/* Makes the list at the first call; returns NULL with errno set on failure. The list lives as long as the
 * session. */
struct urdma_devices *urdma_devices_of(struct urdma_client *client);

static inline struct urdma_device *urdma_device_of(const struct ibv_device *device)
{
	return (struct urdma_device *)device;
}

static inline struct urdma_context *urdma_context_of(const struct ibv_context *context)
{
	return (struct urdma_context *)((const uint8_t *)context - offsetof(struct urdma_context, verbs.context));
}

/* query.c: functions in a context's tables. */
int urdma_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size);
int urdma_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t size);
int urdma_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);

#endif /* URDMA_CONTEXT_H */
