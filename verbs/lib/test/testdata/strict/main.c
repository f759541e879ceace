/* main.c - a wrong and a right program for each behaviour of URDMA_STRICT: NAME wrong|right
 * SECONDS. The wrong one works while nothing is strict; SECONDS is how long it tries. */
#include <time.h>

#include "../faults/ends.h"

#define DEPTH 16

static struct end a, b;
static int wrong, seconds;

/* What is wrong shows: the program says it and ends. */
static void broken(const char *what)
{
	printf("broken: %s\n", what);
	exit(0);
}

static struct ibv_sge whole(uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)memory, length, mr->lkey };
}

static int post_write(uint64_t id, unsigned int flags, uint32_t rkey, uint32_t length, uint32_t at)
{
	struct ibv_sge sge = whole(length);
	struct ibv_send_wr *bad, wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = flags };

	wr.wr.rdma.remote_addr = (uintptr_t)memory + at;
	wr.wr.rdma.rkey = rkey;
	return ibv_post_send(a.qp, &wr, &bad);
}

static int post_message(uint64_t id, uint32_t value)
{
	struct ibv_send_wr *bad, wr = { .wr_id = id, .opcode = IBV_WR_SEND_WITH_IMM, .imm_data = value, .send_flags = IBV_SEND_SIGNALED };

	return ibv_post_send(a.qp, &wr, &bad);
}

static void post_receive(struct end *e, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)memory, 64, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };

	STATUS(e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->qp, &wr, &bad));
}

/* Polls until there is one. */
static struct ibv_wc poll_one(struct ibv_cq *cq)
{
	time_t end = time(NULL) + 60;
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		CHECK(time(NULL) < end);
	CHECK(n == 1);
	return wc;
}

/* Takes a failed completion's opcode for what it says of others. */
static void garbage(void)
{
	struct ibv_wc wc;

	pair_up(&a, &b);
	STATUS(post_write(7, IBV_SEND_SIGNALED, mr->rkey ^ 0x5a5a00, 8, 0));
	wc = poll_one(a.cq);
	CHECK(wc.status == IBV_WC_REM_ACCESS_ERR && wc.wr_id == 7 && wc.qp_num == a.qp->qp_num);
	if (wrong && (wc.opcode != IBV_WC_RDMA_WRITE || wc.wc_flags))
		broken("a failed completion of no operation");
}

/* Posts without ever asking for a completion. */
static void slots(void)
{
	time_t end = time(NULL) + seconds;

	pair_up(&a, &b);
	for (int i = 0; i < 4 * DEPTH; i++) {
		unsigned int flags = !wrong && i % (DEPTH / 2) == 0 ? IBV_SEND_SIGNALED : 0;
		int status;

		if (flags && i)
			CHECK(poll_one(a.cq).status == IBV_WC_SUCCESS);
		while ((status = post_write(7, flags, mr->rkey, 8, 64)) == ENOMEM) {
			if (time(NULL) > end)
				broken("ibv_post_send(3): ENOMEM");
		}
		CHECK(!status);
	}
}

/* Takes receives for used in the order of posting. */
static void srq_order(void)
{
	unsigned int used = 0;

	make_end(&a, 0);
	make_end(&b, 1);
	connect_to(a.qp, b.qp->qp_num);
	connect_to(b.qp, a.qp->qp_num);
	for (uint32_t i = 0; i < 4; i++)
		post_receive(&b, i);
	for (uint32_t i = 0; i < 4; i++)
		STATUS(post_message(i, i));
	for (uint32_t i = 0; i < 4; i++) {
		struct ibv_wc wc = poll_one(b.cq);

		CHECK(wc.status == IBV_WC_SUCCESS && wc.imm_data == i && wc.wr_id < 4);
		used |= 1u << wc.wr_id;
		if (wrong && wc.wr_id != i)
			broken("another receive");
	}
	CHECK(used == 0xf);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} behaviours[] = { { "garbage", garbage }, { "slots", slots }, { "srq-order", srq_order } };

	CHECK(argc == 4);
	wrong = strcmp(argv[2], "wrong") == 0;
	seconds = atoi(argv[3]);
	open_all();
	for (size_t i = 0; i < sizeof(behaviours) / sizeof(behaviours[0]); i++) {
		if (strcmp(argv[1], behaviours[i].name) == 0) {
			behaviours[i].run();
			free_end(&a);
			free_end(&b);
			puts("done");
			return 0;
		}
	}
	CHECK(!"no such behaviour");
}
