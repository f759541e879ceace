/*
 * objects.h - the structures behind the queues, queue pairs and channels of a program. Each begins with
 * the structure of verbs.h.
 */
#ifndef URDMA_OBJECTS_H
#define URDMA_OBJECTS_H

#include <infiniband/verbs.h>
#include <string.h>

#include "../session/client.h"
#include "../session/readers.h"
#include "events.h"
#include "lock.h"
#include "state.h"

struct urdma_cq;
struct urdma_qp;

/* Access to fields that threads share without a lock, where a stale value does no harm. */
#define URDMA_LOAD(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define URDMA_STORE(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELAXED)

struct urdma_channel {
	struct ibv_comp_channel channel;
	struct urdma_client *client;
	uint32_t handle;
	pthread_mutex_t lock;  /* guards cqs and channel.refcnt */
	struct urdma_cq *cqs;  /* list, linked by next_in_channel */
	struct urdma_readers readers; /* threads in ibv_get_cq_event */
	struct urdma_kept events;     /* channel.fd */
};

struct urdma_cq {
	struct ibv_cq_ex ex; /* begins with a struct ibv_cq */
	struct urdma_client *client;
	struct urdma_cq *next_in_channel;

	struct urdma_lock lock; /* guards the fields below, up to the hints */
	struct urdma_abi_cq_ring *ring;
	struct urdma_abi_cqe *entries;
	size_t bytes;           /* size of the file that contains the ring */
	uint32_t memfd;         /* number of that file (session/rings.h) */
	uint32_t mask;
	uint32_t cons;          /* our own copy of ring->cons */
	bool returned;          /* urdmad has the ring's memory back and may use it for another queue */
	bool ignore_overrun;
	bool shows_lid;         /* link layer InfiniBand: completions show a datagram's source as a LID, not in a GRH */
	/* RoCE: the service level in a datagram's completion says whether its GRH contains IPv4 or IPv6 */
	bool shows_header;
	struct urdma_qp *senders;   /* queue pairs whose sends complete here */
	struct urdma_qp *receivers; /* queue pairs whose receives complete here */
	struct urdma_abi_cqe now; /* the completion that ibv_start_poll or ibv_next_poll shows */
	int polling;              /* result of taking the lock in ibv_start_poll */
	int64_t wall_ns;          /* the time of day minus CLOCK_MONOTONIC (pollex.c) */
	int64_t wall_error_ns;    /* maximum error of wall_ns; 0: not measured yet */
	pthread_t poller;         /* the thread between ibv_start_poll and ibv_end_poll, or 0; other threads may read it */

	/* Hints, accessed with URDMA_LOAD and URDMA_STORE. */
	uint32_t since_check; /* empty polls since the last check that urdmad is running */
	bool polled;          /* since the last post that yielded */
	uint32_t finds;       /* non-empty polls; counted only with URDMA_STRICT */
	uint32_t polls;       /* polls since the last non-empty one; counted only with URDMA_STRICT */
	/* armed, and the event is not yet delivered; this and the next two fields are used only with
	 * URDMA_WARN (warn_cq.c) */
	bool awaits;
	/* 0: polled since it was armed. 1: not polled. 2: not polled, although completions waited when it was
	 * armed */
	uint8_t unpolled;
	uint32_t habit;       /* number of waits after an arming without a poll in between */
	bool explained;       /* the overrun was reported; used only with URDMA_EXPLAIN */
	struct urdma_abi_doorbells *bells; /* doorbells of a worker that serves it, which state when to yield */

	struct urdma_events completions, async;
};

/* The ring of one direction of a queue pair. */
struct urdma_queue {
	struct urdma_lock lock; /* guards the fields below */
	uint32_t prod;          /* index of the next slot to write; ahead of *shared_prod while a call posts */
	uint32_t cons;          /* index of the first slot in use; also read by threads that poll */
	uint32_t seen;          /* the value of polled that is included in cons; also read by threads that poll */
	uint32_t depth;         /* maximum number of slots in use */
	uint32_t mask;
	uint32_t stride;
	uint32_t max_sge;
	bool all_signaled;      /* every work request has a completion */
	bool until_polled;      /* send queue: only polling a completion frees slots (URDMA_STRICT) */
	bool free_when_taken;   /* shared receive queue: urdmad copies the slots, which are free then (urdma_abi.h) */
	uint8_t *slots;
	struct urdma_abi_sq_ring *failing; /* send queue: where urdmad records the first failed request */
	uint32_t *shared_prod;  /* written by us, read by urdmad */
	uint32_t *shared_cons;  /* written by urdmad, read by us */

	uint8_t apart[64];      /* keeps fields of posting and polling threads on different cache lines */
	uint32_t polled;        /* one past the newest request whose completion was polled; guarded by the CQ's lock */
	bool losing;            /* urdma_queue_lost has taken some requests; guarded by the CQ's lock */
};

