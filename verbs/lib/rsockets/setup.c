/* setup.c - creates a connection's queues and memory, and the private data exchanged by its ends. */
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "../pages/alloc.h"
#include "rsockets.h"

#define VERSION 1u
#define LEAST_QUEUE 16u /* fewer receives would leave too few credits on iWARP */

enum { BIG_ENDIAN_HOST = 1, HAS_IOMAPS = 2 }; /* flags of struct rs_hello */

struct ibv_mr *rs_map_region(struct ibv_pd *pd, size_t bytes, int access)
{
	void *at = urdma_alloc(bytes);
	struct ibv_mr *mr = at ? ibv_reg_mr(pd, at, bytes, access) : NULL;

	if (!mr)
		urdma_free(at);
	return mr;
}

static int make_memory(struct rs *rs)
{
	const struct rs_options *o = &rs->options;
	int peers = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

	rs->tx.bytes = o->send_bytes;
	rs->rx.bytes = o->recv_bytes & ~1u;
	rs->rx.granted = rs->rx.bytes / 2;
	rs->tx.mr = rs_map_region(rs->id->pd, rs->tx.bytes + rs_receives(rs) * sizeof(*rs->rx.sends), IBV_ACCESS_LOCAL_WRITE);
	if (rs->tx.mr)
		rs->rx.mr = rs_map_region(rs->id->pd, rs->rx.bytes, peers);
	if (rs->rx.mr)
		rs->io.mr = rs_map_region(rs->id->pd, sizeof(*rs->io.table) + o->iomaps * sizeof(struct rs_iomap), peers);
	if (!rs->io.mr)
		return errno;
	rs->tx.ring = rs->tx.mr->addr;
	rs->rx.sends = (void *)(rs->tx.ring + rs->tx.bytes);
	rs->rx.ring = rs->rx.mr->addr;
	rs->io.table = rs->io.mr->addr;
	rs->io.entries = o->iomaps;
	return 0;
}

static uint32_t queue_size(uint32_t wanted, uint32_t most)
{
	if (wanted < LEAST_QUEUE)
		wanted = LEAST_QUEUE;
	return wanted < most ? wanted : most;
}

static int make_pair(struct rs *rs)
{
	struct ibv_qp_init_attr attr = { .qp_context = rs, .qp_type = IBV_QPT_RC, .sq_sig_all = 1 };
	struct ibv_device_attr device;
	struct rdma_cm_id *id = rs->id;
	uint32_t most;

	if (ibv_query_device(id->verbs, &device))
		return errno;
	rs->iwarp = id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	most = queue_size((uint32_t)device.max_cqe / 2, (uint32_t)device.max_qp_wr);
	rs->tx.slots = queue_size(rs->options.sq_size, most - RS_CONTROL_SLOTS);
	rs->rx.receives = queue_size(rs->options.rq_size, most - RS_SPARE_RECEIVES);
	id->recv_cq_channel = ibv_create_comp_channel(id->verbs);
	if (!id->recv_cq_channel)
		return errno;
	fcntl(id->recv_cq_channel->fd, F_SETFL, fcntl(id->recv_cq_channel->fd, F_GETFL) | O_NONBLOCK);
	id->send_cq_channel = id->recv_cq_channel;
	id->recv_cq = ibv_create_cq(id->verbs, (int)(rs->tx.slots + RS_CONTROL_SLOTS + rs_receives(rs)), rs,
				    id->recv_cq_channel, 0);
	id->send_cq = id->recv_cq;
	if (!id->recv_cq)
		return errno;
	attr.send_cq = attr.recv_cq = id->recv_cq;
	attr.cap = (struct ibv_qp_cap){ .max_send_wr = rs->tx.slots + RS_CONTROL_SLOTS, .max_recv_wr = rs_receives(rs),
					.max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = rs->options.inline_bytes };
	if (attr.cap.max_inline_data < sizeof(struct rs_iomap))
		attr.cap.max_inline_data = sizeof(struct rs_iomap);
	return rdma_create_qp(id, NULL, &attr) ? errno : 0;
}

