/*
 * fake.c - see fake.h. Resolutions, connects, accepts and disconnects send the event that urdmad would
 * send, on the id's present channel.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../session/client.h"
#include "fake.h"

struct fake_id fake_ids[FAKE_IDS];
static pthread_mutex_t one_request = PTHREAD_MUTEX_INITIALIZER;
static uint32_t state = URDMA_CLIENT_LIVE;
static struct urdma_client first = { .state = &state };
static bool running = true;
static uint32_t devices = 1; /* only device 0 can be shown */
static int refusals[64];
static unsigned counts[64];
static int sockets[FAKE_IDS]; /* urdmad's end of each channel, by handle */
static uint32_t last_channel, last_id;
static struct ibv_device device = { .transport_type = IBV_TRANSPORT_IWARP };
static struct ibv_context context = { .device = &device };
static const struct urdma_abi_device info = { .addr.family = AF_INET, .max_rd_atom = 16, .gid = { [15] = 0x42 },
	.port_num = 1, .num_ports = 1 };

bool urdma_warn_wanted;
void urdma_warn(struct urdma_client *client, uint32_t qpn, uint32_t number, const char *format, ...)
{
	(void)client, (void)qpn, (void)number, (void)format;
}

int urdma_wrong(int error, const char *format, ...)
{
	(void)format;
	return error;
}

bool urdma_explain_wanted;
void urdma_explain(struct urdma_client *client, uint32_t qpn, uint32_t number)
{
	(void)client, (void)qpn, (void)number;
}

void fake_refuse(enum urdma_abi_type type, int error) { refusals[type] = error; }
void fake_set_running(bool now) { running = now; }
void fake_set_transport(enum ibv_transport_type transport) { device.transport_type = transport; }

unsigned fake_count(enum urdma_abi_type type)
{
	pthread_mutex_lock(&one_request);
	unsigned n = counts[type];
	pthread_mutex_unlock(&one_request);
	return n;
}

uint32_t fake_new_child(uint32_t listener)
{
	fake_ids[++last_id] = (struct fake_id){ .channel = fake_ids[listener].channel };
	return last_id;
}

void fake_send_on(uint32_t channel, const struct urdma_abi_cm_event *event)
{
	if (send(sockets[channel], event, sizeof(*event), MSG_NOSIGNAL) < 0)
		abort();
}

void fake_send(const struct urdma_abi_cm_event *event)
{
	fake_send_on(fake_ids[event->id].channel, event);
}

void fake_die(void)
{
	for (uint32_t i = 1; i <= last_channel; i++)
		close(sockets[i]);
	pthread_mutex_lock(&one_request);
	__atomic_store_n(&state, URDMA_CLIENT_GONE, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&one_request);
	running = false;
}

static void answer_event(uint32_t id, enum rdma_cm_event_type type)
{
	struct urdma_abi_cm_event event = {
		.event = type,
		.id = id,
		.local = fake_ids[id].local,
	};

	fake_send(&event);
}

static uint32_t ipv4_of(const struct urdma_abi_addr *addr)
{
	uint32_t be;

	memcpy(&be, addr->addr, sizeof(be));
	return be;
}

static void answer_bound(struct urdma_abi_cm_bound *bound, uint32_t id)
{
	bound->local = fake_ids[id].local;
	bound->device = bound->local.family == AF_INET && ipv4_of(&bound->local) && bound->local.addr[0] != 127
				? 0 : URDMA_ABI_NO_DEVICE;
}

static void bind_id(struct fake_id *id, const struct urdma_abi_addr *addr)
{
	id->local = *addr;
	if (!id->local.port_be)
		id->local.port_be = htons(40000);
}

static void resolve(const struct urdma_abi_cm_resolve_addr *request)
{
	struct urdma_abi_addr local = request->src;

	if (!ipv4_of(&local)) {
		local.family = AF_INET;
		memcpy(local.addr, (uint8_t[]){ 10, 0, 0, 1 }, 4);
	}
	bind_id(&fake_ids[request->id], &local);
	answer_event(request->id, RDMA_CM_EVENT_ADDR_RESOLVED);
}

static void take_param(const struct urdma_abi_cm_conn *request)
{
	fake_ids[request->id].param = request->param;
}

