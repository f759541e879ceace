/* context.c - opening a device: fills the function tables through which verbs.h calls. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "datapath/warn.h"
#include "internal.h"
#include "memory/memory.h"
#include "tables.h"

/* Bytes for verbs_context.priv, which only libibverbs uses. They are zero, so that readers find nothing in
 * it. */
#define PRIVATE_BYTES 4096

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	return attr->qp_type == IBV_QPT_XRC_RECV ? urdma_create_target(context, attr) : urdma_create_qp_ex(context, attr);
}

/* verbs.h itself answers EOPNOTSUPP where a pointer is NULL. It calls the functions refused here without
 * checking for NULL. */
static void fill_tables(struct urdma_context *c)
{
	struct ibv_context *context = &c->verbs.context;

	context->ops.poll_cq = urdma_poll_cq;
	context->ops.req_notify_cq = urdma_req_notify_cq;
	context->ops.post_send = urdma_post_send;
	context->ops.post_recv = urdma_post_recv;
	context->ops.post_srq_recv = urdma_post_srq_recv;
	context->ops.alloc_mw = urdma_alloc_mw;
	context->ops.bind_mw = urdma_bind_mw;
	context->ops.dealloc_mw = urdma_dealloc_mw;
	context->abi_compat = __VERBS_ABI_IS_EXTENDED;
	c->verbs.sz = sizeof(c->verbs);
	c->verbs.query_port = urdma_query_port;
	c->verbs.query_device_ex = urdma_query_device_ex;
	c->verbs.query_rt_values = urdma_query_rt_values;
	c->verbs.create_cq_ex = urdma_create_cq_ex;
	c->verbs.create_qp_ex = create_qp_ex;
	c->verbs.create_srq_ex = urdma_create_srq_ex;
	c->verbs.alloc_parent_domain = urdma_alloc_parent_domain;
	c->verbs.alloc_td = urdma_alloc_td;
	c->verbs.dealloc_td = urdma_dealloc_td;
	c->verbs.alloc_null_mr = urdma_alloc_null_mr;
	c->verbs.advise_mr = urdma_advise_mr;
	c->verbs.alloc_dm = urdma_alloc_dm;
	c->verbs.free_dm = urdma_free_dm;
	c->verbs.reg_dm_mr = urdma_reg_dm_mr;
	c->verbs.get_srq_num = urdma_get_srq_num;
	c->verbs.open_xrcd = urdma_open_xrcd;
	c->verbs.close_xrcd = urdma_close_xrcd;
	c->verbs.open_qp = urdma_open_qp;
	c->verbs.ibv_create_flow = urdma_create_flow;
	c->verbs.ibv_destroy_flow = urdma_destroy_flow;
}

static struct urdma_context *make_context(struct urdma_device *d)
{
	struct urdma_context *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->verbs.priv = calloc(1, PRIVATE_BYTES);
	if (!c->verbs.priv) {
		free(c);
		return NULL;
	}
	c->client = d->client;
	c->device = d->number;
	c->info = &d->client->info[d->number];
	/* Nobody reads or writes this descriptor, but programs duplicate and poll it. The kernel's devices are
	 * always ready, so this one is, too. */
	c->verbs.context.cmd_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->verbs.context.cmd_fd < 0) {
		free(c->verbs.priv);
		free(c);
		return NULL;
	}
	urdma_keep(&c->commands, c->verbs.context.cmd_fd);
	c->verbs.context.device = &d->device;
	c->verbs.context.num_comp_vectors = (int)d->client->info[d->number].num_comp_vectors;
	pthread_mutex_init(&c->verbs.context.mutex, NULL);
	c->on_demand = urdma_odp_supported(c->client);
	fill_tables(c);
	if (c->client->strict)
		urdma_strict_polls(&c->verbs.context);
	if (urdma_warn_wanted)
		urdma_warn_watch(&c->verbs.context);
	return c;
}

static void discard(struct urdma_context *c)
{
	urdma_kept_close(&c->commands);
	free(c->verbs.priv);
	free(c);
}

/* Returns the device of the same name in the current session, if the list is from an earlier one, as after
 * a fork. */
static struct urdma_device *of_this_session(struct urdma_device *d)
{
	struct urdma_client *client = urdma_client_get();
	struct urdma_devices *devices = client && client != d->client ? urdma_devices_of(client) : NULL;

	for (uint32_t i = 0; devices && i < client->num_devices; i++)
		if (devices->list[i] && strcmp(devices->list[i]->device.name, d->device.name) == 0)
			return devices->list[i];
	return d;
}

URDMA_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct urdma_device *d = of_this_session(urdma_device_of(device));
	struct urdma_abi_open_device request = { .device = d->number };
	struct urdma_abi_handle response;
	struct urdma_context *c = make_context(d);
	int status;

	if (!c)
		return NULL;
	status = urdma_call_fds(d->client, URDMA_ABI_OPEN_DEVICE, &request, sizeof(request), &response,
				sizeof(response), -1, &c->verbs.context.async_fd, 1);
	if (status) {
		discard(c);
		return urdma_null(status);
	}
	urdma_keep(&c->events, c->verbs.context.async_fd);
	c->handle = response.handle;
	return &c->verbs.context;
}

void urdma_context_leave(void *context)
{
	struct urdma_context *c = context;

	if (!urdma_readers_leave(&c->readers))
		return;
	urdma_kept_close(&c->events);
	discard(c);
}

URDMA_EXPORT int ibv_close_device(struct ibv_context *context)
{
	struct urdma_context *c = urdma_context_of(context);
	int status;

	urdma_readers_abandon(&c->readers);
	status = urdma_call_destroy(c->client, URDMA_ABI_CLOSE_DEVICE, c->handle);
	/* As with the kernel's devices, objects made on this one do not prevent closing: ib_send_bw does not
	 * destroy a completion queue and expects 0. Those objects point to the context, so its memory is not
	 * freed. */
	if (status == EBUSY)
		return 0;
	if (status) {
		urdma_readers_keep(&c->readers);
		return urdma_fail(status);
	}
	urdma_context_leave(c);
	return 0;
}

struct ibv_context *urdma_device_context(struct urdma_client *client, uint32_t device)
{
	struct urdma_devices *devices = urdma_devices_of(client);
	struct ibv_context *context;

	if (!devices)
		return NULL;
	if (device < client->num_devices)
		device -= client->info[device].port_num - 1;
	if (device >= client->num_devices || !devices->list[device])
		return urdma_null(ENODEV);
	pthread_mutex_lock(&client->devices_lock);
	if (!devices->shared[device])
		devices->shared[device] = ibv_open_device(&devices->list[device]->device);
	context = devices->shared[device];
	pthread_mutex_unlock(&client->devices_lock);
	return context;
}

const struct urdma_abi_device *urdma_context_info(const struct ibv_context *context)
{
	return urdma_context_of(context)->info;
}
