/* One row of the table: who yields, who sleeps, where and in which class. */
#ifndef FLOOR_POLICY_H
#define FLOOR_POLICY_H

#include <stdint.h>
#include "layout.h"

enum traffic {
	TRAFFIC_WRITE, /* ib_write_lat: spin on memory, post, poll the CQ */
	TRAFFIC_SEND,  /* ib_send_lat: everything is a CQ poll */
	TRAFFIC_ONEWAY, /* nobody answers: post, wait for the completion, again */
	TRAFFIC_MEMORY, /* a server that only ever spins on memory and posts */
};

enum cores {
	CORES_FREE,    /* the kernel decides */
	CORES_PAIR,    /* each daemon with its own client */
	CORES_CROSS,   /* each daemon with the other's client */
	CORES_SPLIT,   /* daemons on core 0, clients on core 1 */
	CORES_OWN,     /* a core for each thread, where there are four */
};

enum post {
	POST_RETURNS,  /* post only writes the ring */
	POST_YIELDS,   /* and gives the core away */
	POST_YIELDS_SAME, /* only if the daemon last ran on the caller's core */
};

enum class { CLASS_OTHER, CLASS_BATCH, CLASS_FIFO, CLASS_RR };

struct placement {
	enum class class;
	int nice;
	uint64_t slice_ns; /* EEVDF slice wished for, 0: the system's */
};

/* The daemon's ladder: spin, then yield, then sleep; each rung lasts a time. */
struct ladder {
	uint64_t spin_ns;
	uint64_t yield_ns;
	uint64_t nap_ns;      /* first sleep; 0: never sleeps */
	uint64_t nap_max_ns;  /* doubles up to this; UINT64_MAX: until kicked */
	uint64_t hog_ns;      /* a yield that took longer met a hog: nap for a while */
	uint64_t hog_first_ns, hog_most_ns; /* for so long, doubling while it recurs */
	uint64_t alone_ns;      /* a yield that took less met nobody */
	uint64_t alone_spin_ns; /* and the next comes after so long a spin */
	uint64_t nap_slice_ns; /* EEVDF slice while napping, 0: unchanged */
};

struct policy {
	const char *name;
	enum traffic traffic;
	int daemons;
	enum cores cores;
	enum post post;
	uint32_t poll_yield_after; /* empty polls before a yield, 0: never */
	uint64_t poll_alone_ns, poll_alone_spin_ns; /* as the ladder's */
	uint64_t ack_defer_ns;     /* 0: at once */
	int go;                    /* the daemons are Go's, with its policy */
	int echo;                  /* one daemon and one client, the daemon answers */
	uint64_t ack_reply_ns;     /* defer only while replies come within this; 0: always */
	int kick;                  /* wake a sleeping daemon */
	struct ladder ladder;
	struct placement daemon, client;
	uint64_t pause_ns;         /* client 0 sleeps so long between pings */
};

struct doors {
	int kick[2]; /* eventfd of each daemon */
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
