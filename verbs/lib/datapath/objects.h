/*
 * objects.h - what stands behind the queues, queue pairs and channels that
 * programs hold. Each begins with the structure of verbs.h.
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

/* Fields that threads share without a lock because any value will do. */
#define URDMA_LOAD(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define URDMA_STORE(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELAXED)

struct urdma_channel {
	struct ibv_comp_channel channel;
	struct urdma_client *client;
	uint32_t handle;
	pthread_mutex_t lock;  /* of cqs and channel.refcnt */
	struct urdma_cq *cqs;  /* through cq->next_in_channel */
	struct urdma_readers readers; /* in ibv_get_cq_event */
	struct urdma_kept events;     /* channel.fd */
};

struct urdma_cq {
	struct ibv_cq_ex ex; /* prefix of it: struct ibv_cq */
	struct urdma_client *client;
	struct urdma_cq *next_in_channel;

	struct urdma_lock lock; /* of all below, until the hints */
	struct urdma_abi_cq_ring *ring;
	struct urdma_abi_cqe *entries;
	size_t bytes;           /* of the file that it lies in */
	uint32_t memfd;         /* its number (session/rings.h) */
	uint32_t mask;
	uint32_t cons;          /* our own copy of ring->cons */
	bool returned;          /* urdmad has its memory back, and another queue may */
	bool ignore_overrun;
	bool shows_lid;         /* link layer InfiniBand: a datagram's source is a LID, not a GRH */
	bool shows_header;      /* RoCE: a datagram's service level says which header its GRH is */
	struct urdma_qp *senders;   /* queue pairs that complete sends here */
	struct urdma_qp *receivers; /* ... receives */
	struct urdma_abi_cqe now; /* the completion ibv_start_poll shows */
	int polling;              /* lock taken by ibv_start_poll */
	int64_t wall_ns;          /* the wall clock less CLOCK_MONOTONIC (pollex.c) */
	int64_t wall_error_ns;    /* of that, at most; 0: not known yet */
	pthread_t poller;         /* the thread that took it so, or 0; others may look */

	/* Hints, by URDMA_LOAD and URDMA_STORE. */
	uint32_t since_check; /* polls that found nothing since urdmad was last seen alive */
	bool polled;          /* since the last post that yielded */
	uint32_t finds;       /* polls that have found something; counts with URDMA_STRICT alone */
	uint32_t polls;       /* since then; likewise */
	bool awaits;          /* armed, and the event not delivered; kept with URDMA_WARN alone, as the next two are (warn_cq.c) */
	uint8_t unpolled;     /* since it was armed: 1, and 2 if completions were there; 0: it was polled */
	uint32_t habit;       /* waits after an arming without a poll between */
	bool told;            /* that it overran; with URDMA_EXPLAIN alone */
	struct urdma_abi_doorbells *bells; /* of a worker that serves it: its wishes about yielding */

	struct urdma_events completions, async;
};

/* One direction's ring of a queue pair. */
struct urdma_queue {
	struct urdma_lock lock; /* of the fields below */
	uint32_t prod;          /* our own copy of what we published, and ahead of it while posting */
	uint32_t cons;          /* the first slot in use; also read by pollers */
	uint32_t seen;          /* the value of polled that cons accounts for; likewise */
	uint32_t depth;         /* slots that may be in use */
	uint32_t mask;
	uint32_t stride;
	uint32_t max_sge;
	bool all_signaled;      /* every work request makes a completion */
	bool until_polled;      /* of a send queue: slots are freed by polled completions alone (URDMA_STRICT) */
	bool free_when_taken;   /* a shared receive queue: urdmad copies slots out (urdma_abi.h) */
	uint8_t *slots;
	struct urdma_abi_sq_ring *failing; /* of a send queue: where urdmad says what has failed */
	uint32_t *shared_prod;  /* we store, urdmad loads */
	uint32_t *shared_cons;  /* urdmad stores, we load */

	uint8_t apart[64];      /* posting and polling may be different threads' */
	uint32_t polled;        /* one past the newest request whose completion was polled; under the CQ's lock */
	bool losing;            /* urdma_queue_lost has taken some; likewise */
};

struct urdma_srq {
	struct ibv_srq srq;
	struct urdma_client *client;
	void *ring;
	size_t bytes;
	struct urdma_queue queue;
	uint32_t number;       /* of one in an XRC domain, as peers name it; else 0 */
	struct urdma_events async;
};

/* A protection domain; or a parent domain, which stands for one. */
struct urdma_pd {
	struct ibv_pd pd;
	struct urdma_pd *of; /* a parent domain's protection domain; else NULL */
	struct urdma_td *td; /* a parent domain's, or NULL */
	uint32_t users;      /* of a protection domain, those that urdmad doesn't know of: parent domains, address handles;
			      * changed atomically */
};

/* An address handle: the destination's IPv6 or IPv4-mapped address. */
struct urdma_ah {
	struct ibv_ah ah;
	struct urdma_pd *domain; /* which it keeps from being deallocated; no parent domain */
	uint8_t address[16];
	uint8_t traffic_class;
};

