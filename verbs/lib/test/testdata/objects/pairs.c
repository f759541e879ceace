/* pairs.c - queue pairs: inline data up to its limit, attributes that are queried after they were set, and
 * the event IBV_EVENT_COMM_EST. */
#include <poll.h>

#include "objects.h"

#define WRITABLE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

void case_inline(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 2048 } };
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct end a, b;

	end_init(&a, IBV_QPT_RC, WRITABLE);
	end_init(&b, IBV_QPT_RC, WRITABLE);
	CHECK_RETURNS(ibv_destroy_qp(a.qp), 0);
	init.send_cq = init.recv_cq = a.cq;
	CHECK((a.qp = ibv_create_qp(pd, &init)) && init.cap.max_inline_data >= 2048);
	to_init(a.qp, WRITABLE);
	to_rtr(a.qp, b.qp->qp_num);
	to_rtr(b.qp, a.qp->qp_num);
	to_rts(a.qp);
	to_rts(b.qp);
	for (uint32_t n = 0; n <= 2048; n += 512) {
		memset(a.memory, (int)n + 1, n);
		receive(&b, n, 4096);
		wr = request(&a, IBV_WR_SEND, n, &sge);
		wr.send_flags |= IBV_SEND_INLINE;
		sge.lkey = 0;
		CHECK_RETURNS(post(&a, &wr), 0);
		memset(a.memory, 0, n);
		completion(&a, IBV_WC_SUCCESS);
		CHECK(completion(&b, IBV_WC_SUCCESS).byte_len == n);
		CHECK(!n || (b.memory[0] == (uint8_t)(n + 1) && b.memory[n - 1] == (uint8_t)(n + 1)));
	}
	init.cap.max_inline_data = 2049;
	CHECK_NULL(ibv_create_qp(pd, &init), EINVAL);
	end_free(&a);
	end_free(&b);
}

void case_query(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct end a, b;

	pair_up(&a, &b, IBV_QPT_RC, WRITABLE);
	CHECK_RETURNS(ibv_query_qp(a.qp, &attr, 0x1ffffff, &init), 0);
	CHECK(attr.qp_state == IBV_QPS_RTS && attr.cur_qp_state == IBV_QPS_RTS && attr.path_mtu == IBV_MTU_1024 &&
	      attr.dest_qp_num == b.qp->qp_num && attr.max_dest_rd_atomic == 4 && attr.max_rd_atomic == 4 &&
	      attr.min_rnr_timer == 12 && attr.timeout == 14 && attr.retry_cnt == 7 && attr.rnr_retry == 7 &&
	      attr.port_num == 1 &&
	      attr.ah_attr.is_global && attr.ah_attr.grh.hop_limit == 1 && !memcmp(&attr.ah_attr.grh.dgid, &gid, 16));
	CHECK(init.qp_type == IBV_QPT_RC && init.send_cq == a.cq && init.recv_cq == a.cq && init.cap.max_send_wr >= 32 &&
	      init.cap.max_inline_data == attr.cap.max_inline_data);
	end_free(&a);
	end_free(&b);
}

/* A new queue pair can move to ERR if the device is iWARP, where it begins in a state like INIT. */
static void check_reset_to_error(const struct end *e)
{
	int rnic = context->device->transport_type == IBV_TRANSPORT_IWARP;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp *qp = new_qp(IBV_QPT_RC, e->cq);

	CHECK_RETURNS(ibv_modify_qp(qp, &attr, IBV_QP_STATE), rnic ? 0 : EINVAL);
	CHECK_RETURNS(ibv_modify_qp(qp, &attr, IBV_QP_STATE), rnic ? 0 : EINVAL);
	CHECK_RETURNS(ibv_destroy_qp(qp), 0);
}

/* The attributes that Linux accepts, and those it refuses. */
void case_modify(void)
{
	int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		  IBV_QP_MIN_RNR_TIMER;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .path_mig_state = IBV_MIG_MIGRATED,
				    .ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = gid, .hop_limit = 1 } } };
	struct end a;

	end_init(&a, IBV_QPT_RC, WRITABLE);
	check_reset_to_error(&a);
	attr.dest_qp_num = a.qp->qp_num;
	CHECK_RETURNS(ibv_modify_qp(a.qp, &attr, rtr | IBV_QP_ALT_PATH), EOPNOTSUPP);
	CHECK_RETURNS(ibv_modify_qp(a.qp, &attr, rtr | IBV_QP_PATH_MIG_STATE), EINVAL);
	attr.ah_attr.port_num = 0;
	CHECK_RETURNS(ibv_modify_qp(a.qp, &attr, rtr), EINVAL);
	attr.ah_attr.port_num = 1;
	CHECK_RETURNS(ibv_modify_qp(a.qp, &attr, rtr), 0);
	to_rts(a.qp);
	attr.qp_state = IBV_QPS_RTS;
	CHECK_RETURNS(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MIG_STATE), 0);
	attr.path_mig_state = IBV_MIG_ARMED;
	CHECK_RETURNS(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MIG_STATE), EOPNOTSUPP);
	end_free(&a);
}

