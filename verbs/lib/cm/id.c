/*
 * id.c - communication identifiers: creation, the table of handles, binding to a device, and destruction
 * after every event was acknowledged.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "../session/client.h"
#include "cm.h"

#define BUCKETS 4096u /* handles are consecutive numbers, so they spread evenly */

static pthread_mutex_t cm_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t acknowledged = PTHREAD_COND_INITIALIZER;
static struct cm_id *table[BUCKETS];

/* cm_lock is never held across a request, so a fork that takes it does not wait for urdmad. */
static void before_fork(void)
{
	pthread_mutex_lock(&cm_mutex);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&cm_mutex);
}

static void after_fork_child(void)
{
	pthread_mutex_init(&cm_mutex, NULL);
	pthread_cond_init(&acknowledged, NULL); /* the threads that waited on it do not exist in the child */
	cm_devices_forked();
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

void cm_lock(int *cancel_state)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel_state);
	pthread_mutex_lock(&cm_mutex);
}

void cm_unlock(int cancel_state)
{
	pthread_mutex_unlock(&cm_mutex);
	pthread_setcancelstate(cancel_state, NULL);
}

struct cm_id *cm_id_of(struct rdma_cm_id *id)
{
	return (struct cm_id *)((char *)id - offsetof(struct cm_id, public));
}

struct cm_id *cm_id_find(const struct urdma_client *client, uint32_t handle)
{
	struct cm_id *id = table[handle % BUCKETS];

	while (id && (id->handle != handle || id->client != client))
		id = id->next;
	return id;
}

void cm_id_each(void (*visit)(struct cm_id *id, void *argument), void *argument)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct cm_id *id = table[i]; id; id = id->next)
			visit(id, argument);
}

static void enter(struct cm_id *id)
{
	struct cm_id **bucket = &table[id->handle % BUCKETS];

	id->next = *bucket;
	*bucket = id;
}

static void remove_entry(struct cm_id *id)
{
	struct cm_id **link = &table[id->handle % BUCKETS];

	while (*link && *link != id)
		link = &(*link)->next;
	if (*link)
		*link = id->next;
}

struct cm_id *cm_id_new(struct rdma_event_channel *channel, void *context,
			enum rdma_port_space ps, enum ibv_qp_type qp_type,
			uint32_t handle)
{
	struct cm_id *id = calloc(1, sizeof(*id));
	int cancel;

	if (!id)
		return NULL;
	id->public.channel = channel;
	id->client = cm_channel_of(channel)->client;
	id->public.context = context;
	id->public.ps = ps;
	id->public.qp_type = qp_type;
	id->handle = handle;
	id->device = URDMA_ABI_NO_DEVICE;
	id->ack_timeout = 18;
	STAILQ_INIT(&id->arrived);
	cm_lock(&cancel);
	enter(id);
	cm_unlock(cancel);
	return id;
}

void cm_id_free(struct cm_id *id)
{
	int cancel;

	cm_lock(&cancel);
	remove_entry(id);
	cm_unlock(cancel);
	free(id->passive_attr);
	cm_groups_free(id);
	free(id->connect_data);
	free(id);
}

int cm_id_call(struct cm_id *id, enum urdma_abi_type type, uint32_t value)
{
	struct urdma_abi_cm_value request = { .id = id->handle, .value = value };

	return URDMA_TELL(id->client, type, &request);
}

/* Asks urdmad for an id whose events go to this channel. */
static int create_on(struct rdma_event_channel *public, struct cm_id **id,
		     void *context, enum rdma_port_space ps,
		     enum ibv_qp_type qp_type)
{
	struct cm_channel *channel = cm_channel_of(public);
	struct urdma_abi_cm_create_id request = {
		.channel = channel->handle,
		.ps = ps,
	};
	struct urdma_abi_handle response;
	int error = URDMA_ASK(channel->client, URDMA_ABI_CM_CREATE_ID, &request, &response);

	if (error)
		return error;
	*id = cm_id_new(public, context, ps, qp_type, response.handle);
	if (*id)
		return 0;
	urdma_call_handle(channel->client, URDMA_ABI_CM_DESTROY_ID,
			  response.handle);
	return ENOMEM;
}

int cm_id_create(struct rdma_event_channel *channel, struct rdma_cm_id **public,
		 void *context, enum rdma_port_space ps,
		 enum ibv_qp_type qp_type)
{
	bool sync = !channel;
	struct cm_id *id;
	int error;

	if (sync) {
		channel = rdma_create_event_channel();
		if (!channel)
			return -1;
	}
	error = create_on(channel, &id, context, ps, qp_type);
	if (error) {
		if (sync)
			rdma_destroy_event_channel(channel);
		return urdma_fail(error);
	}
	id->sync = sync;
	*public = &id->public;
	return 0;
}

URDMA_EXPORT int rdma_create_id(struct rdma_event_channel *channel,
			     struct rdma_cm_id **id, void *context,
			     enum rdma_port_space ps)
{
	bool datagrams = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB;

	return cm_id_create(channel, id, context, ps,
			    datagrams ? IBV_QPT_UD : IBV_QPT_RC);
}

int cm_id_attach(struct cm_id *id, uint32_t device)
{
	const struct urdma_abi_device *port = urdma_device_info(id->client, device);
	struct ibv_context *verbs;
	struct ibv_pd *pd;

	if (device == URDMA_ABI_NO_DEVICE)
		return 0;
	verbs = urdma_device_context(id->client, device);
	if (!verbs)
		return errno;
	pd = cm_shared_pd(verbs);
	if (!pd)
		return errno;
	id->device = device;
	id->public.verbs = verbs;
	id->public.port_num = (uint8_t)port->port_num;
	id->public.route.addr.addr.ibaddr.pkey = htons(0xffff); /* the P_Key of the default partition */
	memcpy(id->public.route.addr.addr.ibaddr.sgid.raw, port->gid, sizeof(port->gid));
	if (!id->public.pd)
		id->public.pd = pd;
	return 0;
}

void cm_id_wait_acknowledged(struct cm_id *id)
{
	int cancel;

	cm_lock(&cancel);
	/* Events counted in the parent are never acknowledged in a child. */
	while (id->acknowledged != id->reported && urdma_client_state(id->client) != URDMA_CLIENT_FORKED)
		pthread_cond_wait(&acknowledged, &cm_mutex);
	cm_unlock(cancel);
}

void cm_id_acknowledge(struct cm_id *id)
{
	int cancel;

	cm_lock(&cancel);
	id->acknowledged++;
	pthread_cond_broadcast(&acknowledged);
	cm_unlock(cancel);
}

URDMA_EXPORT int rdma_destroy_id(struct rdma_cm_id *public)
{
	struct cm_id *id = cm_id_of(public);
	struct rdma_event_channel *channel = public->channel;
	bool sync = id->sync;
	int cancel, before = errno;

	/* This fails only if urdmad has ended or has already removed the id. */
	urdma_call_handle(id->client, URDMA_ABI_CM_DESTROY_ID, id->handle);
	cm_drop_event(public);

	cm_lock(&cancel);
	remove_entry(id); /* after this no event finds the id */
	cm_channel_of(channel)->stale = true;
	cm_channel_skip_stale(cm_channel_of(channel));
	cm_unlock(cancel);
	cm_orphans_release();

	cm_id_wait_acknowledged(id);
	cm_id_free(id);
	if (sync)
		rdma_destroy_event_channel(channel);
	errno = before;
	return 0;
}
