/*
 * yield.c - decides when a program yields its core to urdmad. docs/design/scheduling.md has the measurements:
 * if both share a core, urdmad can make progress only after a yield; if they don't, a yield only costs
 * time.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "objects.h"

#define ALONE 1000u       /* ns: in a shorter yield no other thread ran; used if urdmad states no value */
#define ALONE_MOST 30000u /* ns: maximum for the value that urdmad states */
/* Multiples of that time, so that slow machines are treated like fast ones: */
#define POST_AGAIN 5u  /* time after which a post yields again although no poll came before it */
#define ALONE_REST 2u  /* time without a yield after one in which no other thread ran */
#define WAIT_MOST 200u /* maximum wait; urdmad wakes this thread earlier if it completes something */
/* after this many empty polls of other queues a round ends: the program may have stopped polling the first */
#define ELSEWHERE 16u
#define MOST_QUEUES 4096u /* after this many empty polls a thread has polled all its queues, for the same reason */

#define PROBE_AFTER 10000000u /* ns that other threads ran during our yields before we check that urdmad runs */

/*
 * State of a thread that polls in vain. It may poll several queues in turn, look at memory that a peer
 * writes to, and call other progress functions; when it is back at the first queue it has nothing else to
 * do. It yields once each round: in a further yield it would give its core away before it has seen the
 * results of the first. initial-exec: access never allocates.
 */
static _Thread_local struct {
	const struct urdma_cq *at; /* the queue at which the round began, or NULL; only compared */
	uint32_t elsewhere;        /* empty polls of other queues since then */
	uint32_t rounds;           /* rounds since the last yield */
	uint64_t rest_until;       /* ns: no yield before this time */
	/* the first queue of the polls that must cover all queues before a wait, or NULL; only compared */
	const struct urdma_cq *from;
	uint32_t looks;            /* empty polls since then */
	bool looked;               /* all queues were polled */
	uint64_t away;             /* ns that other threads ran in our yields since the last check of urdmad */
} waits __attribute__((tls_model("initial-exec")));

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A poll or post must not change the program's errno. */
static void give_core(void)
{
	int saved = errno;

	sched_yield();
	errno = saved;
}

/* Returns the minimum duration (ns) of a yield in which another thread ran. */
static uint32_t alone_ns(const struct urdma_abi_doorbells *bells)
{
	uint32_t stated = URDMA_LOAD(bells->yield_alone);

	if (!stated)
		return ALONE;
	return stated < ALONE_MOST ? stated : ALONE_MOST;
}

/* Returns whether either queue was polled since the last call, and clears the marks. If two posting
 * threads see the same mark, both yield, which is harmless. */
static bool polled_since(const struct ibv_qp *qp)
{
	struct urdma_cq *send = urdma_cq_of(qp->send_cq), *recv = urdma_cq_of(qp->recv_cq);
	bool polled;

	if (!recv) /* type XRC_SEND */
		recv = send;
	polled = URDMA_LOAD(send->polled) || URDMA_LOAD(recv->polled);

	if (polled) {
		URDMA_STORE(send->polled, false);
		URDMA_STORE(recv->polled, false);
	}
	return polled;
}

/* A burst of posts yields once: what urdmad does during the yield must not count, because then each post of
 * the burst would yield. */
static void yield_after_post(struct urdma_qp *qp)
{
	const struct urdma_abi_doorbells *bells = qp->bells;

	if (!URDMA_LOAD(bells->yield_post) || URDMA_LOAD(bells->core) != (uint32_t)sched_getcpu())
		return;
	if (!polled_since(&qp->ex.qp_base) && now_ns() - URDMA_LOAD(qp->yielded) < POST_AGAIN * alone_ns(bells))
		return;
	give_core();
	URDMA_STORE(qp->yielded, now_ns());
}

void urdma_announce_send(struct urdma_qp *qp)
{
	if (!urdma_ring_doorbell(qp))
		yield_after_post(qp);
}

/* Returns whether an empty poll of cq ends a round. */
static bool ends_round(const struct urdma_cq *cq)
{
	bool begins = !waits.at;

	if (!begins && cq != waits.at && ++waits.elsewhere < ELSEWHERE)
		return false;
	waits.at = cq;
	waits.elsewhere = 0;
	return !begins;
}