/* ibv_wr_start .. ibv_wr_complete. */
struct urdma_builder {
	int taken;            /* how the send queue's lock is held */
	uint32_t first;       /* prod at ibv_wr_start */
	int error;            /* the first thing that was wrong */
	struct urdma_abi_sqe *slot; /* being filled; NULL before the first request */
};

struct urdma_qp {
	struct ibv_qp_ex ex; /* prefix of it: struct ibv_qp */
	struct urdma_client *client;
	uint64_t user_handle; /* how completions name it, see handles.c */
	bool datagram;       /* type UD: each work request names its destination */
	const struct urdma_abi_device *port; /* that it is bound to; NULL before INIT */
	const struct urdma_pd *domain; /* of type UD: its address handles' too; no parent domain */
	bool extended;       /* made with IBV_QP_INIT_ATTR_SEND_OPS_FLAGS */
	void *rings;         /* the file that both queues lie in */
	size_t bytes;
	uint32_t memfd;      /* its number (session/rings.h) */
	struct urdma_queue sq, rq;
	uint32_t max_inline;
	uint64_t max_message;
	uint32_t max_sge_read;
	int sq_sig_all;
	struct urdma_abi_doorbells *bells; /* its worker's section */
	uint32_t worker;
	uint32_t doorbell;
	struct urdma_builder builder;
	struct urdma_qp *next_sender, *next_receiver; /* under their queues' locks */
	uint64_t yielded;      /* ns: the last post that yielded without a poll before it */
	uint32_t unsignaled, error, posts_after; /* sends in a row; the status of a failure that was polled, posts since (warn.c) */
	uint32_t waiting;      /* index of the send that was the oldest at since, ns; UINT64_MAX: told (warn_wait.c) */
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

/* The protection domain that pd is or stands for. */
static inline struct urdma_pd *urdma_domain_of(const struct ibv_pd *pd)
{
	struct urdma_pd *d = (struct urdma_pd *)pd;

	return d->of ? d->of : d;
}

/* Whether a queue pair of type UD may send to what ah leads to: it is of the same
 * protection domain. */
static inline bool urdma_may_send_to(const struct urdma_qp *qp, const struct ibv_ah *ah)
{
	return ah && urdma_ah_of(ah)->domain == qp->domain;
}

static inline struct urdma_srq *urdma_srq_of(const struct ibv_srq *srq)
{
	return (struct urdma_srq *)srq;
}

/* poll.c, post.c: what verbs.h reaches through a context's tables. */
int urdma_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int urdma_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int urdma_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int urdma_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/* refuse.c: has a context's posts fail as URDMA_INJECT says. */
void urdma_refuse_posts(struct ibv_context *context);

/* strict.c: has a context's polls do what URDMA_STRICT says. */
void urdma_strict_polls(struct ibv_context *context);
/* Whether a poll is to find nothing yet, and what one does that found something. */
bool urdma_strict_early(struct urdma_cq *cq);
void urdma_strict_found(struct urdma_cq *cq);
/* Spoils cq->now, which has failed, where it is undefined. */
void urdma_strict_failed(struct urdma_cq *cq);
/* The n-th number of a seed. */
uint32_t urdma_draw(uint64_t seed, uint64_t n);

/* poll.c */
/* Takes the oldest completion; the caller holds cq->lock. False if there is none. */
bool urdma_cq_take(struct urdma_cq *cq, struct urdma_abi_cqe *out);
/* Whether polling must fail; the caller holds cq->lock, for the ring may move. */
bool urdma_cq_overran(const struct urdma_cq *cq);
/* Says on stderr, once, that a completion queue overran; of URDMA_EXPLAIN. The lock is not held. */
void urdma_cq_explain_overrun(struct urdma_cq *cq);
/* Says on stderr why a work request failed; of URDMA_EXPLAIN. The caller may hold cq->lock. */
void urdma_cq_explain(struct urdma_cq *cq, uint32_t qp_num, uint32_t vendor_err);
/* Takes the completions of a queue pair that is no more out of the ring. */
void urdma_cq_forget(struct urdma_cq *cq, uint32_t qp_num);

/* The same for a queue pair, in all its queues. */
void urdma_qp_forget(struct urdma_qp *qp);
/* What an empty poll does, without the lock: yield, and see whether urdmad lives.
 * True if it yielded. */
bool urdma_cq_empty(struct urdma_cq *cq);
/* What one that found something does. */
void urdma_cq_found(struct urdma_cq *cq);

/* window.c */
/* 0, or why a request that binds mw is malformed. */
int urdma_window_check(const struct ibv_mw *mw, const struct ibv_mw_bind_info *info);
void urdma_window_write(struct urdma_abi_sqe *slot, const struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info);
/* What programs are shown of where a datagram came from: its LID, or its GRH. */
static inline uint16_t urdma_cq_slid(const struct urdma_cq *cq, const struct urdma_abi_cqe *e)
{
	return cq->shows_lid && (uint16_t)e->source_lid < 0xC000 ? (uint16_t)e->source_lid : 0;
}
/*
 * RoCEv2 has a completion say whether a datagram came with an IPv4 or an IPv6 header
 * (annex A17 of the InfiniBand Architecture Specification); struct ibv_wc has no place for it. Mellanox's devices say
 * it in sl, where UCX looks: bit 3: UDP; in bits 0 to 2 1: IPv6, or 2: IPv4, in the
 * second half of the GRH's 40 bytes.
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

/* death.c: after urdmad's end. */
/* One flushed work request of the queue pairs that complete on cq; the caller holds cq->lock. */
bool urdma_flush_take(struct urdma_cq *cq, struct urdma_abi_cqe *out);
/* A queue of channel that was armed and has something to poll, its event counted; or NULL. */
struct urdma_cq *urdma_flush_event(struct urdma_channel *channel);

/* opcode.c: what an enum ibv_wr_opcode does, as far as a client must know. */
struct urdma_operation {
	uint64_t send_op;  /* IBV_QP_EX_WITH_*; 0: the number is no opcode */
	uint32_t wc;       /* enum ibv_wc_opcode of its completion */
	bool supported;    /* else posting it answers EOPNOTSUPP */
	bool inlinable;    /* its data may be inline */
	bool writes_local; /* what comes back is written to the scatter list */
	bool atomic;       /* uses compare_add and swap */
	bool datagram;     /* queue pairs of type UD have it, too */
};
/* NULL for a number that is no opcode. */
const struct urdma_operation *urdma_operation(uint32_t opcode);
/* Whether a type of queue pair has it. */
bool urdma_operation_of(const struct urdma_operation *op, enum ibv_qp_type type);
/* The IBV_QP_EX_WITH_* of those that a type of queue pair has. */
uint64_t urdma_operation_send_ops(enum ibv_qp_type type);

/* Names a message's destination in a slot. */
static inline void urdma_sqe_address(struct urdma_abi_sqe *slot, const struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	const uint8_t *address = urdma_ah_of(ah)->address;

	slot->rkey = urdma_ah_of(ah)->traffic_class;
	slot->remote_addr = (uint64_t)qkey << 32 | qpn;
	memcpy(&slot->compare_add, address, 8);
	memcpy(&slot->swap, address + 8, 8);
}

/* queue.c: the client's side of a send or receive ring. */
/* A slot for one more work request, or NULL: the queue is full. */
void *urdma_queue_slot(struct urdma_queue *queue);
/* The queue that a completion is of. */
static inline struct urdma_queue *urdma_queue_of(struct urdma_qp *qp, const struct urdma_abi_cqe *e)
{
	return e->opcode & IBV_WC_RECV ? &qp->rq : &qp->sq;
}
/* Notes that a completion was polled; the caller holds the lock of its completion queue. */
static inline void urdma_queue_polled(struct urdma_queue *queue, uint32_t index)
{
	__atomic_store_n(&queue->polled, index + 1, __ATOMIC_RELEASE);
}
/* What urdmad, which is no more, owes a completion. */
struct urdma_lost {
	uint64_t wr_id;
	uint32_t opcode; /* enum ibv_wr_opcode; of a send */
};
/* The oldest such request, and with take its completion; the caller holds the
 * lock of the completion queue, which is empty. */
bool urdma_queue_lost(struct urdma_queue *queue, bool take, struct urdma_lost *out);
/* After urdmad's end: whether urdma_queue_lost has taken index. */
bool urdma_queue_was_lost(const struct urdma_queue *queue, uint32_t index);
/* Forgets all that was posted. */
void urdma_queue_reset(struct urdma_queue *queue);
/* Makes everything up to queue->prod visible to urdmad. */
void urdma_queue_publish(struct urdma_queue *queue);

/* state.c */
/* 0 if requests may be posted to a queue pair in its state, else an errno. */
int urdma_qp_may_send(struct urdma_qp *qp);
int urdma_qp_may_recv(struct urdma_qp *qp);
/* QUERY_QP. */
int urdma_qp_ask(struct urdma_qp *qp, struct urdma_abi_query_qp_response *response);
/* Asks urdmad for the state, as after a change that rdma_cm made. */
int urdma_qp_refresh(struct urdma_qp *qp);

/* yield.c: all without a queue's lock. */
/* Tells urdmad's worker that a ring has news; true if it slept and was kicked. */
bool urdma_ring_doorbell(struct urdma_qp *qp);
/* The doorbell after a send, and the yield that urdmad may wish for. */
void urdma_announce_send(struct urdma_qp *qp);
/* The yield after a poll of cq that found nothing, if it is due; true if it came. */
bool urdma_yield_empty_poll(struct urdma_cq *cq);
/* A poll found something, so a new wait begins. */
void urdma_yield_found(void);

/* The caller is about to wait for an event: it polls no more. */
void urdma_yield_stop(struct urdma_client *client);

/* child.c: in a child, frees the locks of every object of the parent's. */
void urdma_objects_forked(struct urdma_client *client);

/* build.c: fills the ibv_wr_* pointers that ops (IBV_QP_EX_WITH_*) names. */
void urdma_build_fill(struct urdma_qp *qp, uint64_t ops);

#endif /* URDMA_OBJECTS_H */
