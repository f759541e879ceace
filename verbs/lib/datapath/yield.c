/*
 * yield.c - when a program gives its core to urdmad. bench/floor/README.md
 * measured why: where both share a core, what the program waits for can only
 * happen after a yield; where they don't, a yield finds nobody and costs.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "objects.h"

#define ALONE 1000u       /* ns: a shorter yield met nobody who wants the core; for a urdmad that doesn't say */
#define ALONE_MOST 30000u /* ns */
/* Multiples of that, by which slow machines are told from fast ones: */
#define POST_AGAIN 5u  /* after which a post that no poll preceded yields again */
#define ALONE_REST 2u  /* without a yield after one that met nobody */
#define WAIT_MOST 200u /* urdmad wakes us before, if it completes something */
#define ELSEWHERE 16u    /* empty polls of other queues that are a round, too: the first may be polled no more */
#define MOST_QUEUES 4096u /* empty polls after which a thread has looked at all its queues, for the same reason */

#define PROBE_AFTER 10000000u /* ns that others ran in our yields after which we look whether urdmad lives */

/*
 * What a thread waits for. It may poll several queues in turn, look at memory
 * that a peer writes to and call others' progress functions; it has nothing left
 * to do when it comes round to the queue at which it began. One yield a round is
 * right: a further one gives a core away while what the first brought is unseen.
 * Initial-exec, so that polling never allocates.
 */
static _Thread_local struct {
	const struct urdma_cq *at; /* the queue at which the round began; NULL: none did. Never dereferenced */
	uint32_t elsewhere;        /* empty polls of others since */
	uint32_t rounds;           /* since the last yield */
	uint64_t rest_until;       /* ns: no yield before */
	const struct urdma_cq *from; /* where the look at all queues began that precedes a wait; like at */
	uint32_t looks;            /* empty polls since */
	bool looked;               /* at all of them */
	uint64_t away;             /* ns that others ran in our yields, since urdmad was last looked at */
} waits __attribute__((tls_model("initial-exec")));

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The program's errno is not a poll's or a post's to change. */
static void give_core(void)
{
	int saved = errno;

	sched_yield();
	errno = saved;
}

/* Nanoseconds that a yield takes at least which lets somebody else run. */
static uint32_t alone_ns(const struct urdma_abi_doorbells *bells)
{
	uint32_t told = URDMA_LOAD(bells->yield_alone);

	if (!told)
		return ALONE;
	return told < ALONE_MOST ? told : ALONE_MOST;
}

/* Takes the mark a poll of either queue left. Two posting threads may both
 * see it: then both yield, which is harmless. */
static bool polled_since(const struct ibv_qp *qp)
{
	struct urdma_cq *send = urdma_cq_of(qp->send_cq), *recv = urdma_cq_of(qp->recv_cq);
	bool polled;

	if (!recv) /* of type XRC_SEND */
		recv = send;
	polled = URDMA_LOAD(send->polled) || URDMA_LOAD(recv->polled);

	if (polled) {
		URDMA_STORE(send->polled, false);
		URDMA_STORE(recv->polled, false);
	}
	return polled;
}

/* A burst of posts yields once. */
static void yield_after_post(struct urdma_qp *qp)
{
	const struct urdma_abi_doorbells *bells = qp->bells;
	uint64_t now;

	if (!URDMA_LOAD(bells->yield_post) || URDMA_LOAD(bells->core) != (uint32_t)sched_getcpu())
		return;
	if (!polled_since(&qp->ex.qp_base)) {
		now = now_ns();
		if (now - URDMA_LOAD(qp->yielded) < POST_AGAIN * alone_ns(bells))
			return;
		URDMA_STORE(qp->yielded, now);
	}
	give_core();
}

void urdma_announce_send(struct urdma_qp *qp)
{
	if (!urdma_ring_doorbell(qp))
		yield_after_post(qp);
}

/* Whether an empty poll of cq ends a round. */
static bool comes_round(const struct urdma_cq *cq)
{
	bool begins = !waits.at;

	if (!begins && cq != waits.at && ++waits.elsewhere < ELSEWHERE)
		return false;
	waits.at = cq;
	waits.elsewhere = 0;
	return !begins;
}

/* Notes that cq was found empty. A completion that is there already ends no wait,
 * so each queue is looked at before one, however many there are. */
static void look(const struct urdma_cq *cq)
{
	if (!waits.from) {
		waits.from = cq;
		waits.looks = 0;
	} else if (cq == waits.from || ++waits.looks >= MOST_QUEUES) {
		waits.looked = true;
	}
}

static void look_anew(const struct urdma_cq *from)
{
	waits.from = from;
	waits.looks = 0;
	waits.looked = false;
}

/* With the lock, for ibv_resize_cq on another thread unmaps the ring. */
static bool has_news(struct urdma_cq *cq)
{
	int taken = urdma_lock_take(&cq->lock);
	bool news = __atomic_load_n(&cq->ring->prod, __ATOMIC_SEQ_CST) != __atomic_load_n(&cq->ring->cons, __ATOMIC_RELAXED);

	urdma_lock_drop(&cq->lock, taken);
	return news;
}

