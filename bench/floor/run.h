#ifndef FLOOR_RUN_H
#define FLOOR_RUN_H

#include "policy.h"

/* Half round trips, and the processor use of the daemons. */
struct result {
	uint32_t pings;
	double mean_us, median_us, p90_us, p99_us, worst_us;
	double daemon_share;  /* processor time of both daemons divided by wall time */
	double switches;     /* context switches of all threads per half round trip */
};

int run_policy(const struct policy *p, uint64_t limit_ns, struct result *r);

#endif
