/*
 * queue.c - the client's side of a send or receive ring.
 *
 * A slot is free once its completion, or a later one of the same queue, was polled, or once urdmad
 * completed it without a completion (urdma_abi.h). A post holds the queue's lock and advances cons; a poll
 * holds the completion queue's lock and advances polled. Indices wrap around and are compared by their
 * difference.
 */
#include "objects.h"

static void *slot_at(const struct urdma_queue *q, uint32_t index)
{
	return q->slots + (size_t)(index & q->mask) * q->stride;
}

/* Returns whether a send that urdmad has carried out made no completion. urdmad stores failed before the
 * index that includes the send; here they are loaded in the opposite order. */
static bool silent(const struct urdma_queue *q, uint32_t index)
{
	const struct urdma_abi_sqe *slot = slot_at(q, index);

	if (slot->flags & IBV_SEND_SIGNALED)
		return false;
	return !__atomic_load_n(&q->failing->failed, __ATOMIC_ACQUIRE) ||
	       (int32_t)(index - __atomic_load_n(&q->failing->first_failed, __ATOMIC_RELAXED)) < 0;
}

/* Release: a poll that loads the current seen also loads the current cons. If it finds an old value of
 * seen, cons may be anywhere beyond it. */
static void take_polled(struct urdma_queue *q)
{
	uint32_t polled = __atomic_load_n(&q->polled, __ATOMIC_ACQUIRE);

	if (polled == q->seen)
		return;
	if (polled - q->cons <= q->prod - q->cons)
		URDMA_STORE(q->cons, polled);
	__atomic_store_n(&q->seen, polled, __ATOMIC_RELEASE);
}

static void take_silent(struct urdma_queue *q)
{
	uint32_t done, cons = q->cons;

	if (q->all_signaled || q->until_polled)
		return;
	done = __atomic_load_n(q->shared_cons, __ATOMIC_ACQUIRE);
	if (done - cons > q->prod - cons)
		return;
	while (cons != done && silent(q, cons))
		cons++;
	URDMA_STORE(q->cons, cons);
}

static void take_taken(struct urdma_queue *q)
{
	uint32_t taken = __atomic_load_n(q->shared_cons, __ATOMIC_ACQUIRE);

	if (taken - q->cons <= q->prod - q->cons)
		URDMA_STORE(q->cons, taken);
}

/* Free slots are looked for only when the known ones are used up. */
void *urdma_queue_slot(struct urdma_queue *q)
{
	if (q->prod - q->cons >= q->depth) {
		if (q->free_when_taken)
			take_taken(q);
		else
			take_polled(q);
		if (q->prod - q->cons >= q->depth && !q->free_when_taken)
			take_silent(q);
		if (q->prod - q->cons >= q->depth)
			return NULL;
		__atomic_thread_fence(__ATOMIC_RELEASE); /* partner: the fence in urdma_queue_lost */
	}
	return slot_at(q, q->prod);
}

/* Returns the oldest request whose completion was not polled. */
static uint32_t unpolled(const struct urdma_queue *q)
{
	uint32_t seen = __atomic_load_n(&q->seen, __ATOMIC_ACQUIRE);

	return q->polled == seen && !q->losing ? URDMA_LOAD(q->cons) : q->polled;
}

/* Only published requests count; one that is being posted is found next time. If an unsignaled slot is
 * freed and reused while it is read, it is skipped. */
bool urdma_queue_lost(struct urdma_queue *q, bool take, struct urdma_lost *out)
{
	uint32_t prod = __atomic_load_n(q->shared_prod, __ATOMIC_ACQUIRE);
	uint32_t done = __atomic_load_n(q->shared_cons, __ATOMIC_ACQUIRE);
	const struct urdma_abi_sqe *slot;
	uint32_t at = unpolled(q);

	if (prod - at > q->depth) /* no index of a request in use: urdmad has completed one that is none */
		at = prod - q->depth;
	for (; (int32_t)(prod - at) > 0; at++) {
		if ((int32_t)(done - at) > 0 && !q->all_signaled && silent(q, at))
			continue;
		slot = slot_at(q, at); /* valid for receives, too: their slots also begin with wr_id */
		*out = (struct urdma_lost){ .wr_id = slot->wr_id, .opcode = slot->opcode };
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if ((int32_t)(URDMA_LOAD(q->cons) - at) > 0)
			continue;
		if (take) {
			urdma_queue_polled(q, at);
			q->losing = true;
		}
		return true;
	}
	return false;
}

bool urdma_queue_was_lost(const struct urdma_queue *q, uint32_t index)
{
	return q->polled - 1 - index < q->depth;
}

void urdma_queue_reset(struct urdma_queue *q)
{
	int taken = urdma_lock_take(&q->lock);

	__atomic_store_n(&q->polled, q->prod, __ATOMIC_RELEASE);
	URDMA_STORE(q->cons, q->prod);
	__atomic_store_n(&q->seen, q->prod, __ATOMIC_RELEASE);
	urdma_lock_drop(&q->lock, taken);
}

/* Release: urdmad's acquire load of prod sees the slots before it. */
void urdma_queue_publish(struct urdma_queue *q)
{
	__atomic_store_n(q->shared_prod, q->prod, __ATOMIC_RELEASE);
}