/* Handles requests that change an id; returns false for others. */
static bool answer_id(enum urdma_abi_type type, const void *request, void *response)
{
	const struct urdma_abi_cm_value *value = request; /* all these requests begin with the id */

	switch (type) {
	case URDMA_ABI_CM_BIND:
		bind_id(&fake_ids[value->id],
			&((const struct urdma_abi_cm_bind *)request)->addr);
		answer_bound(response, value->id);
		return true;
	case URDMA_ABI_CM_RESOLVE_ADDR:
		resolve(request);
		answer_bound(response, value->id);
		return true;
	case URDMA_ABI_CM_RESOLVE_ROUTE:
		answer_event(value->id, RDMA_CM_EVENT_ROUTE_RESOLVED);
		return true;
	case URDMA_ABI_CM_LISTEN:
		answer_bound(response, value->id);
		return true;
	case URDMA_ABI_CM_CONNECT:
	case URDMA_ABI_CM_ACCEPT:
		take_param(request);
		answer_event(value->id, RDMA_CM_EVENT_ESTABLISHED);
		return true;
	case URDMA_ABI_CM_REJECT:
		take_param(request);
		return true;
	case URDMA_ABI_CM_MIGRATE_ID:
		fake_ids[value->id].channel = value->value;
		return true;
	case URDMA_ABI_CM_WAKE_CHANNEL:
		fake_send_on(((const struct urdma_abi_handle *)request)->handle,
			     &(struct urdma_abi_cm_event){ .event = URDMA_ABI_CM_WAKE });
		return true;
	case URDMA_ABI_CM_DISCONNECT:
		answer_event(((const struct urdma_abi_handle *)request)->handle,
			     RDMA_CM_EVENT_DISCONNECTED);
		return true;
	default:
		return false;
	}
}

static int answer(struct urdma_client *client, enum urdma_abi_type type, void *request,
		  void *response, size_t response_length)
{
	struct urdma_abi_handle *made = response;

	counts[type]++;
	if (urdma_client_state(client) != URDMA_CLIENT_LIVE)
		return EIO;
	if (refusals[type])
		return refusals[type];
	if (response)
		memset(response, 0, response_length);
	if (answer_id(type, request, response))
		return 0;
	if (type == URDMA_ABI_CM_CREATE_ID) {
		made->handle = ++last_id;
		fake_ids[last_id] = (struct fake_id){
			.channel = ((struct urdma_abi_cm_create_id *)request)->channel,
		};
	}
	if (type == URDMA_ABI_CM_DESTROY_ID)
		fake_ids[((struct urdma_abi_handle *)request)->handle].channel = 0;
	return 0;
}

int urdma_call(struct urdma_client *client, enum urdma_abi_type type, void *request,
	       size_t request_length, void *response, size_t response_length)
{
	int error;

	(void)request_length;
	pthread_mutex_lock(&one_request);
	error = answer(client, type, request, response, response_length);
	pthread_mutex_unlock(&one_request);
	return error;
}

int urdma_call_handle(struct urdma_client *client, enum urdma_abi_type type, uint32_t handle)
{
	struct urdma_abi_handle request = { .handle = handle };

	return urdma_call(client, type, &request, sizeof(request), NULL, 0);
}

int urdma_call_fds(struct urdma_client *client, enum urdma_abi_type type, void *request,
		   size_t request_length, void *response, size_t response_length, int send_fd,
		   int *fds, int want)
{
	struct urdma_abi_handle *made = response;
	int error = urdma_call(client, type, request, request_length, response, response_length);
	int pair[2];

	(void)send_fd;
	(void)want;
	if (error)
		return error;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return errno;
	made->handle = ++last_channel;
	sockets[last_channel] = pair[0];
	fds[0] = pair[1];
	return 0;
}

struct urdma_client *urdma_client_get(void)
{
	if (running)
		return &first;
	errno = ENODEV;
	return NULL;
}

void urdma_client_lose(struct urdma_client *client, const char *why)
{
	(void)client;
	fprintf(stderr, "the library ends its session: %s\n", why);
	fake_die();
}

bool urdma_client_check(struct urdma_client *client)
{
	bool alive;

	pthread_mutex_lock(&one_request);
	alive = urdma_client_state(client) == URDMA_CLIENT_LIVE;
	pthread_mutex_unlock(&one_request);
	return alive;
}

uint32_t urdma_client_devices(const struct urdma_client *client) { (void)client; return devices; }

const struct urdma_abi_device *urdma_device_info(const struct urdma_client *client, uint32_t device)
{
	(void)client, (void)device;
	return &info;
}
void fake_set_devices(uint32_t n) { devices = n; }

struct ibv_context *urdma_device_context(struct urdma_client *client, uint32_t number)
{
	(void)client;
	errno = ENODEV;
	return number == 0 ? &context : NULL;
}

const struct urdma_abi_device *urdma_context_info(const struct ibv_context *of)
{
	(void)of;
	return &info;
}

const struct urdma_abi_device *urdma_port_info(const struct ibv_context *of, uint32_t port)
{
	(void)of;
	return port == 1 ? &info : NULL;
}

void urdma_handles_lock(struct urdma_client *client) { (void)client; }
void urdma_handles_unlock(struct urdma_client *client) { (void)client; }

