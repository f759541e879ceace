/* again.c - values returned by a call are accepted by the next one. */
#include "objects.h"

static struct ibv_device_attr device;

/* A queue pair with the actual caps of another one. */
static void pair_again(struct ibv_cq *cq, struct ibv_srq *srq, enum ibv_qp_type type, struct ibv_qp_cap cap)
{
	struct ibv_qp_init_attr queried, made = { .send_cq = cq, .recv_cq = cq, .srq = srq, .qp_type = type, .cap = cap };
	struct ibv_qp *qp = ibv_create_qp(pd, &made);
	struct ibv_qp_attr attr;

	CHECK(qp && made.cap.max_send_wr >= cap.max_send_wr && made.cap.max_send_sge >= cap.max_send_sge &&
	      made.cap.max_inline_data >= cap.max_inline_data);
	CHECK_RETURNS(ibv_query_qp(qp, &attr, IBV_QP_CAP, &queried), 0);
	CHECK(!memcmp(&made.cap, &queried.cap, sizeof(made.cap)) && !memcmp(&made.cap, &attr.cap, sizeof(made.cap)));
	CHECK_RETURNS(ibv_destroy_qp(qp), 0);
	queried = made;
	qp = ibv_create_qp(pd, &made);
	if (!qp || memcmp(&made.cap, &queried.cap, sizeof(made.cap))) {
		fprintf(stderr, "type %d: asked for %u sends of %u elements or %u bytes; what that returned, %u, %u and %u, gives "
			"%p, errno %d\n", (int)type,
			cap.max_send_wr, cap.max_send_sge, cap.max_inline_data, queried.cap.max_send_wr, queried.cap.max_send_sge,
			queried.cap.max_inline_data, (void *)qp, errno);
		exit(1);
	}
	CHECK_RETURNS(ibv_destroy_qp(qp), 0);
}

static void pairs_again(struct ibv_cq *cq)
{
	const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
	uint32_t most = 1; /* inline data: no attribute has its maximum */

	for (;; most++) {
		struct ibv_qp_init_attr attr = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, most } };
		struct ibv_qp *qp = ibv_create_qp(pd, &attr);

		if (!qp)
			break;
		CHECK_RETURNS(ibv_destroy_qp(qp), 0);
	}
	most--;
	for (unsigned int t = 0; t < sizeof(types) / sizeof(types[0]); t++)
		for (uint32_t sge = 0; sge <= (uint32_t)device.max_sge; sge = sge ? 2 * sge : 1)
			for (uint32_t bytes = 0; bytes <= most; bytes += most / 2)
				pair_again(cq, NULL, types[t], (struct ibv_qp_cap){ (uint32_t)device.max_qp_wr, (uint32_t)device.max_qp_wr, sge,
					sge, bytes });
}

static void queues_again(void)
{
	for (int entries = device.max_cqe; entries; entries /= 3) {
		struct ibv_cq *other, *cq = ibv_create_cq(context, entries, NULL, NULL, 0);

		CHECK(cq && cq->cqe >= entries);
		CHECK((other = ibv_create_cq(context, cq->cqe, NULL, NULL, 0)) && other->cqe == cq->cqe);
		CHECK_RETURNS(ibv_resize_cq(cq, other->cqe), 0);
		CHECK(cq->cqe == other->cqe);
		CHECK_RETURNS(ibv_destroy_cq(cq), 0);
		CHECK_RETURNS(ibv_destroy_cq(other), 0);
	}
}

static void shared_again(void)
{
	for (int entries = device.max_srq_wr; entries; entries /= 3) {
		struct ibv_srq_init_attr attr = { .attr = { .max_wr = (uint32_t)entries, .max_sge = (uint32_t)device.max_srq_sge,
			.srq_limit = (uint32_t)entries } };
		struct ibv_srq *other, *srq = ibv_create_srq(pd, &attr);
		struct ibv_srq_attr queried;

		CHECK(srq);
		CHECK_RETURNS(ibv_query_srq(srq, &queried), 0);
		CHECK((other = ibv_create_srq(pd, &(struct ibv_srq_init_attr){ .attr = queried })));
		CHECK_RETURNS(ibv_modify_srq(other, &queried, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
		CHECK_RETURNS(ibv_destroy_srq(srq), 0);
		CHECK_RETURNS(ibv_destroy_srq(other), 0);
	}
}

/* A queue pair with the attributes of a connected one. */
static void attributes_again(void)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct end a, b, c;

	pair_up(&a, &b, IBV_QPT_RC, IBV_ACCESS_LOCAL_WRITE);
	CHECK_RETURNS(ibv_query_qp(a.qp, &attr, 0x1ffffff, &init), 0);
	end_init(&c, IBV_QPT_RC, IBV_ACCESS_LOCAL_WRITE);
	CHECK_RETURNS(ibv_destroy_qp(c.qp), 0);
	CHECK((c.qp = ibv_create_qp(pd, &init)));
	attr.qp_state = IBV_QPS_INIT;
	CHECK_RETURNS(ibv_modify_qp(c.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
	attr.qp_state = IBV_QPS_RTR;
	CHECK_RETURNS(ibv_modify_qp(c.qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), 0);
	attr.qp_state = IBV_QPS_RTS;
	CHECK_RETURNS(ibv_modify_qp(c.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
		IBV_QP_RNR_RETRY |
				    IBV_QP_MAX_QP_RD_ATOMIC), 0);
	attr.cur_qp_state = IBV_QPS_RTS;
	CHECK_RETURNS(ibv_modify_qp(c.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER),
		0);
	end_free(&c); /* before a: it completes on a's queue */
	end_free(&a);
	end_free(&b);
}

/* Attributes of a receive queue are ignored for a queue pair with a shared one (ibv_create_qp(3)). */
static void receives_ignored(struct ibv_cq *cq)
{
	struct ibv_srq *srq = ibv_create_srq(pd, &(struct ibv_srq_init_attr){ .attr = { .max_wr = 1, .max_sge = 1 } });
	const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UD };

	CHECK(srq);
	for (unsigned int t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		pair_again(cq, srq, types[t], (struct ibv_qp_cap){ 1, (uint32_t)device.max_qp_wr + 1, 1, (uint32_t)device.max_sge + 1,
			0 });
		pair_again(cq, srq, types[t], (struct ibv_qp_cap){ 1, UINT32_MAX, 1, UINT32_MAX, 0 });
	}
	CHECK_RETURNS(ibv_destroy_srq(srq), 0);
}

void case_again(void)
{
	struct ibv_cq *cq;

	CHECK_RETURNS(ibv_query_device(context, &device), 0);
	CHECK((cq = ibv_create_cq(context, 1, NULL, NULL, 0)));
	receives_ignored(cq);
	pairs_again(cq);
	queues_again();
	shared_again();
	attributes_again();
	CHECK_RETURNS(ibv_destroy_cq(cq), 0);
}
