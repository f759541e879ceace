/* events.c - see events.h. */
#include <errno.h>
#include <time.h>

#include "../session/client.h"
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

/* Returns whether the wait timed out. */
static bool wait_one_second(struct urdma_events *e)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec++;
	return pthread_cond_clockwait(e->cond, e->mutex, CLOCK_MONOTONIC, &until) == ETIMEDOUT;
}

static void warn_unacknowledged(struct urdma_events *e)
{
	uint32_t n = e->delivered - *e->acknowledged;

	pthread_mutex_unlock(e->mutex);
	urdma_warn(NULL, 0, URDMA_ABI_PITFALL_UNACKNOWLEDGED, "%u events are not acknowledged, after a second of waiting", n);
	pthread_mutex_lock(e->mutex);
}

void urdma_events_wait(const struct urdma_client *client, struct urdma_events *e)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(e->mutex);
	/* Events counted in the parent are never acknowledged in a child. */
	while (e->delivered != *e->acknowledged && urdma_client_state(client) != URDMA_CLIENT_FORKED)
		if (!urdma_warn_wanted)
			pthread_cond_wait(e->cond, e->mutex);
		else if (wait_one_second(e))
			warn_unacknowledged(e);
	pthread_mutex_unlock(e->mutex);
	pthread_setcancelstate(cancel, NULL);
}

void urdma_events_forked(struct urdma_events *e)
{
	pthread_mutex_init(e->mutex, NULL);
	pthread_cond_init(e->cond, NULL);
}
