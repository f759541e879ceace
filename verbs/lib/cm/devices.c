/*
 * devices.c - devices as ids see them: the contexts that rdma_get_devices lists, the protection domain
 * that ids share, and the limits for RDMA Reads.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "cm.h"

/* The domains shared by the ids of a context that have none of their own: created at first use and kept
 * until the process exits, like the context. */
struct shared {
	struct shared *next;
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_xrcd *xrcd;
};

static pthread_mutex_t shared_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct shared *all;

void cm_devices_forked(void)
{
	pthread_mutex_init(&shared_mutex, NULL);
	all = NULL;
}

static struct shared *find_or_add(struct ibv_context *verbs)
{
	struct shared *s = all;

	while (s && s->verbs != verbs)
		s = s->next;
	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (s) {
		*s = (struct shared){ .next = all, .verbs = verbs };
		all = s;
	}
	return s;
}

struct ibv_pd *cm_shared_pd(struct ibv_context *verbs)
{
	struct shared *s;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&shared_mutex);
	s = find_or_add(verbs);
	if (s && !s->pd)
		s->pd = ibv_alloc_pd(verbs);
	pthread_mutex_unlock(&shared_mutex);
	pthread_setcancelstate(cancel, NULL);
	return s ? s->pd : NULL;
}

struct ibv_xrcd *cm_shared_xrcd(struct ibv_context *verbs)
{
	struct ibv_xrcd_init_attr attr = { .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1,
		.oflags = O_CREAT };
	struct shared *s;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&shared_mutex);
	s = find_or_add(verbs);
	if (s && !s->xrcd)
		s->xrcd = ibv_open_xrcd(verbs, &attr);
	pthread_mutex_unlock(&shared_mutex);
	pthread_setcancelstate(cancel, NULL);
	return s ? s->xrcd : NULL;
}

uint8_t cm_device_depth(const struct ibv_context *verbs)
{
	uint32_t limit = urdma_context_info(verbs)->max_rd_atom;

	return limit < RDMA_MAX_RESP_RES ? limit : RDMA_MAX_RESP_RES - 1;
}

/* Fills the list with the contexts that can be opened. Returns their number, or -1 with errno set. Leaves
 * out devices that can't be shown (ENODEV). */
static int open_devices(struct urdma_client *client, struct ibv_context **list)
{
	int opened = 0;

	for (uint32_t i = 0; i < urdma_client_devices(client); i++) {
		if (urdma_device_info(client, i)->port_num > 1) /* a further port of a device that is already in the list */
			continue;
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
	if (!list)
		return urdma_null(ENOMEM);
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
