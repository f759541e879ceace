/* The simulated daemon: one poll loop that spins, then yields, then sleeps. */
#define _GNU_SOURCE
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "policy.h"

struct daemon {
	struct shared *sh;
	const struct policy *policy;
	const struct doors *doors;
	int me, clients[2], client_count;
	uint32_t placed;  /* last ping placed in the client's memory */
	uint32_t acked;  /* last ping acknowledged to the peer */
	uint64_t owed_since;  /* when placed became greater than acked */
	uint64_t placed_at;  /* time of the last arrival */
	int converses;  /* the last arrival was answered soon */
	struct { uint32_t sequence; uint64_t since; } held[2];  /* loopback: completions not yet reported */
};

/* A full fence stands between the ring store and the load of the flag. The sleeper has one between setting the flag
 * and its last check of the rings. So at least one of the two sees the other's store, and no wake-up is lost. */
void wake(struct shared *sh, const struct doors *doors, int who)
{
	uint64_t one = 1;

	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&sh->door[who].sleeping, memory_order_relaxed))
		return;
	if (!atomic_exchange(&sh->door[who].sleeping, 0))
		return;
	if (write(doors->kick[who], &one, sizeof one) == (ssize_t)sizeof one)
		atomic_fetch_add_explicit(&sh->door[who].kicks, 1, memory_order_relaxed);
}

static void complete(struct daemon *d, int client, uint32_t sequence, uint32_t kind)
{
	struct slot s = { .kind = kind, .sequence = sequence };

	ring_put(&d->sh->program[client].complete, &s);
}

static void place_payload(struct daemon *d, int client, const struct slot *s)
{
	if (s->solicits)
		complete(d, client, s->sequence, KIND_DATA);
	atomic_store_explicit(&d->sh->program[client].landed, s->sequence, memory_order_release);
}

static void send_wire(struct daemon *d, struct slot *s)
{
	s->ack = d->placed;
	d->acked = d->placed;
	ring_put(&d->sh->wire[d->me], s);
	if (d->policy->kick)
		wake(d->sh, d->doors, 1 - d->me);
}

static int receive(struct daemon *d, uint64_t now, uint32_t *completed)
{
	struct slot s;
	int busy = 0;

	while (ring_get(&d->sh->wire[1 - d->me], &s)) {
		busy = 1;
		if (s.kind == KIND_DATA) {
			place_payload(d, d->me, &s);
			if (d->placed == d->acked)
				d->owed_since = now;
			d->placed = s.sequence;
			d->placed_at = now;
		}
		for (; *completed < s.ack; ++*completed)
			complete(d, d->me, *completed + 1, KIND_ACK);
	}
	return busy;
}

static void tell_held(struct daemon *d, int client)
{
	if (d->held[client].sequence)
		complete(d, client, d->held[client].sequence, KIND_ACK);
	d->held[client].sequence = 0;
}

static int forward(struct daemon *d, uint64_t now)
{
	struct slot s;
	int busy = 0;

	for (int i = 0; i < d->client_count; i++) {
		int client = d->clients[i];

		while (ring_get(&d->sh->program[client].post, &s)) {
			busy = 1;
			d->converses |= now - d->placed_at < d->policy->ack_reply_ns;
			if (d->policy->daemons == 2) {
				send_wire(d, &s);
				continue;
			}
			if (d->policy->echo) {
				complete(d, client, s.sequence, KIND_ACK);
				place_payload(d, client, &s);
				continue;
			}
			place_payload(d, 1 - client, &s);
			tell_held(d, 1 - client);
			d->held[client].sequence = s.sequence;
			d->held[client].since = now;
			if (!d->policy->ack_defer_ns)
				tell_held(d, client);
		}
	}
	return busy;
}

/* Sends the acknowledgements that have waited long enough, or all of them when the daemon is about to sleep. */
static void acknowledge(struct daemon *d, uint64_t now, int all)
{
	struct slot s = { .kind = KIND_ACK };

	uint64_t wait = d->policy->ack_reply_ns && !d->converses ? 0 : d->policy->ack_defer_ns;

	if (d->placed != d->acked && (all || now - d->owed_since >= wait)) {
		d->converses = 0;
		send_wire(d, &s);
	}
	for (int c = 0; c < 2; c++)
		if (d->held[c].sequence && (all || now - d->held[c].since >= d->policy->ack_defer_ns))
			tell_held(d, c);
}

static int work_waits(struct daemon *d)
{
	for (int i = 0; i < d->client_count; i++)
		if (!ring_empty(&d->sh->program[d->clients[i]].post))
			return 1;
	return d->policy->daemons == 2 && !ring_empty(&d->sh->wire[1 - d->me]);
}

