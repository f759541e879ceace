/*
 * rings.h - mappings of queues' memory, which many queues may share.
 */
#ifndef URDMA_RINGS_H
#define URDMA_RINGS_H

#include "session.h"

/* Held from before a queue is asked for until it is mapped, or was given up: so a
 * file that urdmad's answer names is still there. Outside of it no other lock of
 * the library is taken but a completion queue's. */
void urdma_rings_lock(struct urdma_client *client);
void urdma_rings_unlock(struct urdma_client *client);

/* With the lock: urdma_call for a request that a queue's memory answers. *fd is its
 * descriptor, close-on-exec, or -1 where the answer had none. */
int urdma_rings_call(struct urdma_client *client, enum urdma_abi_type type, void *request, size_t request_length,
		     void *response, size_t response_length, int *fd);

/* With the lock: where the file of a number lies, of which one queue more makes use,
 * mapped if need be from fd, which stays the caller's; -1: there is none. Number 0 is
 * a file for one queue. Returns 0 or an errno value. */
int urdma_rings_map(struct urdma_client *client, uint32_t number, size_t bytes, int fd, void **base);

/* A queue less makes use of it. Without the lock. */
void urdma_rings_unmap(struct urdma_client *client, uint32_t number, void *base, size_t bytes);

/* Whether a queue, if it has slots, lies within so many bytes and holds wrs work requests.
 * head: bytes of the queue's head; slot: of the largest work request. */
static inline bool urdma_queue_fits(const struct urdma_abi_queue_layout *q, size_t bytes, uint32_t wrs, size_t head, size_t slot)
{
	if (!q->entries)
		return !wrs;
	return !(q->entries & (q->entries - 1)) && wrs <= q->entries && slot <= q->stride &&
	       q->head_offset + (uint64_t)head <= bytes &&
	       q->slots_offset + (uint64_t)q->entries * q->stride <= bytes;
}

#endif /* URDMA_RINGS_H */
