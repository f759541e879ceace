/* The shared memory of the floor bench: two clients, one or two daemons, and the wire between the daemons. Every
 * frequently written field has a cache line of its own. */
#ifndef FLOOR_LAYOUT_H
#define FLOOR_LAYOUT_H

#include <stdatomic.h>
#include <stdint.h>

#define LINE 64
#define SLOTS 64u  /* a power of two */

enum kind { KIND_DATA = 1, KIND_ACK = 2 };

/* One message: a work request in a client's ring, a packet on the wire, or a completion. */
struct slot {
	uint32_t kind;
	uint32_t sequence;  /* number of the ping, from 1 */
	uint32_t ack;  /* wire: all pings up to this one have been placed */
	uint32_t solicits;  /* data: the receiving program waits on its CQ */
	uint8_t payload[LINE - 16];
};

/* Single producer, single consumer. The producer publishes a filled slot by a release store of head, which pairs
 * with the consumer's acquire load. The consumer returns a slot by a release store of tail. */
struct ring {
	_Alignas(LINE) _Atomic uint32_t head;
	_Alignas(LINE) _Atomic uint32_t tail;
	_Alignas(LINE) struct slot slots[SLOTS];
};

/* The state of a daemon that clients need to wake it. */
struct door {
	_Alignas(LINE) _Atomic uint32_t sleeping;  /* 1: kick the daemon after a post */
	_Atomic int32_t core;  /* the core on which it last ran */
	_Alignas(LINE) _Atomic uint64_t turns;
	_Atomic uint64_t naps, yields, kicks, cpu_ns;
};

struct program {
	struct ring post, complete;
	_Alignas(LINE) _Atomic uint32_t landed;  /* the byte that ib_write_lat polls */
};

struct shared {
	struct door door[2];
	struct program program[2];
	struct ring wire[2];  /* wire[i] carries packets from daemon i */
	_Alignas(LINE) _Atomic uint32_t ready;
	_Atomic uint32_t go, stop;
};

static inline int ring_put(struct ring *r, const struct slot *s)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	if (head - atomic_load_explicit(&r->tail, memory_order_acquire) == SLOTS)
		return 0;
	r->slots[head % SLOTS] = *s;
	atomic_store_explicit(&r->head, head + 1, memory_order_release);
	return 1;
}

static inline int ring_get(struct ring *r, struct slot *s)
{
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	if (atomic_load_explicit(&r->head, memory_order_acquire) == tail)
		return 0;
	*s = r->slots[tail % SLOTS];
	atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
	return 1;
}

static inline int ring_empty(struct ring *r)
{
	return atomic_load_explicit(&r->head, memory_order_acquire) ==
	       atomic_load_explicit(&r->tail, memory_order_relaxed);
}

#endif