/* Raised once, in RTR only. */
void case_comm_est(void)
{
	for (enum ibv_qp_type type = IBV_QPT_RC; type <= IBV_QPT_UC; type++) {
		struct pollfd p = { .fd = context->async_fd, .events = POLLIN };
		struct ibv_async_event event;
		struct ibv_send_wr wr;
		struct ibv_sge sge;
		struct end a, b;

		end_init(&a, type, WRITABLE);
		end_init(&b, type, WRITABLE);
		to_rtr(a.qp, b.qp->qp_num);
		to_rtr(b.qp, a.qp->qp_num);
		to_rts(a.qp);
		for (int i = 0; i < 2; i++) {
			wr = write_to(&a, b.mr->rkey, (uintptr_t)b.memory, 8, &sge);
			CHECK_RETURNS(post(&a, &wr), 0);
			completion(&a, IBV_WC_SUCCESS);
		}
		CHECK(poll(&p, 1, 60000) == 1);
		CHECK_RETURNS(ibv_get_async_event(context, &event), 0);
		CHECK(event.event_type == IBV_EVENT_COMM_EST && event.element.qp == b.qp);
		ibv_ack_async_event(&event);
		CHECK(poll(&p, 1, 100) == 0);
		end_free(&a);
		end_free(&b);
	}
}

/* Immediate data is a message of its own after the Write (RFC 7306 section 6). The Write is refused, so
 * the receive is still posted when the queue pair ends. */
void case_immediate_refused(void)
{
	struct ibv_async_event event;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct end a, b;

	pair_up(&a, &b, IBV_QPT_RC, WRITABLE);
	receive(&b, 3, 64);
	wr = write_to(&a, b.mr->rkey ^ 1, (uintptr_t)b.memory, 64, &sge);
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	CHECK_RETURNS(post(&a, &wr), 0);
	completion(&a, IBV_WC_REM_ACCESS_ERR);
	CHECK(completion(&b, IBV_WC_WR_FLUSH_ERR).wr_id == 3);
	CHECK_RETURNS(ibv_get_async_event(context, &event), 0);
	CHECK(event.event_type == IBV_EVENT_QP_ACCESS_ERR && event.element.qp == b.qp);
	ibv_ack_async_event(&event);
	end_free(&a);
	end_free(&b);
}

/* The wall clock times of many completions, over several polls, increase together with their other
 * timestamps. */
void case_wall_clock(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4096, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(context, &attr);
	struct ibv_qp_init_attr init = { .send_cq = ibv_cq_ex_to_cq(cq), .recv_cq = ibv_cq_ex_to_cq(cq), .qp_type = IBV_QPT_RC,
					 .cap = { 1, 2000, 1, 1, 0 } };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_recv_wr wr = { .num_sge = 0 }, *bad;
	struct ibv_poll_cq_attr poll = { 0 };
	uint64_t apart = 0, wall;

	CHECK(cq && qp);
	to_init(qp, 0);
	for (int i = 0; i < 2000; i++)
		CHECK_RETURNS(ibv_post_recv(qp, &wr, &bad), 0);
	CHECK_RETURNS(ibv_modify_qp(qp, &error, IBV_QP_STATE), 0);
	for (int i = 0; i < 2000;) {
		if (ibv_start_poll(cq, &poll))
			continue;
		do {
			wall = ibv_wc_read_completion_wallclock_ns(cq);
			if (!apart)
				apart = wall - ibv_wc_read_completion_ts(cq);
			CHECK(wall - ibv_wc_read_completion_ts(cq) == apart);
		} while (++i % 10 && !ibv_next_poll(cq));
		ibv_end_poll(cq);
	}
	CHECK(wall / 1000000000 - (uint64_t)time(NULL) + 100 < 200); /* seconds */
	CHECK_RETURNS(ibv_destroy_qp(qp), 0);
	CHECK_RETURNS(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}
