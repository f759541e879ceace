/* pairs.c - creates queue pairs of datagram sockets, and sends on them. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "datagram.h"

uint8_t *rs_pair_receive_at(const struct rs_pair *p, uint32_t i)
{
	return (uint8_t *)p->mr->addr + (size_t)i * (RS_GRH + p->largest);
}

static uint8_t *send_at(const struct rs_pair *p, uint32_t i)
{
	return rs_pair_receive_at(p, p->receives) + (size_t)i * p->largest;
}

int rs_pair_post_receive(struct rs_pair *p, uint32_t i)
{
	struct ibv_sge sge = { (uintptr_t)rs_pair_receive_at(p, i), RS_GRH + p->largest, p->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = RS_RECEIVE | i, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(p->qp, &wr, &bad);
}

/* Chooses the numbers of buffers and requests. */
static int choose_sizes(struct rs_pair *p, const struct rs_options *o)
{
	struct ibv_device_attr device;
	struct ibv_port_attr port;

	if (ibv_query_device(p->verbs, &device) || ibv_query_port(p->verbs, p->port, &port))
		return -1;
	p->largest = 128u << port.active_mtu;
	if (p->largest > RS_LARGEST)
		p->largest = RS_LARGEST;
	p->sends = o->sq_size;
	p->receives = o->rq_size;
	if (p->sends > (uint32_t)device.max_qp_wr || p->receives > (uint32_t)device.max_qp_wr ||
	    p->sends + p->receives > (uint32_t)device.max_cqe)
		return rs_fail(ENOMEM);
	return 0;
}

static int make_memory(struct rs_pair *p)
{
	size_t bytes = (size_t)p->receives * (RS_GRH + p->largest) + (size_t)p->sends * p->largest;

	p->mr = rs_map_region(p->pd, bytes, IBV_ACCESS_LOCAL_WRITE);
	p->free = calloc(p->sends, sizeof(*p->free));
	if (!p->mr || !p->free)
		return -1;
	for (uint32_t i = 0; i < p->sends; i++)
		p->free[p->free_count++] = i;
	return 0;
}

static int make_queues(struct rs_pair *p, int poller)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_UD, .sq_sig_all = 1, .cap = { p->sends, p->receives, 1, 1, 0 } };
	struct epoll_event event = { .events = EPOLLIN };

	p->channel = ibv_create_comp_channel(p->verbs);
	if (!p->channel)
		return -1;
	fcntl(p->channel->fd, F_SETFL, fcntl(p->channel->fd, F_GETFL) | O_NONBLOCK);
	p->cq = ibv_create_cq(p->verbs, (int)(p->sends + p->receives), NULL, p->channel, 0);
	if (!p->cq)
		return -1;
	attr.send_cq = attr.recv_cq = p->cq;
	p->qp = ibv_create_qp(p->pd, &attr);
	return p->qp ? epoll_ctl(poller, EPOLL_CTL_ADD, p->channel->fd, &event) : -1;
}

/* Returns 0 or an errno value. */
static int start(struct rs_pair *p)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = p->port, .qkey = RDMA_UDP_QKEY };
	int error = ibv_modify_qp(p->qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	if (!error)
		error = ibv_modify_qp(p->qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (!error)
		error = ibv_modify_qp(p->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	for (uint32_t i = 0; !error && i < p->receives; i++)
		error = rs_pair_post_receive(p, i);
	return error;
}

static struct rs_pair *make(struct rs *rs, const struct rdma_cm_id *id)
{
	struct rs_datagrams *d = rs->datagrams;
	struct rs_pair *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->verbs = id->verbs;
	p->port = id->port_num;
	p->pd = id->pd;
	if (choose_sizes(p, &rs->options) || make_queues(p, d->poller) || make_memory(p) || (errno = start(p))) {
		rs_pair_free(p);
		return NULL;
	}
	ibv_req_notify_cq(p->cq, 0);
	p->next = d->pairs;
	d->pairs = p;
	return p;
}

/* A loopback address is used as the pair's own only until another one is known. */
static void learn_address(struct rs_pair *p, struct rdma_cm_id *id)
{
	union rs_name own = rs_name_of(rdma_get_local_addr(id));

	own.four.sin_port = 0;
	if (own.any.sa_family != AF_UNSPEC && (p->own.any.sa_family == AF_UNSPEC || !rs_name_is_loopback(&own)))
		p->own = own;
}

struct rs_pair *rs_pair_of(struct rs *rs, struct rdma_cm_id *id)
{
	struct rs_pair *p = rs->datagrams->pairs;

	while (p && (p->verbs != id->verbs || p->port != id->port_num))
		p = p->next;
	if (!p)
		p = make(rs, id);
	if (p)
		learn_address(p, id);
	return p;
}

void rs_pair_free(struct rs_pair *p)
{
	int before = errno;

	if (p->qp)
		ibv_destroy_qp(p->qp);
	if (p->cq)
		ibv_destroy_cq(p->cq);
	if (p->channel)
		ibv_destroy_comp_channel(p->channel);
	rs_unmap_region(p->mr);
	free(p->free);
	free(p);
	errno = before;
}

/* ---- sending --------------------------------------------------------------------- */

bool rs_pair_has_room(const struct rs_pair *p)
{
	return p->free_count > 0;
}

/* The header with our address, as the peer knows it. Returns its length. */
static uint32_t put_header(const struct rs *rs, const union rs_name *own, uint8_t *at)
{
	struct rs_header h = { .version = 4, .length = 8, .port = rdma_get_src_port(rs->id) };

	if (own->any.sa_family == AF_INET6) {
		h.version = 6;
		h.length = 24;
		memcpy(&h.address[4], &own->six.sin6_addr, 16);
	} else {
		memcpy(h.address, &own->four.sin_addr, 4);
	}
	memcpy(at, &h, h.length);
	return h.length;
}

int rs_pair_send(struct rs *rs, const struct rs_peer *to, const uint8_t *data, uint32_t length)
{
	struct rs_pair *p = to->pair;
	uint32_t i = p->free[p->free_count - 1], header;
	uint8_t *at = send_at(p, i);
	struct ibv_sge sge = { (uintptr_t)at, 0, p->mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
					.wr.ud = { to->ah, to->qpn, RDMA_UDP_QKEY } };
	int error;

	header = put_header(rs, to->local.any.sa_family == AF_UNSPEC ? &p->own : &to->local, at);
	if (length > p->largest - header)
		return EMSGSIZE;
	if (length)
		memcpy(at + header, data, length);
	sge.length = header + length;
	error = ibv_post_send(p->qp, &wr, &bad);
	if (!error)
		p->free_count--;
	return error;
}
