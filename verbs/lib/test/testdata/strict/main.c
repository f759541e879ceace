/* main.c - a wrong and a right program for each behaviour of URDMA_STRICT: NAME wrong|right SECONDS. The
 * wrong one works without URDMA_STRICT; SECONDS is how long it tries. */
#include <poll.h>
#include <time.h>

#include "../faults/ends.h"

#define DEPTH 16

static struct end a, b;
static int wrong, seconds;

/* Prints that the program's mistake has shown, and ends. */
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
	struct ibv_send_wr *bad, wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = flags };

	wr.wr.rdma.remote_addr = (uintptr_t)memory + at;
	wr.wr.rdma.rkey = rkey;
	return ibv_post_send(a.qp, &wr, &bad);
}

static int post_message(uint64_t id, uint32_t value)
{
	struct ibv_send_wr *bad, wr = { .wr_id = id, .opcode = IBV_WR_SEND_WITH_IMM, .imm_data = value,
		.send_flags = IBV_SEND_SIGNALED };

	return ibv_post_send(a.qp, &wr, &bad);
}

static void post_receive(struct end *e, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)memory, 64, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };

	STATUS(e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->qp, &wr, &bad));
}

/* Polls until there is a completion. */
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

/* Uses the opcode of a failed completion, which is undefined. */
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

/* Posts without ever requesting a completion. */
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

/* Assumes that receives are used in the order of posting. */
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

/* Assumes that one queue has its completion when another has. */
static void late(void)
{
	struct ibv_wc wc;

	unnotified = 1;
	pair_up(&a, &b);
	for (uint32_t i = 0; i < 64; i++) {
		post_receive(&b, i);
		STATUS(post_message(i, i));
		CHECK(poll_one(a.cq).status == IBV_WC_SUCCESS);
		if (wrong && ibv_poll_cq(b.cq, 1, &wc) != 1)
			broken("sent, and not received");
		else if (!wrong)
			wc = poll_one(b.cq);
		CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == i);
	}
}

/* Posts more inline data than it has requested. */
static void inline_data(void)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 16, 16, 1, 1, 8 } };
	struct ibv_sge sge = { (uintptr_t)memory, 16, 0 };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_INLINE };

	pair_up(&a, &b);
	STATUS(ibv_destroy_qp(a.qp));
	STATUS(ibv_destroy_qp(b.qp));
	attr.send_cq = attr.recv_cq = a.cq;
	POINTER(a.qp, ibv_create_qp(pd, &attr));
	attr.send_cq = attr.recv_cq = b.cq;
	POINTER(b.qp, ibv_create_qp(pd, &attr));
	to_init(a.qp);
	to_init(b.qp);
	connect_to(a.qp, b.qp->qp_num);
	connect_to(b.qp, a.qp->qp_num);
	if (!wrong && sge.length > attr.cap.max_inline_data)
		sge.length = attr.cap.max_inline_data;
	wr.wr.rdma.remote_addr = (uintptr_t)memory;
	wr.wr.rdma.rkey = mr->rkey;
	if (ibv_post_send(a.qp, &wr, &bad))
		broken("ibv_post_send(3): EINVAL");
}

/* Sends without RNR retries while the receiver is not ready. */
static void rnr(void)
{
	rnr_retry = wrong ? 0 : 7;
	pair_up(&a, &b);
	for (uint32_t i = 0; i < 128; i++) {
		struct ibv_wc wc;

		post_receive(&b, i);
		STATUS(post_message(i, i));
		wc = poll_one(a.cq);
		if (wrong && wc.status == IBV_WC_RNR_RETRY_EXC_ERR)
			broken(ibv_wc_status_str(wc.status));
		CHECK(wc.status == IBV_WC_SUCCESS);
		CHECK(poll_one(b.cq).wr_id == i);
	}
}

/* Takes a completion event, arms, and polls once for each event. */
static int take_event(void)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *its;
	int n;

	MINUS(ibv_get_cq_event(a.channel, &cq, &its));
	ibv_ack_cq_events(cq, 1);
	STATUS(ibv_req_notify_cq(cq, 0));
	n = ibv_poll_cq(cq, 1, &wc);
	if (wrong && n != 1)
		broken("an event and no completion");
	CHECK(n == 0 || wc.status == IBV_WC_SUCCESS);
	return n;
}

