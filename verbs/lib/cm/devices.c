/*
 * devices.c - devices as ids see them: the contexts rdma_get_devices lists,
 * the protection domain ids share, and the limits of RDMA Reads.
 */
#include <errno.h>
#include <stdlib.h>

#include "cm.h"

/* One context's default domain; kept, as the context is, until the exit. */
struct default_pd {
	struct default_pd *next;
	struct ibv_pd *pd;
};

static pthread_mutex_t domains_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct default_pd *domains;

void cm_domains_forked(void)
{
	pthread_mutex_init(&domains_mutex, NULL);
	domains = NULL;
}

static struct ibv_pd *find_or_allocate(struct ibv_context *verbs)
{
	struct default_pd *entry;

	for (entry = domains; entry; entry = entry->next)
		if (entry->pd->context == verbs)
			return entry->pd;
	entry = malloc(sizeof(*entry));
	if (!entry)
		return NULL;
	entry->pd = ibv_alloc_pd(verbs);
	if (!entry->pd) {
		free(entry);
		return NULL;
	}
	entry->next = domains;
	domains = entry;
	return entry->pd;
}

struct ibv_pd *cm_default_pd(struct ibv_context *verbs)
{
	struct ibv_pd *pd;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&domains_mutex);
	pd = find_or_allocate(verbs);
	pthread_mutex_unlock(&domains_mutex);
	pthread_setcancelstate(cancel, NULL);
	return pd;
}

uint8_t cm_device_depth(const struct ibv_context *verbs)
{
	uint32_t limit = urdma_context_info(verbs)->max_rd_atom;

	return limit < RDMA_MAX_RESP_RES ? limit : RDMA_MAX_RESP_RES - 1;
}

/* Fills the list with the contexts that can be had: how many, or -1 and errno. A
 * device that can't be shown (ENODEV) is left out. */
static int open_devices(struct urdma_client *client, struct ibv_context **list)
{
	uint32_t count = urdma_client_devices(client);
	int opened = 0;

	for (uint32_t i = 0; i < count; i++) {
		list[opened] = urdma_device_context(client, i);
		if (list[opened])
			opened++;
		else if (errno != ENODEV)
			return -1;
	}
	return opened;
}

URDMA_EXPORT struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct urdma_client *client = urdma_client_get();
	struct ibv_context **list;
	int opened;

	if (num_devices)
		*num_devices = 0;
	if (!client)
		return NULL;
	list = calloc(urdma_client_devices(client) + 1, sizeof(*list));
	if (!list) {
		cm_fail(ENOMEM);
		return NULL;
	}
	opened = open_devices(client, list);
	if (opened < 0) {
		free(list);
		return NULL;
	}
	if (num_devices)
		*num_devices = opened;
	return list;
}

URDMA_EXPORT void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