struct urdma_srq {
	struct ibv_srq srq;
	struct urdma_client *client;
	void *ring;
	size_t bytes;
	struct urdma_queue queue;
	uint32_t number;       /* number by which peers name a shared receive queue in an XRC domain; else 0 */
	struct urdma_events async;
};

/* A protection domain, or a parent domain. */
struct urdma_pd {
	struct ibv_pd pd;
	struct urdma_pd *of; /* parent domain: its protection domain; else NULL */
	struct urdma_td *td; /* parent domain: its thread domain or NULL */
	/* protection domain: number of parent domains and address handles, which urdmad does not know; atomic */
	uint32_t users;
};

/* An address handle: the destination's address, IPv6 or IPv4-mapped. */
struct urdma_ah {
	struct ibv_ah ah;
	struct urdma_pd *domain; /* the protection domain counted in users; never a parent domain */
	uint8_t address[16];
	uint8_t traffic_class;
};

/* State between ibv_wr_start and ibv_wr_complete. */
struct urdma_builder {
	int taken;            /* result of taking the send queue's lock */
	uint32_t first;       /* sq.prod at ibv_wr_start */
	int error;            /* the first error */
	struct urdma_abi_sqe *slot; /* the slot being filled; NULL before the first request */
};

struct urdma_qp {
	struct ibv_qp_ex ex; /* begins with a struct ibv_qp */
	struct urdma_client *client;
	uint64_t user_handle; /* identifies the queue pair in completions, see handles.c */
	bool datagram;       /* type UD: each work request names its destination */
	const struct urdma_abi_device *port; /* the port it is bound to; NULL before INIT */
	/* type UD: its protection domain, which its address handles must share; never a parent domain */
	const struct urdma_pd *domain;
	bool extended;       /* created with IBV_QP_INIT_ATTR_SEND_OPS_FLAGS */
	void *rings;         /* the mapped file that contains both queues */
	size_t bytes;
	uint32_t memfd;      /* number of that file (session/rings.h) */
	struct urdma_queue sq, rq;
	uint32_t max_inline;
	uint64_t max_message;
	uint32_t max_sge_read;
	int sq_sig_all;
	struct urdma_abi_doorbells *bells; /* doorbells of its worker */
	uint32_t worker;
	uint32_t doorbell;
	struct urdma_builder builder;
	/* links of cq->senders and cq->receivers; guarded by those CQs' locks */
	struct urdma_qp *next_sender, *next_receiver;
	uint64_t yielded;      /* ns: when the last yield of a post ended */
	/* unsignaled sends in a row; status of a failed completion that was polled; posts since then (warn.c) */
	uint32_t unsignaled, error, posts_after;
	/* index of the send that was the oldest at time since (ns; UINT64_MAX: reported) (warn_wait.c) */
	uint32_t waiting;
	uint64_t since;
	struct urdma_events async;
};

static inline struct urdma_channel *urdma_channel_of(const struct ibv_comp_channel *channel)
{
	return (struct urdma_channel *)channel;
}

static inline struct urdma_cq *urdma_cq_of(const struct ibv_cq *cq)
{
	return (struct urdma_cq *)cq;
}

static inline struct ibv_cq *urdma_cq_ibv(struct urdma_cq *cq)
{
	return (struct ibv_cq *)cq;
}

static inline struct urdma_qp *urdma_qp_of(const struct ibv_qp *qp)
{
	return (struct urdma_qp *)qp;
}

static inline struct urdma_ah *urdma_ah_of(const struct ibv_ah *ah)
{
	return (struct urdma_ah *)ah;
}

/* Returns the protection domain itself, or the one of a parent domain. */
static inline struct urdma_pd *urdma_domain_of(const struct ibv_pd *pd)
{
	struct urdma_pd *d = (struct urdma_pd *)pd;

	return d->of ? d->of : d;
}

/* Returns whether a queue pair of type UD may send to ah: both must have the same protection domain. */
static inline bool urdma_may_send_to(const struct urdma_qp *qp, const struct ibv_ah *ah)
{
	return ah && urdma_ah_of(ah)->domain == qp->domain;
}

static inline struct urdma_srq *urdma_srq_of(const struct ibv_srq *srq)
{
	return (struct urdma_srq *)srq;
}

/* poll.c, post.c: functions in a context's tables. */
int urdma_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int urdma_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int urdma_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int urdma_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/* refuse.c: returns the errno value with which a call must fail (struct urdma_abi_post_fault has the calls' numbers),
 * or 0. */
int urdma_refuse_post(struct urdma_client *client, uint32_t call);

