/*
 * events.h - the events of an object that threads were given. The object is destroyed only
 * when all were acknowledged, which is counted in its structure of verbs.h, under the mutex
 * there.
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
/* In a child: another thread of the parent may have had the mutex. */
void urdma_events_forked(struct urdma_events *e);

#endif /* URDMA_EVENTS_H */
