/* rings.h - mappings of queues' memory, which several queues may share. */
#ifndef URDMA_RINGS_H
#define URDMA_RINGS_H

#include "session.h"

/* Held from before a queue is requested until it is mapped or given up, so that the file named in urdmad's
 * response stays mapped. A thread that takes it may hold a completion queue's lock, but no other lock of
 * the library. */
void urdma_rings_lock(struct urdma_client *client);
void urdma_rings_unlock(struct urdma_client *client);

/* With the lock held: urdma_call for a request whose response contains a queue's memory. *fd is its
 * descriptor, close-on-exec, or -1 if there is none. */
int urdma_rings_call(struct urdma_client *client, enum urdma_abi_type type, void *request, size_t request_length,
		     void *response, size_t response_length, int *fd);

/* With the lock held: returns the address of the file with this number, which one more queue uses; maps it
 * from fd if necessary. fd stays the caller's; -1: there is none. Number 0: a file for one queue only.
 * Returns 0 or an errno value. */
int urdma_rings_map(struct urdma_client *client, uint32_t number, size_t bytes, int fd, void **base);

/* One queue less uses the file. Called without the lock. */
void urdma_rings_unmap(struct urdma_client *client, uint32_t number, void *base, size_t bytes);

/* Maps bytes of a file that urdmad sent; a shorter file would be a SIGBUS later. Returns 0 or an errno value. */
int urdma_map_shared(int fd, size_t bytes, void **base);

/* Returns whether a queue, if it has slots, fits into so many bytes and has room for wrs work requests.
 * head: size of the queue's head; slot: size of the largest work request. */
static inline bool urdma_queue_fits(const struct urdma_abi_queue_layout *q, size_t bytes, uint32_t wrs, size_t head,
	size_t slot)
{
	if (!q->entries)
		return !wrs;
	return !(q->entries & (q->entries - 1)) && wrs <= q->entries && slot <= q->stride &&
	       !((q->head_offset | q->slots_offset | q->stride) % sizeof(uint64_t)) &&
	       q->head_offset + (uint64_t)head <= bytes &&
	       q->slots_offset + (uint64_t)q->entries * q->stride <= bytes;
}

#endif /* URDMA_RINGS_H */
