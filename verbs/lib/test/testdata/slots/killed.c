/* killed.c - kill -9 of urdmad at any moment: every request that must complete has exactly one completion,
 * made by urdmad or by the library. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "slots.h"

#define MOST (1u << 20)

/* The result of each request, by its wr_id. */
struct log {
	uint32_t posted;
	uint8_t signaled[MOST], completed[MOST], succeeded[MOST];
};

static struct log writes, sends, receives;

static uint32_t seed;

static uint32_t chance(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static void *kill_later(void *arg)
{
	struct timespec wait = { .tv_nsec = 1000 + (long)chance(3000000) };

	nanosleep(&wait, NULL);
	kill(*(pid_t *)arg, SIGKILL);
	return NULL;
}

/* Polls once; returns false if there was nothing. */
static bool take(struct ibv_cq *cq, struct log *log)
{
	struct ibv_wc wc[8];
	int got = ibv_poll_cq(cq, 1 + (int)chance(8), wc);

	CHECK(got >= 0);
	for (int i = 0; i < got; i++) {
		CHECK(wc[i].wr_id < log->posted);
		log->completed[wc[i].wr_id]++;
		log->succeeded[wc[i].wr_id] |= wc[i].status == IBV_WC_SUCCESS;
	}
	return got > 0;
}

/* Posts and polls at random until urdmad has ended. */
static void work(struct end *a, struct end *b, struct end *c)
{
	int status[3];
	bool signaled;

	do {
		signaled = chance(3) == 0;
		writes.signaled[writes.posted] = signaled;
		status[0] = writes.posted + 1 < MOST ? post_write(c, writes.posted, signaled ? IBV_SEND_SIGNALED : 0) : ENOMEM;
		writes.posted += !status[0];
		sends.signaled[sends.posted] = 1;
		status[1] = chance(2) && sends.posted + 1 < MOST ? post_message(a, sends.posted) : ENOMEM;
		sends.posted += !status[1];
		receives.signaled[receives.posted] = 1;
		status[2] = receives.posted + 1 < MOST ? post_receive(b, receives.posted) : ENOMEM;
		receives.posted += !status[2];
		if (chance(4) == 0)
			take(c->qp->send_cq, &writes);
		if (chance(4) == 0)
			take(a->qp->send_cq, &sends);
		if (chance(4) == 0)
			take(b->qp->recv_cq, &receives);
		for (int i = 0; i < 3; i++)
			CHECK(status[i] == 0 || status[i] == ENOMEM || status[i] == EIO);
	} while (status[0] != EIO);
}

static int check(const char *what, const struct log *log)
{
	int wrong = 0;

	for (uint32_t i = 0; i < log->posted; i++) {
		if (log->completed[i] == 1 && (log->signaled[i] || !log->succeeded[i]))
			continue;
		if (log->completed[i] == 0 && !log->signaled[i])
			continue;
		fprintf(stderr, "%s %u of %u, signaled %d, has %d completions\n", what, i, log->posted, log->signaled[i],
			log->completed[i]);
		wrong++;
	}
	return wrong;
}

void case_killed(void)
{
	pid_t urdmad = atoi(getenv("URDMAD_PID"));
	struct ibv_cq *cq = make_cq(DEPTH), *receives_cq = make_cq(DEPTH), *writes_cq = make_cq(DEPTH);
	struct end a, b, c, d;
	pthread_t thread;
	int wrong;

	seed = (uint32_t)urdmad;
	join(&a, make_pair(cq, make_cq(DEPTH)), &b, make_pair(make_cq(DEPTH), receives_cq));
	join(&c, make_pair(writes_cq, make_cq(DEPTH)), &d, make_pair(make_cq(DEPTH), make_cq(DEPTH)));
	CHECK(!pthread_create(&thread, NULL, kill_later, &urdmad));
	work(&a, &b, &c);
	pthread_join(thread, NULL);
	while (take(cq, &sends) || take(receives_cq, &receives) || take(writes_cq, &writes))
		;
	wrong = check("write", &writes) + check("send", &sends) + check("receive", &receives);
	if (wrong)
		exit(1);
	printf("%u writes, %u sends, %u receives\n", writes.posted, sends.posted, receives.posted);
}
