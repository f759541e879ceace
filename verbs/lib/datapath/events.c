/* events.c - see events.h. */
#include "events.h"

void urdma_events_deliver(struct urdma_events *e)
{
	pthread_mutex_lock(e->mutex);
	e->delivered++;
	pthread_mutex_unlock(e->mutex);
}

void urdma_events_acknowledge(struct urdma_events *e, uint32_t n)
{
	pthread_mutex_lock(e->mutex);
	*e->acknowledged += n;
	pthread_cond_signal(e->cond);
	pthread_mutex_unlock(e->mutex);
}

void urdma_events_wait(struct urdma_events *e)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(e->mutex);
	while (e->delivered != *e->acknowledged)
		pthread_cond_wait(e->cond, e->mutex);
	pthread_mutex_unlock(e->mutex);
	pthread_setcancelstate(cancel, NULL);
}

void urdma_events_forked(struct urdma_events *e)
{
	e->delivered = *e->acknowledged;
	pthread_mutex_init(e->mutex, NULL);
	pthread_cond_init(e->cond, NULL);
}
