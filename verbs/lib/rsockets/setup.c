/* setup.c - creates a connection's queues and memory, and the private data exchanged by its ends. */
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "../pages/alloc.h"
#include "rsockets.h"

#define MAGIC 0x75727331u /* "urs1" */
#define VERSION 1u

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
	rs->rx.bytes = o->recv_bytes;
	rs->tx.mr = rs_map_region(rs->id->pd, rs->tx.bytes, IBV_ACCESS_LOCAL_WRITE);
	if (rs->tx.mr)
		rs->rx.mr = rs_map_region(rs->id->pd, rs->rx.bytes, peers);
	if (!rs->rx.mr)
		return errno;
	rs->tx.ring = rs->tx.mr->addr;
	rs->rx.ring = rs->rx.mr->addr;
	if (!o->iomaps)
		return 0;
	rs->io.mr = rs_map_region(rs->id->pd, o->iomaps * sizeof(*rs->io.table), peers);
	if (!rs->io.mr)
		return errno;
	rs->io.table = rs->io.mr->addr;
	rs->io.entries = o->iomaps;
	return 0;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static int make_pair(struct rs *rs)
{
	struct ibv_qp_init_attr attr = { .qp_context = rs, .qp_type = IBV_QPT_RC, .sq_sig_all = 1 };
	struct ibv_device_attr device;
	struct rdma_cm_id *id = rs->id;
	uint32_t most;

	if (ibv_query_device(id->verbs, &device))
		return errno;
	most = smaller((uint32_t)device.max_qp_wr, (uint32_t)device.max_cqe / 2);
	rs->tx.slots = smaller(rs->options.sq_size, most - RS_CONTROL_SLOTS);
	rs->rx.receives = smaller(rs->options.rq_size, most);
	id->recv_cq_channel = ibv_create_comp_channel(id->verbs);
	if (!id->recv_cq_channel)
		return errno;
	fcntl(id->recv_cq_channel->fd, F_SETFL, fcntl(id->recv_cq_channel->fd, F_GETFL) | O_NONBLOCK);
	id->send_cq_channel = id->recv_cq_channel;
	id->recv_cq = ibv_create_cq(id->verbs, (int)(rs->tx.slots + RS_CONTROL_SLOTS + rs->rx.receives), rs,
				    id->recv_cq_channel, 0);
	id->send_cq = id->recv_cq;
	if (!id->recv_cq)
		return errno;
	attr.send_cq = attr.recv_cq = id->recv_cq;
	attr.cap = (struct ibv_qp_cap){ .max_send_wr = rs->tx.slots + RS_CONTROL_SLOTS, .max_recv_wr = rs->rx.receives,
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
	for (uint32_t i = 0; !error && i < rs->rx.receives; i++)
		error = rs_post_receive(rs);
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

/* Returns false if the peer is not an rsocket. */
bool rs_hello_read(struct rs *rs, const struct rdma_conn_param *param)
{
	struct rs_hello h;

	if (param->private_data_len < sizeof(h))
		return false;
	memcpy(&h, param->private_data, sizeof(h));
	if (ntohl(h.magic) != MAGIC || ntohs(h.version) != VERSION || !ntohs(h.credits) || !ntohl(h.ring_bytes))
		return false;
	rs->tx.credits = ntohs(h.credits);
	rs->tx.peer = (struct rs_remote){ be64toh(h.ring_addr), ntohl(h.ring_rkey), ntohl(h.ring_bytes) };
	rs->tx.granted = rs->tx.peer.bytes;
	rs->io.peer = (struct rs_remote){ be64toh(h.table_addr), ntohl(h.table_rkey), ntohl(h.table_bytes) };
	return true;
}

void rs_fill_param(const struct rs *rs, struct rs_hello *hello, struct rdma_conn_param *param)
{
	*hello = (struct rs_hello){
		.magic = htonl(MAGIC), .version = htons(VERSION), .credits = htons((uint16_t)rs->rx.receives),
		.ring_addr = htobe64((uintptr_t)rs->rx.ring), .ring_rkey = htonl(rs->rx.mr->rkey),
		.ring_bytes = htonl(rs->rx.bytes), .table_addr = htobe64((uintptr_t)rs->io.table),
		.table_rkey = htonl(rs->io.mr ? rs->io.mr->rkey : 0),
		.table_bytes = htonl(rs->io.entries * (uint32_t)sizeof(struct rs_iomap)),
	};
	*param = (struct rdma_conn_param){ .private_data = hello, .private_data_len = sizeof(*hello),
					   .retry_count = 7, .rnr_retry_count = 7, .flow_control = 1 };
}
