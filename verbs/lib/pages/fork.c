//go:build c_only
/*
 * fork(2). The arena's mapping is shared, and a child does not inherit it (MADV_DONTFORK). After a fork by
 * a raw system call, which runs no handlers, the child has a hole there, and an access kills it. In all
 * other children the handlers copy the memfd's contents to private memory at the same addresses before
 * fork returns; pages that were never written stay holes.
 *
 * The parent's thread waits in fork until its child has the copy or has ended. Other threads continue: the
 * copy may contain part of what they write to the arena meanwhile, whereas a fork of private memory shows
 * a single moment. Memory that they free is kept until then. No lock is held, so a stopped child delays
 * only that one fork. In the child the whole arena is readable and writable, whatever mprotect(2) was
 * called with.
 *
 * The handlers run as close to the fork as possible, so that the program's own handlers find the memory in
 * the child: ../malloc registers them before all others.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "internal.h"
#include "kernel/sys.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000 /* Linux 4.17 */
#endif
#define RW (PROT_READ | PROT_WRITE)
#define OF_THREAD static __thread __attribute__((tls_model("initial-exec")))

OF_THREAD bool copies;      /* the child of this thread's fork copies the arena */
OF_THREAD unsigned epoch;   /* result of arena_begin_fork */
OF_THREAD int done[2];      /* a pipe: a byte or end of file says that the child has finished copying */
OF_THREAD struct held held; /* signals are blocked from before a fork until after it */

static void inherit(uint64_t from, uint64_t to)
{
	sys_madvise(from, to - from, MADV_DOFORK);
}

static void inherit_none(uint64_t from, uint64_t to)
{
	sys_madvise(from, to - from, MADV_DONTFORK);
}

void fork_prepare(void)
{
	pages_block_signals(&held);
	copies = arena_in_use();
	if (!copies)
		return;
	epoch = arena_begin_fork();
	if (memfd_get() < 0) /* the program has closed it */
		arena_each_piece(inherit);
	if (sys_failed(sys6(SYS_pipe2, (long)done, O_CLOEXEC, 0, 0, 0, 0)))
		done[0] = done[1] = -1; /* no pipe: the parent does not wait */
}

static void wait_for_child(int fd)
{
	char byte;
	while (fd >= 0 && sys_read(fd, &byte, 1) == -EINTR)
		;
}

static void close_end(int side)
{
	if (done[side] >= 0)
		sys_close(done[side]);
}

/* The child may be stopped, or a signal handler may fork and wait for it. */
void fork_parent(void)
{
	struct held before = held;
	int fd = done[0];
	unsigned of = epoch;
	bool copied = copies;
	if (copied)
		close_end(1);
	pages_restore_signals(&before);
	if (!copied)
		return;
	wait_for_child(fd);
	if (fd >= 0)
		sys_close(fd);
	if (arena_end_fork(of) && memfd_get() < 0)
		arena_each_piece(inherit_none);
	alloc_no_more();
}

/* ---- the child's side ---------------------------------------------------------- */

static long copy_data(int fd, uint64_t from, uint64_t to)
{
	while (from < to) {
		long n = sys_pread(fd, from, to - from, from);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			return n ? n : -EIO;
		from += (uint64_t)n;
	}
	return 0;
}

static bool is_zero(const uint64_t *page)
{
	for (unsigned i = 0; i < PAGE / sizeof *page; i++)
		if (page[i])
			return false;
	return true;
}

/* to is a page that was never written: if from has no data, it stays a hole. */
static void copy_page(uint64_t *to, const uint64_t *from)
{
	if (is_zero(from))
		return;
	for (unsigned i = 0; i < PAGE / sizeof *from; i++)
		to[i] = from[i];
}

