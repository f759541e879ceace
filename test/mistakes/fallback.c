/* fallback.c - registers a megabyte of a file that is open for reading only. */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mistakes.h"

int main(void)
{
	const size_t n = 1 << 20;
	char path[64];
	int file = memfd_create("table", 0), to_read;
	void *table;

	must(file >= 0 && ftruncate(file, n) == 0, "memfd_create");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	to_read = open(path, O_RDONLY);
	close(file);
	table = mmap(NULL, n, PROT_READ, MAP_SHARED, to_read, 0);
	side_new(PLAN);
	must(table != MAP_FAILED, "mmap");
	must(ibv_reg_mr(pd, table, n, 0) != NULL, "ibv_reg_mr");
	return 0;
}