static void sleep_a_while(struct daemon *d, uint64_t ns)
{
	struct door *door = &d->sh->door[d->me];
	struct timespec t = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
	struct pollfd fd = { .fd = d->doors->kick[d->me], .events = POLLIN };
	uint64_t drained;

	if (!d->policy->kick) {
		nap(ns);
		return;
	}
	atomic_store(&door->sleeping, 1);
	atomic_thread_fence(memory_order_seq_cst);
	if (!work_waits(d) && ppoll(&fd, 1, &t, NULL) == 1) {
		if (read(fd.fd, &drained, sizeof drained) < 0)
			return;
	}
	atomic_store(&door->sleeping, 0);
}

/* The daemon's state between spinning and sleeping. */
struct rung {
	uint64_t busy_at;  /* last turn with work */
	uint64_t nap_ns;  /* length of the next sleep */
	uint64_t hog_until;  /* no yield before this time */
	uint64_t hog_for;  /* how long the next hog is avoided */
	uint64_t yield_at;  /* time of the next yield after one that ran no other thread */
	int short_slice;
};

static void slice(struct daemon *d, struct rung *r, int napping)
{
	uint64_t ns = d->policy->ladder.nap_slice_ns;

	if (!ns || r->short_slice == napping)
		return;
	set_slice(napping ? ns : d->policy->daemon.slice_ns);
	r->short_slice = napping;
}

/* Yields, and judges by the time taken whether another thread shares the core without giving it back. */
static void yield_and_judge(struct daemon *d, struct rung *r)
{
	const struct ladder *l = &d->policy->ladder;
	uint64_t before = now_ns(), after;

	slice(d, r, 0);
	yield();
	after = now_ns();
	atomic_fetch_add_explicit(&d->sh->door[d->me].yields, 1, memory_order_relaxed);
	r->yield_at = after - before < l->alone_ns ? after + l->alone_spin_ns : 0;
	if (!l->hog_ns)
		return;
	if (after - before <= l->hog_ns) {
		if (r->hog_until && after - r->hog_until > r->hog_for)
			r->hog_for = l->hog_first_ns, r->hog_until = 0;
		return;
	}
	r->hog_until = after + r->hog_for;
	r->hog_for = r->hog_for * 2 > l->hog_most_ns ? l->hog_most_ns : r->hog_for * 2;
}

static void rest(struct daemon *d, struct rung *r, uint64_t now)
{
	const struct ladder *l = &d->policy->ladder;
	uint64_t idle = now - r->busy_at;
	int hogged = now < r->hog_until;

	if ((idle < l->spin_ns || now < r->yield_at) && !hogged) {
		relax();
		return;
	}
	if (!l->nap_ns || (idle - l->spin_ns < l->yield_ns && !hogged)) {
		yield_and_judge(d, r);
		return;
	}
	if (!hogged)
		acknowledge(d, now, 1);
	slice(d, r, 1);
	sleep_a_while(d, r->nap_ns);
	r->nap_ns = r->nap_ns * 2 > l->nap_max_ns ? l->nap_max_ns : r->nap_ns * 2;
	atomic_fetch_add_explicit(&d->sh->door[d->me].naps, 1, memory_order_relaxed);
}

void run_daemon(struct shared *sh, const struct policy *p, const struct doors *doors, int me)
{
	struct daemon d = { .sh = sh, .policy = p, .doors = doors, .me = me };
	struct rung rung = { .busy_at = now_ns(), .nap_ns = p->ladder.nap_ns, .hog_for = p->ladder.hog_first_ns };
	struct door *door = &sh->door[me];
	uint32_t completed = 0;
	uint64_t now;
	int busy;

	d.clients[d.client_count++] = me;
	if (p->daemons == 1)
		d.clients[d.client_count++] = 1;
	while (!atomic_load_explicit(&sh->stop, memory_order_relaxed)) {
		now = now_ns();
		atomic_store_explicit(&door->core, this_core(), memory_order_relaxed);
		busy = p->daemons == 2 && receive(&d, now, &completed);
		busy |= forward(&d, now);
		acknowledge(&d, now, 0);
		atomic_fetch_add_explicit(&door->turns, 1, memory_order_relaxed);
		if (busy)
			rung.busy_at = now, rung.nap_ns = p->ladder.nap_ns;
		else
			rest(&d, &rung, now);
	}
	atomic_store(&door->cpu_ns, thread_cpu_ns());
}
