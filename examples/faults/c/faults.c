/* faults.c - tests of error handling, with a main of their own: exits with 77 if they can't run, as automake's. */
#include <stdio.h>
#include <urdma_inject.h>

#include "loopback.h"

#define CHECK(is, expected) \
	do { \
		long long is_ = (is), expected_ = (expected); \
		if (is_ != expected_) { \
			fprintf(stderr, "%s:%d: %s is %lld, expected %lld\n", __FILE__, __LINE__, #is, is_, expected_); \
			exit(1); \
		} \
	} while (0)

/* A completion fails. */
static void test_third_write_fails(struct loopback *l)
{
	int64_t rule = urdma_inject("send status=RETRY_EXC_ERR nth=3 qp=%x", l->qp->qp_num);

	CHECK(rule > 0, 1);
	CHECK(loopback_write(l, 64), IBV_WC_SUCCESS);
	CHECK(loopback_write(l, 64), IBV_WC_SUCCESS);
	CHECK(urdma_inject("hits %u", (unsigned)rule), 0);
	CHECK(loopback_write(l, 64), IBV_WC_RETRY_EXC_ERR);
	CHECK(loopback_write(l, 64), IBV_WC_WR_FLUSH_ERR);
	CHECK(urdma_inject("hits %u", (unsigned)rule), 1);
}

/* A connection is cut after 1 MiB. */
static void test_cut_after_1_MiB(struct loopback *l)
{
	CHECK(urdma_inject("send status=RETRY_EXC_ERR bytes=1MiB qp=%x", l->qp->qp_num) > 0, 1);
	for (int i = 0; i < 16; i++)
		CHECK(loopback_write(l, 65536), IBV_WC_SUCCESS);
	CHECK(loopback_write(l, 65536), IBV_WC_RETRY_EXC_ERR);
}

/* The peer refuses a write. */
static void test_write_is_refused(struct loopback *l)
{
	CHECK(urdma_inject("respond answer=access opcode=RDMA_WRITE qp=%x", l->qp->qp_num) > 0, 1);
	CHECK(loopback_write(l, 64), IBV_WC_REM_ACCESS_ERR);
}

/* A call fails: the second ibv_post_send of this process from now on. */
static void test_post_fails(struct loopback *l)
{
	int64_t rule = urdma_inject("call ibv_post_send errno=ENOMEM nth=2");

	CHECK(rule > 0, 1);
	CHECK(loopback_write(l, 64), IBV_WC_SUCCESS);
	CHECK(loopback_write(l, 64), -ENOMEM);
	CHECK(loopback_write(l, 64), IBV_WC_SUCCESS);
	CHECK(urdma_inject("hits %u", (unsigned)rule), 1);
}

/* Nothing leaks if memory can't be registered: loopback_open has failed, and opens the next time. */
static void test_registration_fails(struct loopback *l)
{
	loopback_close(l);
	CHECK(urdma_inject("call ibv_reg_mr errno=ENOMEM") > 0, 1);
	CHECK(loopback_open(l), ENOMEM);
	CHECK(loopback_open(l), 0);
}

/* An asynchronous event. */
static void test_event(struct loopback *l)
{
	struct ibv_async_event event;

	CHECK(urdma_inject("qp %x QP_ACCESS_ERR", l->qp->qp_num), 0);
	CHECK(ibv_get_async_event(l->context, &event), 0);
	CHECK(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
	ibv_ack_async_event(&event);
}

int main(void)
{
	static void (*const tests[])(struct loopback *) = { test_third_write_fails, test_cut_after_1_MiB,
		test_write_is_refused, test_post_fails, test_registration_fails, test_event };
	unsigned n = sizeof(tests) / sizeof(*tests);

	if (urdma_inject("clear") == -EOPNOTSUPP) {
		puts("SKIP: this needs urdma");
		return 77;
	}
	for (unsigned i = 0; i < n; i++) {
		struct loopback l;

		CHECK(loopback_open(&l), 0);
		tests[i](&l);
		CHECK(urdma_inject("clear"), 0); /* nothing is left for the next test */
		loopback_close(&l);
	}
	printf("%u tests passed\n", n);
	return 0;
}
