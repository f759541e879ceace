/*
 * What /proc says of this process, by descriptors that are kept open: to open
 * one costs several times what it costs to ask it.
 *
 * The program may close any descriptor and reuse its number (closefrom), so each
 * use looks whether it is still the file that was opened. They show the process
 * that opened them, so a child must not use them: a word that the kernel wipes
 * in every child, whichever call made it, says whose they are.
 *
 * Below LOWEST_FD none is kept: a program with few descriptors needs them.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "kernel.h"
#include "sys.h"

struct kept {
	int fd; /* -1: none */
	uint64_t inode, device;
};

static const char *const paths[PROC_FILES] = {
	[PROC_MAPS] = "/proc/self/maps",
	[PROC_TASK] = "/proc/self/task",
	[PROC_STATUS] = "/proc/self/status",
	[PROC_PAGEMAP] = "/proc/self/pagemap",
	[PROC_OVERCOMMIT] = "/proc/sys/vm/overcommit_memory",
};
static struct kept kept[PROC_FILES] = { { .fd = -1 }, { .fd = -1 }, { .fd = -1 },
	                                { .fd = -1 }, { .fd = -1 } };
static uint32_t *ours; /* 0 in a child; NULL: such a word can't be had */

static bool ours_ready(void)
{
	if (ours)
		return true;
	long r = sys_mmap(0, PAGE, PROT_READ | PROT_WRITE,
	                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(r))
		return false;
	if (sys_failed(sys_madvise((uint64_t)r, PAGE, MADV_WIPEONFORK))) {
		sys_munmap((uint64_t)r, PAGE);
		return false;
	}
	ours = (uint32_t *)r;
	return true;
}

static bool is_kept(const struct kept *k, struct stat *st)
{
	return k->fd >= 0 && !sys_failed(sys_fstat(k->fd, st)) &&
	       st->st_ino == k->inode && st->st_dev == k->device;
}

/* The descriptor moves to a number that programs don't count on getting. */
static bool keep(enum proc_file which, int fd, struct stat *st)
{
	if (!ours_ready())
		return false;
	long up = sys6(SYS_fcntl, fd, F_DUPFD_CLOEXEC, LOWEST_FD, 0, 0, 0);
	if (sys_failed(up))
		return false;
	if (sys_failed(sys_fstat((int)up, st))) {
		sys_close((int)up);
		return false;
	}
	if (!*ours)
		for (unsigned i = 0; i < PROC_FILES; i++)
			kept[i].fd = -1; /* a parent's */
	kept[which] = (struct kept){ (int)up, st->st_ino, st->st_dev };
	*ours = 1;
	return true;
}

/* A descriptor of the file and what fstat(2) says of it, or -errno; ended by
 * proc_close. */
long proc_open(enum proc_file which, struct stat *st)
{
	if (ours && *ours) {
		if (is_kept(&kept[which], st))
			return kept[which].fd;
		kept[which].fd = -1;
	}
	long fd = sys_open(paths[which], O_RDONLY | O_CLOEXEC);
	if (sys_failed(fd))
		return fd;
	if (keep(which, (int)fd, st)) {
		sys_close((int)fd);
		return kept[which].fd;
	}
	long r = sys_fstat((int)fd, st);
	if (!sys_failed(r))
		return fd;
	sys_close((int)fd);
	return r;
}

void proc_close(enum proc_file which, int fd)
{
	if (fd >= 0 && fd != kept[which].fd)
		sys_close(fd);
}

/* In a child, whose handlers run: its parent's descriptors go. */
void proc_close_all(void)
{
	struct stat st;
	for (unsigned i = 0; i < PROC_FILES; i++) {
		if (is_kept(&kept[i], &st))
			sys_close(kept[i].fd);
		kept[i].fd = -1;
	}
}
