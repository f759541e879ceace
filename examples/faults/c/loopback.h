/* loopback.h - what the tests here test: an RC queue pair connected with itself, and a function that writes by it. */
#ifndef LOOPBACK_H
#define LOOPBACK_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#define LOOPBACK_BYTES (1u << 20)

struct loopback {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *memory; /* LOOPBACK_BYTES to send from, and as many to write to */
};

static inline void loopback_close(struct loopback *l)
{
	if (l->qp)
		ibv_destroy_qp(l->qp);
	if (l->cq)
		ibv_destroy_cq(l->cq);
	if (l->mr)
		ibv_dereg_mr(l->mr);
	if (l->pd)
		ibv_dealloc_pd(l->pd);
	if (l->context)
		ibv_close_device(l->context);
	free(l->memory);
	memset(l, 0, sizeof(*l));
}

/* Returns 0 or an errno value. */
static inline int loopback_connect(struct loopback *l)
{
	struct ibv_qp_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	int status;

	if (ibv_query_port(l->context, 1, &port) || ibv_query_gid(l->context, 1, 0, &gid))
		return EIO;
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = 1;
	attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	status = ibv_modify_qp(l->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (status)
		return status;
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = port.active_mtu;
	attr.dest_qp_num = l->qp->qp_num;
	attr.max_dest_rd_atomic = 1;
	attr.min_rnr_timer = 12;
	attr.ah_attr.dlid = port.lid;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.grh.dgid = gid;
	attr.ah_attr.grh.hop_limit = 1;
	status = ibv_modify_qp(l->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (status)
		return status;
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 1;
	return ibv_modify_qp(l->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

/* Returns 0 or an errno value; nothing remains of a loopback that could not be opened. */
static inline int loopback_open(struct loopback *l)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr attr;
	int status = ENODEV;

	memset(l, 0, sizeof(*l));
	l->context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
	ibv_free_device_list(devices);
	l->memory = (char *)calloc(2, LOOPBACK_BYTES);
	l->pd = l->context ? ibv_alloc_pd(l->context) : NULL;
	l->cq = l->pd ? ibv_create_cq(l->context, 16, NULL, NULL, 0) : NULL;
	l->mr = l->pd ? ibv_reg_mr(l->pd, l->memory, 2 * LOOPBACK_BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
		      : NULL;
	if (l->cq && l->mr) {
		memset(&attr, 0, sizeof(attr));
		attr.send_cq = attr.recv_cq = l->cq;
		attr.cap.max_send_wr = attr.cap.max_recv_wr = 8;
		attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
		attr.qp_type = IBV_QPT_RC;
		l->qp = ibv_create_qp(l->pd, &attr);
	}
	status = l->qp ? loopback_connect(l) : errno;
	if (status)
		loopback_close(l);
	return status;
}

/* Writes bytes, at most LOOPBACK_BYTES. Returns the completion's status, or -errno if the post fails. */
static inline int loopback_write(struct loopback *l, unsigned bytes)
{
	struct ibv_sge sge = { (uintptr_t)l->memory, bytes, l->mr->lkey };
	struct ibv_send_wr wr, *bad;
	struct ibv_wc wc;
	int status, n;

	memset(&wr, 0, sizeof(wr));
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.rdma.remote_addr = (uintptr_t)(l->memory + LOOPBACK_BYTES);
	wr.wr.rdma.rkey = l->mr->rkey;
	status = ibv_post_send(l->qp, &wr, &bad);
	if (status)
		return -status;
	while ((n = ibv_poll_cq(l->cq, 1, &wc)) == 0)
		;
	return n == 1 ? (int)wc.status : -EIO;
}

#endif /* LOOPBACK_H */