static inline int urdma_refused(struct urdma_client *client, uint32_t call)
{
	return __atomic_load_n(&client->num_posts, __ATOMIC_RELAXED) ? urdma_refuse_post(client, call) : 0;
}

/* strict.c: makes polls on a context behave as URDMA_STRICT says. */
void urdma_strict_polls(struct ibv_context *context);
/* urdma_strict_early: whether this poll must find nothing. urdma_strict_found: a poll found something. */
bool urdma_strict_early(struct urdma_cq *cq);
void urdma_strict_found(struct urdma_cq *cq);
/* Fills the undefined fields of cq->now, a failed completion, with random values. */
void urdma_strict_failed(struct urdma_cq *cq);
/* Returns the n-th random number of a seed. */
uint32_t urdma_draw(uint64_t seed, uint64_t n);

/* Returns the index behind the newest completion; the caller holds cq->lock. Afterwards at most as many wait as the
 * ring has entries, whatever urdmad has written. */
static inline uint32_t urdma_cq_produced(struct urdma_cq *cq)
{
	uint32_t prod = __atomic_load_n(&cq->ring->prod, __ATOMIC_ACQUIRE);

	if (prod - cq->cons > cq->mask + 1)
		cq->cons = prod - cq->mask - 1;
	return prod;
}

/* poll.c */
/* Takes the oldest completion; the caller holds cq->lock. Returns false if there is none. */
bool urdma_cq_take(struct urdma_cq *cq, struct urdma_abi_cqe *out);
/* Returns whether polling must fail because of an overrun; the caller holds cq->lock, because the ring may
 * move. */
bool urdma_cq_overran(const struct urdma_cq *cq);
/* Prints once on stderr that the completion queue overran, if URDMA_EXPLAIN is set. The lock is not held. */
void urdma_cq_explain_overrun(struct urdma_cq *cq);
/* Prints on stderr why a work request failed, if URDMA_EXPLAIN is set. The caller may hold cq->lock. */
void urdma_cq_explain(struct urdma_cq *cq, uint32_t qp_num, uint32_t vendor_err);
/* Removes the completions of a destroyed queue pair from the ring. */
void urdma_cq_forget(struct urdma_cq *cq, uint32_t qp_num);

/* Does so in both completion queues of a queue pair, and forgets its posted requests. */
void urdma_qp_forget(struct urdma_qp *qp);
/* Called after an empty poll, without the lock: yields if due, and checks from time to time that urdmad
 * runs. Returns whether it yielded. */
bool urdma_cq_empty(struct urdma_cq *cq);
/* Called after a poll that found something. */
void urdma_cq_found(struct urdma_cq *cq);

/* window.c */
/* Returns 0 or the errno value for a malformed request to bind mw. */
int urdma_window_check(const struct ibv_mw *mw, const struct ibv_mw_bind_info *info);
void urdma_window_write(struct urdma_abi_sqe *slot, const struct ibv_mw *mw, uint32_t rkey,
	const struct ibv_mw_bind_info *info);
/* The source of a datagram as shown to programs: by its LID or by its GRH. */
static inline uint16_t urdma_cq_slid(const struct urdma_cq *cq, const struct urdma_abi_cqe *e)
{
	return cq->shows_lid && (uint16_t)e->source_lid < 0xC000 ? (uint16_t)e->source_lid : 0;
}
/*
 * In RoCEv2 a completion says whether a datagram came with an IPv4 or an IPv6 header (annex A17 of the
 * InfiniBand Architecture Specification), but struct ibv_wc has no field for it. Mellanox's devices use
 * sl, where UCX reads it. Bit 3: UDP. Bits 0 to 2: 1 for IPv6; 2 for IPv4, in the second half of the GRH's
 * 40 bytes.
 */
#define URDMA_SL_IPV6_UDP 0x9u
#define URDMA_SL_IPV4_UDP 0xAu
static inline uint8_t urdma_cq_sl(const struct urdma_cq *cq, const struct urdma_abi_cqe *e)
{
	if (!cq->shows_header || !(e->wc_flags & IBV_WC_GRH))
		return 0;
	return e->source_lid >> 16 ? URDMA_SL_IPV6_UDP : URDMA_SL_IPV4_UDP;
}
static inline unsigned int urdma_cq_wc_flags(const struct urdma_cq *cq, const struct urdma_abi_cqe *e)
{
	return cq->shows_lid ? e->wc_flags & ~(unsigned int)IBV_WC_GRH : e->wc_flags;
}

/* pollex.c: fills the function pointers of an extended completion queue. */
void urdma_pollex_fill(struct ibv_cq_ex *cq, uint64_t wc_flags);

/* death.c: used after urdmad has ended. */
/* Takes one flushed work request of the queue pairs that complete on cq; the caller holds cq->lock. */
bool urdma_flush_take(struct urdma_cq *cq, struct urdma_abi_cqe *out);
/* Returns a queue of the channel that was armed and has completions, and counts an event for it; or
 * returns NULL. */
