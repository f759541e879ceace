/*
 * defaults.c - reads the administrator's defaults in /etc/rdma/rsocket, one integer a file, as described
 * in rsocket(7).
 */
#include <stdio.h>

#include "rsockets.h"

#define FOLDER "/etc/rdma/rsocket/"
#define LEAST_RING 4096u
#define MOST_RING (1u << 30)
#define LEAST_QUEUE 32u
#define MOST_QUEUE 4095u

static struct rs_options defaults;
static uint32_t polling_us, wake_interval_ms;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint32_t read_number(const char *path, uint32_t value, uint32_t least, uint32_t most)
{
	FILE *file = fopen(path, "re");
	unsigned long n;

	if (!file)
		return value;
	if (fscanf(file, "%lu", &n) == 1)
		value = n < least ? least : n > most ? most : (uint32_t)n;
	fclose(file);
	return value;
}

static void read_defaults(void)
{
	int before = errno;

	defaults = (struct rs_options){
		.send_bytes = read_number(FOLDER "wmem_default", 1u << 17, LEAST_RING, MOST_RING),
		.recv_bytes = read_number(FOLDER "mem_default", 1u << 17, LEAST_RING, MOST_RING),
		.sq_size = read_number(FOLDER "sqsize_default", 384, LEAST_QUEUE, MOST_QUEUE),
		.rq_size = read_number(FOLDER "rqsize_default", 384, LEAST_QUEUE, MOST_QUEUE),
		.inline_bytes = read_number(FOLDER "inline_default", 64, 0, 4096),
		.iomaps = read_number(FOLDER "iomap_size", 0, 0, 65535),
		.keep_idle = 7200, .keep_interval = 75, .keep_count = 9,
	};
	polling_us = read_number(FOLDER "polling_time", 10, 0, 1000000);
	wake_interval_ms = read_number(FOLDER "wake_up_interval", 5000, 1, 3600000);
	errno = before;
}

const struct rs_options *rs_defaults(void)
{
	pthread_once(&once, read_defaults);
	return &defaults;
}

unsigned rs_polling_us(void)
{
	pthread_once(&once, read_defaults);
	return polling_us;
}

int rs_wake_interval_ms(void)
{
	pthread_once(&once, read_defaults);
	return (int)wake_interval_ms;
}