/* Records that cq was found empty. An existing completion would not end the wait, so every queue must be
 * polled before it. */
static void look(const struct urdma_cq *cq)
{
	if (!waits.from) {
		waits.from = cq;
		waits.looks = 0;
	} else if (cq == waits.from || ++waits.looks >= MOST_QUEUES) {
		waits.looked = true;
	}
}

static void restart_look(const struct urdma_cq *from)
{
	waits.from = from;
	waits.looks = 0;
	waits.looked = false;
}

/* The lock is taken because ibv_resize_cq may unmap the ring on another thread. */
static bool has_news(struct urdma_cq *cq)
{
	int taken = urdma_lock_take(&cq->lock);
	bool news = __atomic_load_n(&cq->ring->prod, __ATOMIC_SEQ_CST) != __atomic_load_n(&cq->ring->cons, __ATOMIC_RELAXED);

	urdma_lock_drop(&cq->lock, taken);
	return news;
}

/*
 * Waits briefly on a futex that urdmad wakes. A yield reaches only threads of our own scheduling group. If
 * urdmad was started in another session or by systemd, it may be in another group and get this core only
 * when our time slice ends, milliseconds later; it gets the core at once if we sleep. urdma_abi.h
 * describes the order of accesses. The other queues were polled while urdmad could not run. If urdmad has
 * died it wakes nobody, and waiting for CHECK_EVERY empty polls would take seconds: so a timeout checks
 * that it runs.
 */
static void wait_for_urdmad(struct urdma_cq *cq, struct urdma_abi_doorbells *bells)
{
	struct timespec most = { .tv_nsec = WAIT_MOST * alone_ns(bells) };
	int saved = errno;

	__atomic_store_n(&bells->waits, 1, __ATOMIC_SEQ_CST);
	if (!has_news(cq) && syscall(SYS_futex, &bells->waits, FUTEX_WAIT, 1, &most, NULL, 0) < 0 && errno == ETIMEDOUT)
		urdma_client_probe(cq->client);
	__atomic_store_n(&bells->waits, 0, __ATOMIC_RELAXED);
	restart_look(cq);
	errno = saved;
}

/* Records the CPU on which this thread polls. Returns true if urdmad's worker is awake and can only run on
 * the same CPU. */
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
		return; /* in a child the doorbells belong to the parent */
	for (uint32_t i = 0; i < client->workers; i++)
		if (URDMA_LOAD(client->bells[i].poller))
			URDMA_STORE(client->bells[i].poller, 0);
}

/*
 * Checks that urdmad runs after long yields. Polls are counted for this, too, but on a busy machine each
 * yield may take milliseconds, and CHECK_EVERY polls a minute.
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
	if (!every || !ends_round(cq) || ++waits.rounds < every)
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
	restart_look(NULL);
}

/*
 * Returns whether the bit is still set. Then urdmad has not yet exchanged it and will look at the index
 * after that, so it need not be set again. Most posts of a burst thus only read the cache lines, which
 * stay with urdmad's core. The fence orders the index before these loads, as a read-modify-write would.
 */
static bool rings_already(const struct urdma_abi_doorbells *bells, uint32_t word, uint64_t bit)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return (__atomic_load_n(&bells->bits[word], __ATOMIC_RELAXED) & bit) &&
	       (__atomic_load_n(&bells->summary, __ATOMIC_RELAXED) & UINT64_C(1) << word);
}

/*
 * The order is urdma_abi.h's: publish the index, set the bit, set the summary, then load sleeping. Both
 * read-modify-writes are sequentially consistent, as is urdmad's store of sleeping before its last load of
 * summary, so one of the two sees the other. The exchange lets only one of several posts send a wake-up.
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
	/* If the socket is full, enough wake-ups are on their way. A raw system call, because send(2) is a
	 * cancellation point and posting must not be one. */
	saved = errno;
	if (urdma_client_has(qp->client, &qp->client->kicks[qp->worker]))
		syscall(SYS_sendto, qp->client->kicks[qp->worker].fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
	errno = saved;
	return true;
}
