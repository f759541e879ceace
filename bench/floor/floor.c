/* floor: the lowest latency that a layout of threads on cores allows. With arguments it runs the row that they
 * describe; without, the whole table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"
#include "run.h"
#include "table.h"



void print_head(void)
{
	printf("%-54s %7s %8s %8s %8s %8s %9s %6s %5s\n", "half round trip, us", "pings",
	       "mean", "median", "p90", "p99", "worst", "daemon", "cs");
}

int print_row(const char *name, const char *text, uint64_t limit_ns)
{
	struct policy p;
	struct result r;

	if (parse_policy(text, &p) != 0 || run_policy(&p, limit_ns, &r) != 0)
		return -1;
	printf("%-54s %7u %8.2f %8.2f %8.2f %8.2f %9.1f %5.1f%% %5.1f\n", name, r.pings, r.mean_us,
	       r.median_us, r.p90_us, r.p99_us, r.worst_us, 100 * r.daemon_share, r.switches);
	fflush(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return run_table();
	print_head();
	uint64_t limit = getenv("FLOOR_MS") ? strtoull(getenv("FLOOR_MS"), NULL, 10) * 1000000u : 1000000000u;
	for (int i = 1; i < argc; i++)
		if (print_row(argv[i], argv[i], limit) != 0)
			return 2;
	return 0;
}
