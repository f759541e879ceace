/* Which pages of a mapping exist: /proc/self/pagemap has a word for each. */
#include "kernel.h"
#include "sys.h"

/* -1: that can't be known. */
int pagemap_open(void)
{
	struct stat st;
	long fd = proc_open(PROC_PAGEMAP, &st);
	return sys_failed(fd) ? -1 : (int)fd;
}

void pagemap_close(int fd)
{
	proc_close(PROC_PAGEMAP, fd);
}

bool pagemap_read(int fd, uint64_t addr, unsigned pages, uint64_t *entry)
{
	long n = pages * sizeof *entry;
	return fd >= 0 && sys_pread(fd, (uint64_t)entry, (uint64_t)n,
	                            addr / PAGE * sizeof *entry) == n;
}