int rs_make_queues(struct rs *rs)
{
	int error = make_pair(rs);

	if (!error)
		error = make_memory(rs);
	for (uint32_t i = 0; !error && i < rs_receives(rs); i++)
		error = rs_post_receive(rs, i);
	return error;
}

void rs_unmap_region(struct ibv_mr *mr)
{
	void *at;

	if (!mr)
		return;
	at = mr->addr;
	ibv_dereg_mr(mr);
	urdma_free(at);
}

void rs_release_queues(struct rs *rs)
{
	struct rs_mapping *mapping;

	if (rs->id && (rs->id->qp || rs->id->recv_cq || rs->id->recv_cq_channel))
		rdma_destroy_qp(rs->id);
	rs_unmap_region(rs->tx.mr);
	rs_unmap_region(rs->rx.mr);
	rs_unmap_region(rs->io.mr);
	while ((mapping = rs->io.mappings)) {
		rs->io.mappings = mapping->next;
		ibv_dereg_mr(mapping->mr);
		free(mapping);
	}
	rs->tx.mr = rs->rx.mr = rs->io.mr = NULL;
}

/* A number of mapped buffers is sent in 8 bits: up to 128 as it is, and above that in units of 256, with the
 * upper bit set. It is rounded down. */
static uint8_t to_scale(uint32_t n)
{
	if (n <= 128)
		return (uint8_t)n;
	return (uint8_t)(n < 256 ? 128 : n > 127 * 256 ? 255 : 128 | n / 256);
}

static uint32_t from_scale(uint8_t n)
{
	return n <= 128 ? n : (n & 127u) * 256;
}

static struct rs_remote net_order(struct rs_remote r)
{
	return rs_swap(r, __BYTE_ORDER == __LITTLE_ENDIAN);
}

bool rs_hello_read(struct rs *rs, const struct rdma_conn_param *param)
{
	struct rs_hello h;

	if (param->private_data_len < sizeof(h))
		return false;
	memcpy(&h, param->private_data, sizeof(h));
	if (h.version != VERSION || ntohl(h.table.bytes) < RS_GRANTS)
		return false;
	rs->rx.table = net_order(h.table);
	rs->rx.next_grant = rs->tx.next_grant = 1; /* the private data is entry 0 */
	rs->swapped = !!(h.flags & BIG_ENDIAN_HOST) != (__BYTE_ORDER == __BIG_ENDIAN);
	rs->tx.permitted = ntohs(h.credits);
	rs->tx.target = net_order(h.ring);
	rs->io.peer = rs->rx.table;
	rs->io.peer.addr += sizeof(struct rs_remote) * (uint64_t)rs->rx.table.bytes;
	rs->io.peer.bytes = h.flags & HAS_IOMAPS ? from_scale(h.iomaps) : 0;
	return true;
}

void rs_fill_param(const struct rs *rs, struct rs_hello *hello, struct rdma_conn_param *param)
{
	*hello = (struct rs_hello){
		.version = VERSION, .flags = HAS_IOMAPS | (__BYTE_ORDER == __BIG_ENDIAN ? BIG_ENDIAN_HOST : 0),
		.credits = htons((uint16_t)rs->rx.receives), .iomaps = to_scale(rs->io.entries),
		.table = net_order((struct rs_remote){ (uintptr_t)rs->io.table, rs->io.mr->rkey, RS_GRANTS }),
		.ring = net_order((struct rs_remote){ (uintptr_t)rs->rx.ring, rs->rx.mr->rkey, rs->rx.bytes / 2 }),
	};
	*param = (struct rdma_conn_param){ .private_data = hello, .private_data_len = sizeof(*hello), .flow_control = 1,
					   .retry_count = 7, .rnr_retry_count = 7,
					   .initiator_depth = rs->iwarp, .responder_resources = rs->iwarp };
}