/* Enters a queue pair in the table, as ibv_create_qp does. */
static void enter(struct ibv_qp *qp)
{
	struct urdma_handle *entry = calloc(1, sizeof(*entry));

	*entry = (struct urdma_handle){
		.next = first.handles[5], .kind = URDMA_KIND_QP, .handle = qp->handle, .object = qp,
	};
	first.handles[5] = entry;
}

void *urdma_handles_find(struct urdma_client *client, enum urdma_kind kind, uint32_t handle)
{
	struct urdma_handle *entry = client->handles[5];

	while (entry && (entry->kind != kind || entry->handle != handle))
		entry = entry->next;
	return entry ? entry->object : NULL;
}

static void leave(const struct ibv_qp *qp)
{
	struct urdma_handle **link = &first.handles[5], *entry;

	while ((entry = *link) && entry->object != qp)
		link = &entry->next;
	if (!entry)
		return;
	*link = entry->next;
	free(entry);
}

/* ---- the verbs that rdma_cm uses ---- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *of)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	pd->context = of;
	return pd;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *of)
{
	struct ibv_comp_channel *channel = calloc(1, sizeof(*channel));

	channel->context = of;
	return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	free(channel);
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *of, int entries, void *cq_context,
			     struct ibv_comp_channel *channel, int vector)
{
	struct ibv_cq *cq = calloc(1, sizeof(*cq));

	(void)vector;
	cq->context = of;
	cq->cqe = entries;
	cq->cq_context = cq_context;
	cq->channel = channel;
	return cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	free(cq);
	return 0;
}

#undef ibv_create_qp
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp;

	if (attr->qp_type != IBV_QPT_RC) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	qp->context = pd->context;
	qp->pd = pd;
	qp->send_cq = attr->send_cq;
	qp->recv_cq = attr->recv_cq;
	qp->handle = 77;
	qp->qp_num = 1077;
	enter(qp);
	return qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	leave(qp);
	free(qp);
	return 0;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	return 0;
}

static int make_cq(struct ibv_context *of, uint32_t entries, void *cq_context, struct ibv_comp_channel **channel,
		   struct ibv_cq **cq)
{
	if (!entries)
		return 0;
	*channel = ibv_create_comp_channel(of);
	*cq = ibv_create_cq(of, (int)entries, cq_context, *channel, 0);
	return 1;
}

static void destroy_cq(struct ibv_comp_channel *channel, struct ibv_cq *cq)
{
	if (cq)
		ibv_destroy_cq(cq);
	if (channel)
		ibv_destroy_comp_channel(channel);
}

int urdma_queues_create(struct ibv_context *of, struct urdma_queues *wanted)
{
	struct ibv_qp_init_attr attr = { .qp_type = wanted->attr->qp_type };

	if (make_cq(of, wanted->send_entries, wanted->cq_context, &wanted->send_channel, &wanted->send_cq))
		wanted->attr->send_cq = wanted->send_cq;
	if (make_cq(of, wanted->recv_entries, wanted->cq_context, &wanted->recv_channel, &wanted->recv_cq))
		wanted->attr->recv_cq = wanted->recv_cq;
	attr.send_cq = wanted->attr->send_cq;
	attr.recv_cq = wanted->attr->recv_cq;
	wanted->qp = ibv_create_qp(wanted->attr->pd, &attr);
	if (!wanted->qp) {
		destroy_cq(wanted->send_channel, wanted->send_cq);
		destroy_cq(wanted->recv_channel, wanted->recv_cq);
		return errno;
	}
	for (unsigned i = 0; i < wanted->moves; i++)
		ibv_modify_qp(wanted->qp, &wanted->move[i].attr, wanted->move[i].mask);
	return 0;
}

/* Makes rdma_cm destroy the objects one by one. */
bool urdma_queues_destroy(struct urdma_queues *queues)
{
	(void)queues;
	return false;
}

/* As for a caller compiled with an old header: verbs.h's inline function calls this if a context has no
 * extended table. */
#undef ibv_query_port
int ibv_query_port(struct ibv_context *of, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	(void)of;
	((struct ibv_port_attr *)attr)->active_mtu = IBV_MTU_1024;
	return port == 1 ? 0 : EINVAL;
}

void urdma_qp_set_state(struct ibv_qp *qp, enum ibv_qp_state state) { qp->state = state; }

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	(void)pd;
	(void)attr;
	errno = EOPNOTSUPP;
	return NULL;
}

int ibv_destroy_srq(struct ibv_srq *srq) { (void)srq; return 0; }

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp, (void)gid, (void)lid;
	return EINVAL; /* the fake has no queue pairs of type UD */
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp, (void)gid, (void)lid;
	return EINVAL;
}
