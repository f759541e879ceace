/* The simulated client: the loop of perftest's latency programs, with the post and poll functions of the library. */
#include "policy.h"

struct client {
	struct shared *sh;
	const struct policy *policy;
	const struct doors *doors;
	struct program *program;
	int me, daemon;
	uint64_t yield_at;
};

static int stopped(struct client *c)
{
	return (int)atomic_load_explicit(&c->sh->stop, memory_order_relaxed);
}

static void post(struct client *c, uint32_t sequence)
{
	struct slot s = { .kind = KIND_DATA, .sequence = sequence,
			  .solicits = c->policy->traffic == TRAFFIC_SEND };
	struct door *door = &c->sh->door[c->daemon];

	ring_put(&c->program->post, &s);
	if (c->policy->kick)
		wake(c->sh, c->doors, c->daemon);
	if (c->policy->post == POST_YIELDS ||
	    (c->policy->post == POST_YIELDS_SAME &&
	     atomic_load_explicit(&door->core, memory_order_relaxed) == this_core()))
		yield();
}

/* After a yield that ran no other thread, the client polls for a while without yielding. */
static void poll_yields(struct client *c)
{
	uint64_t before, after;

	if (!c->policy->poll_alone_ns) {
		yield();
		return;
	}
	before = now_ns();
	if (before < c->yield_at)
		return;
	yield();
	after = now_ns();
	if (after - before < c->policy->poll_alone_ns)
		c->yield_at = after + c->policy->poll_alone_spin_ns;
}

/* The program's loop around ibv_poll_cq; the library yields inside. */
static int poll_until(struct client *c, uint32_t kind, uint32_t *pending)
{
	uint32_t empty = 0;
	struct slot s;

	while (!stopped(c)) {
		if (pending[kind] > 0) {
			pending[kind]--;
			return 1;
		}
		if (ring_get(&c->program->complete, &s)) {
			pending[s.kind]++;
			empty = 0;
			continue;
		}
		if (c->policy->poll_yield_after && ++empty >= c->policy->poll_yield_after) {
			empty = 0;
			poll_yields(c);
		}
		relax();
	}
	return 0;
}

static int await(struct client *c, uint32_t sequence, uint32_t *pending)
{
	if (c->policy->traffic == TRAFFIC_ONEWAY)
		return 1;
	if (c->policy->traffic == TRAFFIC_SEND)
		return poll_until(c, KIND_DATA, pending);
	while (atomic_load_explicit(&c->program->landed, memory_order_acquire) < sequence)
		if (stopped(c))
			return 0;
	return 1;
}

/* Removes completions without waiting for one. */
static void discard(struct client *c)
{
	struct slot s;

	while (ring_get(&c->program->complete, &s))
		;
}

static int settle(struct client *c, uint32_t *pending)
{
	if (c->policy->traffic != TRAFFIC_MEMORY)
		return poll_until(c, KIND_ACK, pending);
	discard(c);
	return 1;
}

static void play(struct client *c, uint32_t pings, uint32_t *rtt_ns)
{
	uint32_t pending[3] = { 0 };
	uint64_t begun = 0, now;

	if (c->me == 1 && c->policy->traffic == TRAFFIC_ONEWAY)
		return;
	for (uint32_t i = 1; i <= pings; i++) {
		if (c->me == 1 && !await(c, i, pending))
			return;
		if (c->me == 0 && c->policy->pause_ns)
			nap(c->policy->pause_ns);
		if (c->me == 0)
			begun = now_ns();
		post(c, i);
		if (!settle(c, pending))
			return;
		if (c->me == 0) {
			if (!await(c, i, pending))
				return;
			now = now_ns();
			rtt_ns[i - 1] = (uint32_t)(now - begun);
			begun = now;
		}
	}
}

void run_client(struct shared *sh, const struct policy *p, const struct doors *doors,
		int me, uint32_t pings, uint32_t *rtt_ns)
{
	struct client c = { .sh = sh, .policy = p, .doors = doors,
			    .program = &sh->program[me], .me = me,
			    .daemon = p->daemons == 2 ? me : 0 };

	play(&c, pings, rtt_ns);
}
