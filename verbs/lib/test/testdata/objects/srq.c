/* srq.c - shared receive queues that are resized while they contain receives. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "objects.h"

#define MESSAGE 100u

static struct ibv_srq *new_srq(uint32_t max_wr, uint32_t limit)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = max_wr, .max_sge = 2, .srq_limit = limit } };
	struct ibv_srq *srq = ibv_create_srq(pd, &attr);

	CHECK(srq);
	return srq;
}

static int resize(struct ibv_srq *srq, uint32_t max_wr)
{
	return ibv_modify_srq(srq, &(struct ibv_srq_attr){ .max_wr = max_wr }, IBV_SRQ_MAX_WR);
}

static void expect(struct ibv_srq *srq, uint32_t max_wr, uint32_t limit)
{
	struct ibv_srq_attr attr;

	CHECK_RETURNS(ibv_query_srq(srq, &attr), 0);
	if (attr.max_wr != max_wr || attr.srq_limit != limit || attr.max_sge != 2) {
		fprintf(stderr, "holds %u with a limit of %u, expected %u and %u\n", attr.max_wr, attr.srq_limit, max_wr, limit);
		exit(1);
	}
}

static int post_one(struct ibv_srq *srq, const struct end *at, uint64_t id)
{
	uintptr_t place = (uintptr_t)at->memory + id % 64 * MESSAGE;
	struct ibv_sge sge[2] = { { place, 10, at->mr->lkey }, { place + 10, MESSAGE - 10, at->mr->lkey } };
	struct ibv_recv_wr *bad = NULL, wr = { .wr_id = id, .sg_list = sge, .num_sge = 2 };
	int status = ibv_post_srq_recv(srq, &wr, &bad);

	CHECK(bad == (status ? &wr : NULL));
	return status;
}

/* A connection whose far end uses srq. */
static void join(struct end *near, struct end *far, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = { .srq = srq, .qp_type = IBV_QPT_RC, .cap = { 4, 0, 1, 0, 0 } };

	end_init(near, IBV_QPT_RC, IBV_ACCESS_LOCAL_WRITE);
	end_init(far, IBV_QPT_RC, IBV_ACCESS_LOCAL_WRITE);
	CHECK_RETURNS(ibv_destroy_qp(far->qp), 0);
	attr.send_cq = attr.recv_cq = far->cq;
	CHECK((far->qp = ibv_create_qp(pd, &attr)));
	to_init(far->qp, IBV_ACCESS_LOCAL_WRITE);
	to_rtr(near->qp, far->qp->qp_num);
	to_rtr(far->qp, near->qp->qp_num);
	to_rts(near->qp);
	to_rts(far->qp);
}

/* Sends message id, which must consume the receive with that number. */
static void cross(struct end *near, struct end *far, uint64_t id)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = request(near, IBV_WR_SEND, MESSAGE, &sge);
	struct ibv_wc wc;

	memset(near->memory, (int)(id & 0xff), MESSAGE);
	CHECK_RETURNS(post(near, &wr), 0);
	wc = completion(far, IBV_WC_SUCCESS);
	completion(near, IBV_WC_SUCCESS);
	if (wc.wr_id != id || memcmp(near->memory, far->memory + id % 64 * MESSAGE, MESSAGE)) {
		fprintf(stderr, "message %lu took receive %lu\n", id, wc.wr_id);
		exit(1);
	}
}

static void expect_limit_event(struct ibv_srq *srq)
{
	struct ibv_async_event event;

	CHECK_RETURNS(ibv_get_async_event(context, &event), 0);
	CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == srq);
	ibv_ack_async_event(&event);
}

/* Grown and shrunk with receives in it, which keep their order. */
void case_srq_resize(void)
{
	struct ibv_srq *srq = new_srq(8, 0);
	struct end near, far;
	uint64_t posted = 0, taken = 0;

	join(&near, &far, srq);
	while (posted < 8)
		CHECK_RETURNS(post_one(srq, &far, posted++), 0);
	CHECK_RETURNS(post_one(srq, &far, 99), ENOMEM);
	CHECK_RETURNS(resize(srq, 16), 0);
	expect(srq, 16, 0);
	while (posted < 16)
		CHECK_RETURNS(post_one(srq, &far, posted++), 0);
	CHECK_RETURNS(post_one(srq, &far, 99), ENOMEM);
	while (taken < 3)
		cross(&near, &far, taken++);
	CHECK_RETURNS(resize(srq, 12), EINVAL); /* 13 are posted */
	expect(srq, 16, 0);
	CHECK_RETURNS(resize(srq, 13), 0);
	CHECK_RETURNS(post_one(srq, &far, 99), ENOMEM);
	cross(&near, &far, taken++);
	CHECK_RETURNS(post_one(srq, &far, posted++), 0);

	CHECK_RETURNS(ibv_modify_srq(srq, &(struct ibv_srq_attr){ .srq_limit = 3 }, IBV_SRQ_LIMIT), 0);
	CHECK_RETURNS(resize(srq, 40), 0);
	expect(srq, 40, 3);
	while (posted - taken > 2)
		cross(&near, &far, taken++);
	expect_limit_event(srq);
	expect(srq, 40, 0);
	CHECK_RETURNS(resize(srq, 2), 0);
	while (taken < posted)
		cross(&near, &far, taken++);
	end_free(&near);
	end_free(&far);
	CHECK_RETURNS(ibv_destroy_srq(srq), 0);
}

/* A failed resize changes nothing. */
void case_srq_resize_refused(void)
{
	struct ibv_srq *srq = new_srq(8, 5);
	struct ibv_device_attr device;

	CHECK_RETURNS(ibv_query_device(context, &device), 0);
	CHECK(device.device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
	CHECK_RETURNS(resize(srq, 0), EINVAL);
	CHECK_RETURNS(resize(srq, (uint32_t)device.max_srq_wr + 1), EINVAL);
	CHECK_RETURNS(resize(srq, 4), EINVAL); /* less than the limit */
	CHECK_RETURNS(ibv_modify_srq(srq, &(struct ibv_srq_attr){ 3, 0, 4 }, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	CHECK_RETURNS(ibv_modify_srq(srq, &(struct ibv_srq_attr){ 9, 0, 4 }, IBV_SRQ_MAX_WR | 1 << 7), EINVAL);
	expect(srq, 8, 5);
	CHECK_RETURNS(ibv_modify_srq(srq, &(struct ibv_srq_attr){ 3, 0, 2 }, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
	expect(srq, 3, 2);
	CHECK_RETURNS(resize(srq, (uint32_t)device.max_srq_wr), 0);
	expect(srq, (uint32_t)device.max_srq_wr, 2);
	CHECK_RETURNS(ibv_destroy_srq(srq), 0);
}

static bool stop;

static void *resize_on(void *arg)
{
	for (uint32_t i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
		CHECK_RETURNS(resize(arg, 16u << i % 3), 0);
		usleep(300); /* the lock is free meanwhile */
	}
	return arg;
}

/* One thread posts while another resizes. */
void case_srq_resize_threads(void)
{
	struct ibv_srq *srq = new_srq(16, 0);
	struct end near, far;
	uint64_t posted = 0;
	pthread_t resizer;

	join(&near, &far, srq);
	CHECK(!pthread_create(&resizer, NULL, resize_on, srq));
	for (uint64_t taken = 0; taken < 200; taken++) {
		while (posted - taken < 16)
			CHECK_RETURNS(post_one(srq, &far, posted++), 0);
		cross(&near, &far, taken);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(resizer, NULL);
	end_free(&near);
	end_free(&far);
	CHECK_RETURNS(ibv_destroy_srq(srq), 0);
}
