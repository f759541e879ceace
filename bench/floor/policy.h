/* A row of the table: which threads yield and sleep, on which cores and in which scheduling class. */
#ifndef FLOOR_POLICY_H
#define FLOOR_POLICY_H

#include <stdint.h>
#include "layout.h"

enum traffic {
	TRAFFIC_WRITE,  /* ib_write_lat: poll memory, post, poll the CQ */
	TRAFFIC_SEND,  /* ib_send_lat: only poll the CQ */
	TRAFFIC_ONEWAY,  /* no answers: post, wait for the completion, repeat */
	TRAFFIC_MEMORY,  /* a server that only polls memory and posts */
};

enum cores {
	CORES_FREE,  /* the kernel chooses */
	CORES_PAIR,  /* each daemon on the core of its own client */
	CORES_CROSS,  /* each daemon on the core of the other client */
	CORES_SPLIT,   /* daemons on core 0, clients on core 1 */
	CORES_OWN,  /* a core for each thread, if there are four */
};

enum post {
	POST_RETURNS,  /* post only writes to the ring */
	POST_YIELDS,  /* post also yields the core */
	POST_YIELDS_SAME,  /* post yields only if the daemon last ran on the caller's core */
};

enum class { CLASS_OTHER, CLASS_BATCH, CLASS_FIFO, CLASS_RR };

struct placement {
	enum class class;
	int nice;
	uint64_t slice_ns;  /* requested EEVDF slice, 0: the system's */
};

/* The daemon's stages when idle: spin, then yield, then sleep, each for a time. */
struct ladder {
	uint64_t spin_ns;
	uint64_t yield_ns;
	uint64_t nap_ns;  /* first sleep; 0: never sleeps */
	uint64_t nap_max_ns;  /* sleeps double up to this; UINT64_MAX: until kicked */
	uint64_t hog_ns;  /* a longer yield met a hog: sleep for a while */
	uint64_t hog_first_ns, hog_most_ns;  /* for how long, doubling while it recurs */
	uint64_t alone_ns;  /* a shorter yield ran no other thread */
	uint64_t alone_spin_ns;  /* then spin this long before the next yield */
	uint64_t nap_slice_ns;  /* EEVDF slice while sleeping, 0: unchanged */
};

struct policy {
	const char *name;
	enum traffic traffic;
	int daemons;
	enum cores cores;
	enum post post;
	uint32_t poll_yield_after;  /* empty polls before a yield, 0: never */
	uint64_t poll_alone_ns, poll_alone_spin_ns;  /* as in struct ladder */
	uint64_t ack_defer_ns;  /* 0: at once */
	int go;  /* use the Go daemons, with their policy */
	int echo;  /* one daemon and one client; the daemon answers */
	uint64_t ack_reply_ns;  /* defer only while replies come within this time; 0: always */
	int kick;  /* kick a sleeping daemon */
	struct ladder ladder;
	struct placement daemon, client;
	uint64_t pause_ns;  /* client 0 sleeps this long between pings */
};

struct doors {
	int kick[2];  /* eventfd of each daemon */
};

uint64_t now_ns(void);
uint64_t thread_cpu_ns(void);
void relax(void);
void yield(void);
void nap(uint64_t ns);
int place(const struct placement *p, int core);
int this_core(void);
void set_slice(uint64_t ns);
void wake(struct shared *sh, const struct doors *doors, int who);

void run_daemon(struct shared *sh, const struct policy *p, const struct doors *doors, int me);
void run_client(struct shared *sh, const struct policy *p, const struct doors *doors,
		int me, uint32_t pings, uint32_t *rtt_ns);

#endif