struct urdma_cq *urdma_flush_event(struct urdma_channel *channel);

/* opcode.c: properties of each enum ibv_wr_opcode. */
struct urdma_operation {
	uint64_t send_op;  /* IBV_QP_EX_WITH_*; 0: the number is not an opcode */
	uint32_t wc;       /* enum ibv_wc_opcode in its completion */
	bool supported;    /* if not, posting it returns EOPNOTSUPP */
	bool inlinable;    /* its data may be sent inline */
	bool writes_local; /* the response is written to the scatter list */
	bool atomic;       /* uses compare_add and swap */
	bool datagram;     /* allowed on queue pairs of type UD */
};
/* Returns NULL for a number that is not an opcode. */
const struct urdma_operation *urdma_operation(uint32_t opcode);
/* Returns whether a type of queue pair supports the operation. */
bool urdma_operation_of(const struct urdma_operation *op, enum ibv_qp_type type);
/* Returns the IBV_QP_EX_WITH_* flags of the operations that a type of queue pair supports. */
uint64_t urdma_operation_send_ops(enum ibv_qp_type type);

/* Writes a datagram's destination to a slot. */
static inline void urdma_sqe_address(struct urdma_abi_sqe *slot, const struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	const uint8_t *address = urdma_ah_of(ah)->address;

	slot->rkey = urdma_ah_of(ah)->traffic_class;
	slot->remote_addr = (uint64_t)qkey << 32 | qpn;
	memcpy(&slot->compare_add, address, 8);
	memcpy(&slot->swap, address + 8, 8);
}

/* queue.c: the client's side of a send or receive ring. */
/* Returns a slot for another work request, or NULL if the queue is full. */
void *urdma_queue_slot(struct urdma_queue *queue);
/* Returns the queue to which a completion belongs. */
static inline struct urdma_queue *urdma_queue_of(struct urdma_qp *qp, const struct urdma_abi_cqe *e)
{
	return e->opcode & IBV_WC_RECV ? &qp->rq : &qp->sq;
}
/* Records that a completion was polled; the caller holds the lock of its completion queue. */
static inline void urdma_queue_polled(struct urdma_queue *queue, uint32_t index)
{
	__atomic_store_n(&queue->polled, index + 1, __ATOMIC_RELEASE);
}
/* A request that was outstanding when urdmad ended. */
struct urdma_lost {
	uint64_t wr_id;
	uint32_t opcode; /* enum ibv_wr_opcode; valid for sends */
};
/* Returns the oldest outstanding request; if take is set, records it as completed. The caller holds the
 * lock of the completion queue, which is empty. */
bool urdma_queue_lost(struct urdma_queue *queue, bool take, struct urdma_lost *out);
/* After urdmad has ended: returns whether urdma_queue_lost has taken index. */
bool urdma_queue_was_lost(const struct urdma_queue *queue, uint32_t index);
/* Forgets all posted requests. */
void urdma_queue_reset(struct urdma_queue *queue);
/* Makes the slots up to queue->prod visible to urdmad. */
void urdma_queue_publish(struct urdma_queue *queue);

/* state.c */
/* Returns 0 if requests may be posted in the queue pair's state, else an errno value. */
int urdma_qp_may_send(struct urdma_qp *qp);
int urdma_qp_may_recv(struct urdma_qp *qp);
/* Sends a QUERY_QP request. */
int urdma_qp_ask(struct urdma_qp *qp, struct urdma_abi_query_qp_response *response);
/* Asks urdmad for the state, for example after rdma_cm has changed it. */
int urdma_qp_refresh(struct urdma_qp *qp);

/* yield.c: no queue's lock is held in these calls. */
/* Tells urdmad's worker that a ring has new requests. Returns true if the worker slept and was woken. */
bool urdma_ring_doorbell(struct urdma_qp *qp);
/* Rings the doorbell after a send, and yields if urdmad asks for it. */
void urdma_announce_send(struct urdma_qp *qp);
/* Yields after an empty poll of cq, if a yield is due. Returns whether it did. */
bool urdma_yield_empty_poll(struct urdma_cq *cq);
/* A poll found something: starts to count empty polls again. */
void urdma_yield_found(void);

/* The caller is about to wait for an event and polls no more. */
void urdma_yield_stop(struct urdma_client *client);

/* child.c: called in a child; initialises the locks of all objects of the parent. */
void urdma_objects_forked(struct urdma_client *client);

/* build.c: sets the ibv_wr_* pointers for ops (IBV_QP_EX_WITH_*). */
void urdma_build_fill(struct urdma_qp *qp, uint64_t ops);

#endif /* URDMA_OBJECTS_H */