/*
 * A yield meets only threads of our own scheduling group; urdmad, started in
 * another session or by systemd, may be in another and get this core only when
 * the kernel ends our slice, milliseconds later. So what needs the core that we
 * poll on gets it by our waiting. The order is urdma_abi.h's. The other queues
 * were looked at while urdmad could not run. One that died wakes nobody: to wait
 * until CHECK_EVERY polls were empty would take seconds.
 */
static void wait_for_urdmad(struct urdma_cq *cq, struct urdma_abi_doorbells *bells)
{
	struct timespec most = { .tv_nsec = WAIT_MOST * alone_ns(bells) };
	int saved = errno;

	__atomic_store_n(&bells->waits, 1, __ATOMIC_SEQ_CST);
	if (!has_news(cq) && syscall(SYS_futex, &bells->waits, FUTEX_WAIT, 1, &most, NULL, 0) < 0 && errno == ETIMEDOUT)
		urdma_client_probe(cq->client);
	__atomic_store_n(&bells->waits, 0, __ATOMIC_RELAXED);
	look_anew(cq);
	errno = saved;
}

/* Notes where this thread polls; true if urdmad's worker, awake, has only the same CPU. */
static bool shares_core(struct urdma_abi_doorbells *bells)
{
	uint32_t cpu = (uint32_t)sched_getcpu();

	if (URDMA_LOAD(bells->poller) != cpu + 1)
		URDMA_STORE(bells->poller, cpu + 1);
	return URDMA_LOAD(bells->core) == cpu && !URDMA_LOAD(bells->sleeping);
}

void urdma_yield_stop(struct urdma_client *client)
{
	if (urdma_client_state(client) != URDMA_CLIENT_LIVE)
		return; /* of a child the words are its parent's */
	for (uint32_t i = 0; i < client->workers; i++)
		if (URDMA_LOAD(client->bells[i].poller))
			URDMA_STORE(client->bells[i].poller, 0);
}

/*
 * Polls are counted for this, too, but on a busy machine each yield may take
 * milliseconds: to wait until CHECK_EVERY polls were empty would take a minute.
 */
static void probe_after(const struct urdma_cq *cq, uint64_t took)
{
	int saved = errno;

	waits.away += took;
	if (waits.away < PROBE_AFTER)
		return;
	waits.away = 0;
	urdma_client_probe(cq->client);
	errno = saved;
}

bool urdma_yield_empty_poll(struct urdma_cq *cq)
{
	struct urdma_abi_doorbells *bells = URDMA_LOAD(cq->bells);
	uint32_t every = URDMA_LOAD(bells->yield_poll);
	uint64_t before, took;

	look(cq);
	if (!every || !comes_round(cq) || ++waits.rounds < every)
		return false;
	waits.rounds = 0;
	before = now_ns();
	if (before < waits.rest_until)
		return false;
	give_core();
	took = now_ns() - before;
	if (took >= alone_ns(bells)) {
		probe_after(cq, took);
		return true;
	}
	if (shares_core(bells) && waits.looked)
		wait_for_urdmad(cq, bells);
	else
		waits.rest_until = before + ALONE_REST * alone_ns(bells);
	return true;
}

void urdma_yield_found(void)
{
	waits.at = NULL;
	look_anew(NULL);
}

/*
 * A bit that is still set needs not be set again: urdmad's exchange of it is still
 * to come, and its look at the index after that. So most posts of a burst only
 * read the lines, which urdmad's core then keeps. The fence puts the index before
 * the looks, as a read-modify-write would.
 */
static bool rings_already(const struct urdma_abi_doorbells *bells, uint32_t word, uint64_t bit)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return (__atomic_load_n(&bells->bits[word], __ATOMIC_RELAXED) & bit) &&
	       (__atomic_load_n(&bells->summary, __ATOMIC_RELAXED) & UINT64_C(1) << word);
}

/*
 * The order of urdma_abi.h: index published, bit, summary, then the look at
 * sleeping. Both read-modify-writes are sequentially consistent, as is
 * urdmad's store of sleeping before its last look at summary, so one of the
 * two sees the other. The exchange lets one of several posts kick.
 */
bool urdma_ring_doorbell(struct urdma_qp *qp)
{
	struct urdma_abi_doorbells *bells = qp->bells;
	uint32_t word = qp->doorbell / 64;
	uint64_t bit = UINT64_C(1) << (qp->doorbell % 64);
	uint8_t byte = 1;
	int saved;

	if (!rings_already(bells, word, bit)) {
		__atomic_fetch_or(&bells->bits[word], bit, __ATOMIC_SEQ_CST);
		__atomic_fetch_or(&bells->summary, UINT64_C(1) << word, __ATOMIC_SEQ_CST);
	}
	if (!__atomic_load_n(&bells->sleeping, __ATOMIC_SEQ_CST) ||
	    !__atomic_exchange_n(&bells->sleeping, 0, __ATOMIC_SEQ_CST))
		return false;
	/* A full socket means that kicks enough are on their way. Raw, because
	 * send(2) is a cancellation point and posting must not be one. */
	saved = errno;
	if (urdma_client_has(qp->client, &qp->client->kicks[qp->worker]))
		syscall(SYS_sendto, qp->client->kicks[qp->worker].fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
	errno = saved;
	return true;
}
