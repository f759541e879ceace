/* The table: the policies that were compared, and the chosen one. */
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "table.h"

#define LIBRARY "post=same kick=1 poll=1 pollalone=1us pollspin=2us "
#define LADDER "spin=0 yield=50us nap=ever alone=1us alonespin=2us hog=1ms napslice=100us "
#define ACK "ack=50us reply=100us "
#define CHOSEN LIBRARY LADDER ACK

struct row {
	const char *name, *words;
};

static const struct row rows[] = {
	{ "write_lat: nobody yields", "traffic=write" },
	{ "write_lat: only the daemon yields", "traffic=write spin=0" },
	{ "write_lat: yields both sides, ack at once", "traffic=write spin=0 poll=1 post=yields" },
	{ "write_lat: daemon always sleeps, kicked, ack at once",
	  "traffic=write spin=0 poll=1 nap=ever kick=1" },
	{ "write_lat: naps of 20 us, ack at once", "traffic=write spin=0 poll=1 post=yields nap=20us" },
	{ "write_lat: the same, daemon's slice 100 us",
	  "traffic=write spin=0 poll=1 post=yields nap=20us dslice=100us" },
	{ "write_lat: SCHED_FIFO daemon, kicked (root)",
	  "traffic=write dclass=fifo spin=0 poll=1 nap=ever kick=1" },
	{ "write_lat: yields, ack rides, daemon's slice 100 us",
	  "traffic=write spin=0 post=yields poll=1 ack=50us dslice=100us" },
	{ "write_lat: yields, ack rides, daemon's nice -10 (root)",
	  "traffic=write spin=0 post=yields poll=1 ack=50us dnice=-10" },
	{ "write_lat: yields, ack rides, SCHED_BATCH clients",
	  "traffic=write spin=0 post=yields poll=1 ack=50us cclass=batch" },
	{ "write_lat: yields, ack rides, poll yields at the 100th",
	  "traffic=write spin=0 post=yields poll=100 ack=50us" },
	{ "write_lat: yields, ack rides, daemon spins 5 us first",
	  "traffic=write spin=5us yield=ever nap=1us post=yields poll=1 ack=50us" },
	{ NULL, NULL },
	{ "chosen: write_lat, free", CHOSEN "traffic=write" },
	{ "chosen: write_lat, daemon with its client", CHOSEN "traffic=write cores=pair" },
	{ "chosen: write_lat, daemon with the other's client", CHOSEN "traffic=write cores=cross" },
	{ "chosen: write_lat, daemons / clients", CHOSEN "traffic=write cores=split" },
	{ "chosen: send_lat, free", CHOSEN "traffic=send" },
	{ "chosen: send_lat, daemon with its client", CHOSEN "traffic=send cores=pair" },
	{ "chosen: nobody answers, daemon with its client", CHOSEN "traffic=oneway cores=pair" },
	{ "always deferring: nobody answers",
	  LIBRARY LADDER "ack=20us traffic=oneway cores=pair" },
	{ "chosen: never polls, daemon with its client", CHOSEN "traffic=memory cores=pair" },
	{ "without the hog rule: never polls",
	  LIBRARY "spin=0 yield=50us nap=ever alone=1us alonespin=2us " ACK "traffic=memory cores=pair" },
	{ "chosen: one daemon, two clients", CHOSEN "daemons=1 ack=0" },
	{ "chosen: a core each (daemon echoes)", CHOSEN "daemons=1 echo=1 cores=split" },
	{ "all spin: a core each (daemon echoes)", "daemons=1 echo=1 cores=split" },
	{ "chosen: a message every 100 ms", CHOSEN "pause=100ms" },
	{ "no kick, naps up to 1 ms: a message every 100 ms",
	  "post=same poll=1 spin=0 yield=50us nap=20us napmax=1ms " ACK "pause=100ms" },
	{ NULL, NULL },
	{ "Go daemons: write_lat, free", LIBRARY "go=1 ack=50us traffic=write" },
	{ "Go daemons: write_lat, daemon with its client", LIBRARY "go=1 ack=50us traffic=write cores=pair" },
	{ "Go daemons: send_lat, daemon with its client", LIBRARY "go=1 ack=50us traffic=send cores=pair" },
	{ "Go daemons: never polls, daemon with its client", LIBRARY "go=1 ack=50us traffic=memory cores=pair" },
	{ "Go daemons: a message every 100 ms", LIBRARY "go=1 ack=50us pause=100ms" },
};

static void print_load(void)
{
	double load[1] = { 0 };

	if (getloadavg(load, 1) == 1)
		printf("load average %.1f\n", load[0]);
}

int run_table(void)
{
	print_load();
	print_head();
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (!rows[i].name) {
			printf("\n");
			continue;
		}
		if (print_row(rows[i].name, rows[i].words, 1000000000u) != 0)
			return 2;
	}
	print_load();
	return 0;
}
