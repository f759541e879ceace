/* forks.c - messages between two threads while a third forks: each is received as it was sent, and each
 * child has its own copy. */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "slots.h"

#define FORKS 300
#define RECEIVES 4u
#define WORDS 24u /* length of a message */
#define BYTES (WORDS * 8)

struct talk {
	struct end from, to;
	uint64_t *out, *in; /* one message; RECEIVES messages */
	struct ibv_mr *mr;
	uint64_t sent, received, wrong;
	bool stop;
};

static int post_out(struct talk *t, uint64_t n)
{
	struct ibv_sge sge = { (uintptr_t)t->out, BYTES, t->mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = n, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
					.send_flags = IBV_SEND_SIGNALED };

	return ibv_post_send(t->from.qp, &wr, &bad);
}

static int post_in(struct talk *t, uint64_t n)
{
	struct ibv_sge sge = { (uintptr_t)(t->in + n % RECEIVES * WORDS), BYTES, t->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = n, .sg_list = &sge, .num_sge = 1 };

	return ibv_post_recv(t->to.qp, &wr, &bad);
}

static uint64_t next_of(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int got;

	while (!(got = ibv_poll_cq(cq, 1, &wc)))
		sched_yield();
	CHECK(got == 1 && wc.status == IBV_WC_SUCCESS);
	return wc.wr_id;
}

static void *send_all(void *arg)
{
	struct talk *t = arg;

	for (uint64_t n = 1; !__atomic_load_n(&t->stop, __ATOMIC_RELAXED); n++) {
		for (unsigned int w = 0; w < WORDS; w++)
			t->out[w] = n;
		CHECK_RETURNS(post_out(t, n), 0);
		CHECK(next_of(t->from.qp->send_cq) == n);
		t->sent = n;
	}
	return NULL;
}

/* The last message, sent by the first thread, is all ones. */
static void *receive_all(void *arg)
{
	struct talk *t = arg;
	const uint64_t *message;

	for (uint64_t n = 1; n <= RECEIVES; n++)
		CHECK_RETURNS(post_in(t, n), 0);
	for (uint64_t n = 1;; n++) {
		CHECK(next_of(t->to.qp->recv_cq) == n);
		message = t->in + n % RECEIVES * WORDS;
		if (message[0] == UINT64_MAX)
			return NULL;
		for (unsigned int w = 0; w < WORDS; w++)
			t->wrong += message[w] != n;
		__atomic_store_n(&t->received, n, __ATOMIC_RELAXED);
		CHECK_RETURNS(post_in(t, n + RECEIVES), 0);
	}
}

/* Nothing that the child writes may be sent or seen. */
static void child(struct talk *t)
{
	alarm(120);
	memset(t->out, 0xAA, BYTES);
	memset(t->in, 0xAA, RECEIVES * BYTES);
	usleep(300);
	for (unsigned int w = 0; w < WORDS; w++)
		if (t->out[w] != 0xAAAAAAAAAAAAAAAA || t->in[w] != 0xAAAAAAAAAAAAAAAA)
			_exit(1);
	_exit(0);
}

/* Forks until enough messages have been received, however slowly. */
static void fork_often(struct talk *t)
{
	int status;
	pid_t pid;

	for (uint64_t i = 0; i < FORKS || __atomic_load_n(&t->received, __ATOMIC_RELAXED) <= FORKS; i++) {
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0)
			child(t);
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
		usleep(200);
	}
}

static void talk_in(uint64_t *area, size_t length)
{
	struct talk t = { .out = area, .in = area + WORDS };
	pthread_t sender, receiver;

	CHECK((t.mr = ibv_reg_mr(pd, area, length, IBV_ACCESS_LOCAL_WRITE)));
	pair_up(&t.from, &t.to);
	CHECK(!pthread_create(&receiver, NULL, receive_all, &t));
	CHECK(!pthread_create(&sender, NULL, send_all, &t));
	fork_often(&t);
	__atomic_store_n(&t.stop, true, __ATOMIC_RELAXED);
	pthread_join(sender, NULL);
	memset(t.out, 0xFF, BYTES);
	CHECK_RETURNS(post_out(&t, 0), 0);
	pthread_join(receiver, NULL);
	printf("%lu messages received, %lu words wrong\n", t.received, t.wrong);
	fflush(stdout);
	CHECK(t.received == t.sent && t.received > FORKS);
	CHECK(t.wrong == 0);
}

static void *pages(size_t n)
{
	void *p = mmap(NULL, n * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

void case_forks(void)
{
	talk_in(pages(2), 2 * 4096);
}

/* Memory that urdmad maps, too. */
void case_forks_shared(void)
{
	void *(*alloc)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "urdma_alloc");

	talk_in(alloc(2 * 4096), 2 * 4096);
}

/* Only part of the page is registered. */
void case_forks_edges(void)
{
	talk_in((uint64_t *)pages(1) + 20, (RECEIVES + 1) * BYTES);
}

/* ibv_fork_init changes nothing, as on a kernel that copies: the child may read. */
void case_fork_init(void)
{
	char *p = pages(3);
	int status;
	pid_t pid;

	CHECK_RETURNS(ibv_fork_init(), 0);
	CHECK_RETURNS(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
	memset(p, 3, 3 * 4096);
	CHECK(ibv_reg_mr(pd, p + 10, 3 * 4096 - 20, IBV_ACCESS_LOCAL_WRITE));
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		for (int i = 0; i < 3 * 4096; i++)
			if (p[i]++ != 3)
				_exit(1);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(p[0] == 3 && p[5000] == 3);
}
