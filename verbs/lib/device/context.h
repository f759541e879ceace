/* context.h - devices and what a program opens of them. */
#ifndef URDMA_CONTEXT_H
#define URDMA_CONTEXT_H

#include "../datapath/objects.h"
#include "../session/kept.h"
#include "../session/readers.h"
#include "device.h"

/*
 * Provider libraries (libmlx5 in perftest) look behind any ibv_device to see
 * whether it is theirs: the bytes behind ours are there, and zero.
 */
#define URDMA_BEHIND_DEVICE 1024u

struct urdma_device {
	struct ibv_device device;
	uint8_t behind[URDMA_BEHIND_DEVICE];
	struct urdma_client *client;
	uint32_t number; /* its first port's */
};

/* Bytes of device memory of one context: max_dm_size. About what NICs have. */
#define URDMA_MAX_DM ((size_t)1 << 20)

struct urdma_context {
	struct verbs_context verbs; /* the ibv_context is its last field */
	struct urdma_client *client;
	const struct urdma_abi_device *info; /* of the first port; those of the others follow */
	uint32_t device;
	uint32_t handle;
	bool fatal_reported; /* IBV_EVENT_DEVICE_FATAL was delivered */
	uint64_t device_memory; /* bytes allocated; changed atomically */
	struct urdma_readers readers; /* in ibv_get_async_event */
	struct urdma_kept events;   /* context.async_fd */
	struct urdma_kept commands; /* context.cmd_fd */
};

/* A connection's devices (device.c). */
struct urdma_devices {
	struct urdma_device **list;  /* by the first port's number; NULL where one cannot be shown */
	struct ibv_context **shared; /* likewise; NULL until rdma_cm asks */
};

/* Made at the first call; NULL and errno. They live as long as the connection. */
struct urdma_devices *urdma_devices_of(struct urdma_client *client);

static inline struct urdma_device *urdma_device_of(const struct ibv_device *device)
{
	return (struct urdma_device *)device;
}

static inline struct urdma_context *urdma_context_of(const struct ibv_context *context)
{
	return (struct urdma_context *)((const uint8_t *)context - offsetof(struct urdma_context, verbs.context));
}

/* query.c: what verbs.h reaches through a context's tables. */
int urdma_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size);
int urdma_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t size);
int urdma_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);

#endif /* URDMA_CONTEXT_H */