/* Before Linux 6.4 a page of a file in memory counts as a hole while it is being collapsed into a huge one. */
static bool holes_may_have_data(void)
{
	struct utsname u;
	unsigned major = 0, minor = 0;
	if (sys6(SYS_uname, (long)&u, 0, 0, 0, 0, 0) != 0)
		return true;
	const char *c = u.release;
	for (; *c >= '0' && *c <= '9'; c++)
		major = major * 10 + (unsigned)(*c - '0');
	for (c += *c == '.'; *c >= '0' && *c <= '9'; c++)
		minor = minor * 10 + (unsigned)(*c - '0');
	return major < 6 || (major == 6 && minor < 4);
}

/* Reads what the kernel says is a hole, and copies pages with data. */
static void copy_hole(int fd, uint64_t from, uint64_t to)
{
	static uint64_t buffer[64 * PAGE / sizeof(uint64_t)];
	for (uint64_t end; from < to; from = end) {
		end = to - from < sizeof buffer ? to : from + sizeof buffer;
		long n = sys_pread(fd, (uint64_t)buffer, end - from, from);
		for (uint64_t at = 0; n > 0 && at < (uint64_t)n; at += PAGE)
			copy_page((uint64_t *)(from + at), buffer + at / sizeof *buffer);
	}
}

/* Pages that can't be copied become a hole. */
static void copy_file(uint64_t from, uint64_t to)
{
	bool read_holes = holes_may_have_data();
	int fd = memfd_get();
	while (fd >= 0 && from < to) {
		long data = sys_seek(fd, from, SEEK_DATA);
		long hole = sys_failed(data) ? 0 : sys_seek(fd, (uint64_t)data, SEEK_HOLE);
		if (data == -ENXIO || (!sys_failed(data) && (uint64_t)data >= to))
			data = hole = (long)to;
		if (sys_failed(data) || sys_failed(hole))
			data = (long)from, hole = (long)to;
		if (read_holes)
			copy_hole(fd, from, (uint64_t)data);
		uint64_t end = (uint64_t)hole < to ? (uint64_t)hole : to;
		if (copy_data(fd, (uint64_t)data, end))
			sys_munmap((uint64_t)data, end - (uint64_t)data);
		from = end;
	}
}

/* Copies an inherited mapping, if the descriptor is not available. */
static long copy_mapping(uint64_t from, uint64_t to)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	long fresh = sys_mmap(0, to - from, RW, flags, -1, 0);
	if (sys_failed(fresh) || sys_failed(sys_mprotect(from, to - from, PROT_READ)))
		return -ENOMEM;
	for (uint64_t at = from; at < to; at += PAGE)
		copy_page((uint64_t *)((uint64_t)fresh + (at - from)), (const uint64_t *)at);
	return sys_mremap((uint64_t)fresh, to - from, to - from, MREMAP_MAYMOVE | MREMAP_FIXED, from);
}

/* If the address is taken, the program has mapped something else over the arena, which the child has
 * inherited. */
static void copy_piece(uint64_t from, uint64_t to)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
	if (memfd_get() < 0) {
		if (sys_failed(copy_mapping(from, to)))
			sys_munmap(from, to - from);
		return;
	}
	long at = sys_mmap(from, to - from, RW, flags, -1, 0);
	if (at == (long)from) {
		arena_each_used(from, to, copy_file);
		return;
	}
	if (!sys_failed(at)) /* Linux before 4.17 does not know the flag */
		sys_munmap((uint64_t)at, to - from);
	if ((at == -EEXIST || !sys_failed(at)) && to - from > PAGE) {
		uint64_t middle = page_up(from + (to - from) / 2);
		copy_piece(from, middle);
		copy_piece(middle, to);
	}
}

void fork_child(void)
{
	const char byte = 0;
	arena_each_piece(copy_piece);
	arena_inherit();
	memfd_leave();
	if (copies) {
		close_end(0);
		sys6(SYS_write, done[1], (long)&byte, 1, 0, 0, 0);
		close_end(1);
	}
	copies = false;
	pages_restore_signals(&held);
}