/* Assumes that a completion event means a completion. */
static void spurious(void)
{
	struct pollfd channel;

	pair_up(&a, &b);
	channel = (struct pollfd){ .fd = a.channel->fd, .events = POLLIN };
	STATUS(ibv_req_notify_cq(a.cq, 0));
	for (uint64_t i = 0; i < 16; i++) {
		STATUS(post_write(i, IBV_SEND_SIGNALED, mr->rkey, 8, 64));
		while (!take_event())
			;
		if (poll(&channel, 1, 20) == 1)
			CHECK(take_event() == 0);
	}
}

/* Checks the last byte of a Write to see whether it has arrived. */
static void write_order(void)
{
	volatile char *at = memory + LENGTH / 2;
	time_t end = time(NULL) + 60;

	pair_up(&a, &b);
	for (int i = 1; i < 32; i++) {
		memset(memory, i, 1024);
		STATUS(post_write((uint64_t)i, IBV_SEND_SIGNALED, mr->rkey, 1024, LENGTH / 2));
		while (wrong && at[1023] != i)
			CHECK(time(NULL) < end);
		if (wrong && at[0] != i)
			broken("the last byte and not the first");
		CHECK(poll_one(a.cq).status == IBV_WC_SUCCESS);
		CHECK(at[0] == i && at[1023] == i);
	}
}

/* Ends with attributes that do not match: PSNs, path MTUs, max_dest_rd_atomic. */
static void attributes(void)
{
	static const struct {
		struct misfit is;
		enum ibv_wr_opcode opcode;
		enum ibv_wc_status status;
	} misfits[] = { { { .psn = 1 }, IBV_WR_RDMA_WRITE, IBV_WC_RETRY_EXC_ERR },
			{ { .mtu = -1 }, IBV_WR_RDMA_WRITE, IBV_WC_REM_INV_REQ_ERR },
			{ { .reads = -3 }, IBV_WR_RDMA_READ, IBV_WC_REM_INV_REQ_ERR } };
	int bad_ones = 0;

	for (int i = 0; i < 3; i++) {
		struct ibv_sge sge = whole(2000);
		struct ibv_send_wr *bad, next, wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = misfits[i].opcode,
			.send_flags = IBV_SEND_SIGNALED };
		int reads = wr.opcode == IBV_WR_RDMA_READ ? 2 : 1;

		if (i) {
			free_end(&a);
			free_end(&b);
		}
		if (wrong)
			misfit = misfits[i].is;
		pair_up(&a, &b);
		wr.wr.rdma.remote_addr = (uintptr_t)memory + 2048;
		wr.wr.rdma.rkey = mr->rkey;
		next = wr;
		wr.next = reads > 1 ? &next : NULL; /* both at once */
		STATUS(ibv_post_send(a.qp, &wr, &bad));
		for (int j = 0; j < reads; j++) {
			struct ibv_wc wc = poll_one(a.cq);

			CHECK(wc.status == IBV_WC_SUCCESS || (wrong && wc.status == misfits[i].status));
			bad_ones += wc.status != IBV_WC_SUCCESS;
		}
	}
	CHECK(bad_ones == 0 || bad_ones == 3);
	if (bad_ones)
		broken("attributes that do not fit");
}

/* Takes a number or key that it has seen before for the destroyed object. */
static void reuse(void)
{
	uint32_t number, key;
	struct ibv_mr *other;

	pair_up(&a, &b);
	number = a.qp->qp_num; /* the one destroyed last, and the one made first */
	free_end(&b);
	free_end(&a);
	POINTER(other, ibv_reg_mr(pd, memory, 64, IBV_ACCESS_LOCAL_WRITE));
	key = other->rkey;
	STATUS(ibv_dereg_mr(other));
	pair_up(&a, &b);
	POINTER(other, ibv_reg_mr(pd, memory, 64, IBV_ACCESS_LOCAL_WRITE));
	CHECK((other->rkey == key) == (a.qp->qp_num == number));
	if (wrong && other->rkey == key)
		broken("a number and a key came back");
	STATUS(post_write(1, IBV_SEND_SIGNALED, mr->rkey, 64, 2048)); /* the reused number works */
	CHECK(poll_one(a.cq).status == IBV_WC_SUCCESS);
	STATUS(ibv_dereg_mr(other));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} behaviours[] = { { "garbage", garbage }, { "slots", slots }, { "srq-order", srq_order },
			 { "late", late }, { "inline", inline_data }, { "rnr", rnr }, { "spurious", spurious },
			 { "write-order", write_order }, { "attributes", attributes }, { "reuse", reuse } };

	CHECK(argc == 4);
	rnr_retry = 7;
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
