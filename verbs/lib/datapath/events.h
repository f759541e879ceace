/*
 * events.h - counts events that were delivered for an object. The object is destroyed only when all of
 * them were acknowledged. The count of acknowledgements, and the mutex for both counts, are in the
 * object's structure of verbs.h.
 */
#ifndef URDMA_EVENTS_H
#define URDMA_EVENTS_H

#include <pthread.h>
#include <stdint.h>

struct urdma_client;

struct urdma_events {
	pthread_mutex_t *mutex;
	pthread_cond_t *cond;
	uint32_t *acknowledged;
	uint32_t delivered;
};

void urdma_events_deliver(struct urdma_events *e);
void urdma_events_acknowledge(struct urdma_events *e, uint32_t n);
void urdma_events_wait(const struct urdma_client *client, struct urdma_events *e);
/* Called in a child: initialises the mutex, which another thread of the parent may have held. */
void urdma_events_forked(struct urdma_events *e);

#endif /* URDMA_EVENTS_H */
