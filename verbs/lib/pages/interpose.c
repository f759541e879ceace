//go:build c_only
/*
 * libc's calls that change mappings under converted pages, defined again for
 * the program and its libraries. glibc's own allocator doesn't come through
 * here (it calls itself); what it does is safe by construction: see walk.c for
 * munmap and brk, pages.c for realloc's mremap.
 */
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"
#include "kernel/sys.h"

enum { DONTUNMAP = 4 /* MREMAP_DONTUNMAP, Linux 5.7 */ };
#define EXPORT __attribute__((visibility("default")))

static long answer(long r)
{
	if (!sys_failed(r))
		return r;
	errno = (int)-r;
	return -1;
}

static uint64_t page_up(uint64_t n)
{
	return (n + PAGE - 1) & ~(PAGE - 1);
}

/* Most processes that load the library never get past this. */
static bool nothing_converted(void)
{
	return !__atomic_load_n(&urdma_pages_state.present, __ATOMIC_ACQUIRE);
}

/* ... nor past this, unless they map much memory at once (keep.c). */
static bool nothing_known(void)
{
	return nothing_converted() && keep_none();
}

static void forget_range(uint64_t start, uint64_t end)
{
	pages_gone(start, end);
	keep_remove(start, end);
}

static bool is_plain(int flags)
{
	const int all = MAP_PRIVATE | MAP_ANONYMOUS;
	return urdma_pages_state.usable &&
	       (flags & (all | MAP_SHARED | MAP_HUGETLB | MAP_GROWSDOWN)) == all;
}

/* Data, and no addresses for later nor a stack. */
static bool is_data(int prot, int flags)
{
	return is_plain(flags) && prot == (PROT_READ | PROT_WRITE) &&
	       !(flags & (MAP_NORESERVE | MAP_STACK | MAP_LOCKED));
}

static void punch_block(struct block *b, unsigned from, unsigned to, void *arg)
{
	int fd = memfd_get((int)b->file);
	(void)arg;
	for (unsigned end; fd >= 0 &&
	     block_run(b, &from, &end, to, P_PRESENT, P_PRESENT); from = end)
		sys_punch(fd, block_addr(b, from), (end - from) * PAGE);
}

struct fork_advice {
	int advice;
};

/* The advice holds for the mapping that waits aside. The one of the memfd
 * keeps MADV_DONTFORK in any case (see map_file). */
static void advise_fork(struct block *b, unsigned from, unsigned to, void *arg)
{
	const struct fork_advice *a = arg;
	for (unsigned end;
	     block_run(b, &from, &end, to, P_PRESENT, P_PRESENT); from = end) {
		uint64_t at = block_addr(b, from), len = (end - from) * PAGE;
		sys_madvise(at, len, MADV_DONTFORK);
		for (unsigned i = from; i < end; i++) {
			uint32_t e = b->page[i] & ~P_NOFORK;
			bool no = a->advice == MADV_DONTFORK;
			entry_set(b, i, no ? e | P_NOFORK : e);
			if (e & P_SHADOW)
				sys_madvise(shadow(block_addr(b, i)), PAGE,
				            a->advice);
		}
	}
}

static long advise(uint64_t start, uint64_t len, int advice)
{
	struct fork_advice fork = { .advice = advice };
	uint64_t end = start + page_up(len);
	bool drop = advice == MADV_DONTNEED || advice == MADV_FREE ||
	            advice == 24 /* MADV_DONTNEED_LOCKED */;
	/* MADV_FREE is refused for shared memory; dropping at once is one of
	 * the things it may do. */
	long r = sys_madvise(start, len,
	                     advice == MADV_FREE ? MADV_DONTNEED : advice);
	if (sys_failed(r))
		return r;
	if (drop)
		table_each(start, end, punch_block, NULL);
	if (advice == MADV_DONTFORK || advice == MADV_DOFORK)
		table_each(start, end, advise_fork, &fork);
	return r;
}

static void note_present(struct block *b, unsigned from, unsigned to, void *arg)
{
	unsigned end;
	*(bool *)arg |= block_run(b, &from, &end, to, P_PRESENT, P_PRESENT);
}

static bool any_converted(uint64_t start, uint64_t len)
{
	bool any = false;
	table_each(start, start + page_up(len), note_present, &any);
	return any;
}

EXPORT int madvise(void *addr, size_t len, int advice)
{
	struct held held;
	uint64_t start = (uint64_t)addr;
	if (nothing_converted())
		return (int)answer(sys_madvise(start, len, advice));
	pages_lock_table(&held);
	long r = any_converted(start, len) ? advise(start, len, advice)
	                                   : sys_madvise(start, len, advice);
	pages_unlock_table(&held);
	return (int)answer(r);
}

EXPORT int munmap(void *addr, size_t len)
{
	struct held held;
	uint64_t start = (uint64_t)addr;
	if (nothing_known())
		return (int)answer(sys_munmap(start, len));
	pages_lock_table(&held);
	long r = sys_munmap(start, len);
	if (!sys_failed(r))
		forget_range(start, start + page_up(len));
	pages_unlock_table(&held);
	return (int)answer(r);
}

struct mapping {
	uint64_t start;
	size_t len;
	int prot, flags, fd;
	off_t off;
};

static long raw_map(const struct mapping *m)
{
	return sys_mmap(m->start, m->len, m->prot, m->flags, m->fd, (uint64_t)m->off);
}

static long map(const struct mapping *m)
{
	struct held held;
	bool replaces = (m->flags & MAP_FIXED) && !nothing_known();
	bool plain = is_plain(m->flags) && m->len >= urdma_pages_state.seen_least;
	long r = 0;
	if (!replaces)
		r = raw_map(m);
	if (!replaces && (!plain || sys_failed(r)))
		return r;
	pages_lock_table(&held);
	if (replaces)
		r = raw_map(m);
	if (!sys_failed(r) && replaces)
		forget_range(m->start, m->start + page_up(m->len));
	if (!sys_failed(r) && plain)
		keep_add((uint64_t)r, (uint64_t)r + page_up(m->len));
	pages_unlock_table(&held);
	return r;
}

EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	const struct mapping m = { (uint64_t)addr, len, prot, flags, fd, off };
	long r = map(&m);
	if (!sys_failed(r) && is_data(prot, flags))
		alloc_share_mapping((uint64_t)r, page_up(len), flags & MAP_POPULATE);
	return (void *)answer(r);
}

EXPORT void *mmap64(void *addr, size_t len, int prot, int flags, int fd,
                    off_t off) __attribute__((alias("mmap")));

struct remap {
	uint64_t from, old_len, new_len, to;
	int flags;
};

static long raw_remap(const struct remap *m)
{
	return sys_mremap(m->from, m->old_len, m->new_len, m->flags, m->to);
}

static void copy_bytes(char *to, const char *from, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		to[i] = from[i];
}

/* The kernel refuses several mappings in one; what was given back beside what
 * never was converted can be that, although the program sees one. */
static long remap_by_copy(const struct remap *m)
{
	long to = sys_mmap(0, m->new_len, PROT_READ | PROT_WRITE,
	                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(to))
		return to;
	copy_bytes((char *)to, (const char *)m->from,
	           m->old_len < m->new_len ? m->old_len : m->new_len);
	sys_munmap(m->from, m->old_len);
	return to;
}

/* Registrations of the old range go on over nothing: the program must register
 * the new one, as it must with hardware if it wants the new address. */
static long remap_converted(const struct remap *m)
{
	const int moves = MREMAP_FIXED | DONTUNMAP;
	if (m->new_len <= m->old_len && !(m->flags & moves)) {
		long r = raw_remap(m);
		if (!sys_failed(r))
			pages_gone(m->from + page_up(m->new_len),
			           m->from + page_up(m->old_len));
		return r;
	}
	if (!pages_move_out(m->from, m->from + page_up(m->old_len)))
		return -ENOMEM;
	long r = raw_remap(m);
	if (r == -EFAULT && (m->flags & MREMAP_MAYMOVE) && !(m->flags & moves))
		return remap_by_copy(m);
	return r;
}

/* What was at the old place is at the new one, unless it wasn't moved but emptied. */
static void move_known(const struct remap *m, uint64_t to)
{
	uint64_t end = m->from + page_up(m->old_len);
	bool known = m->old_len && keep_has(m->from, end);
	if (!(m->flags & DONTUNMAP))
		keep_remove(m->from, end);
	keep_remove(to, to + page_up(m->new_len));
	if (known)
		keep_add(to, to + page_up(m->new_len));
}

static long remap(const struct remap *m)
{
	long r = any_converted(m->from, m->old_len) ? remap_converted(m)
	                                            : raw_remap(m);
	if (!sys_failed(r) && (m->flags & MREMAP_FIXED))
		pages_gone(m->to, m->to + page_up(m->new_len));
	if (!sys_failed(r))
		move_known(m, (uint64_t)r);
	return r;
}

EXPORT void *mremap(void *old, size_t old_len, size_t new_len, int flags, ...)
{
	struct held held;
	va_list args;
	va_start(args, flags);
	struct remap m = {
		.from = (uint64_t)old, .old_len = old_len, .new_len = new_len,
		.flags = flags,
		.to = flags & ~MREMAP_MAYMOVE ? (uint64_t)va_arg(args, void *) : 0,
	};
	va_end(args);
	if (nothing_known())
		return (void *)answer(raw_remap(&m));
	pages_lock_table(&held);
	long r = remap(&m);
	pages_unlock_table(&held);
	return (void *)answer(r);
}

/* Runs no handlers of pthread_atfork, so ours by hand. */
EXPORT pid_t _Fork(void)
{
	pid_t (*real)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "_Fork");
	if (!urdma_pages_state.usable)
		return real();
	pages_fork_prepare();
	pid_t pid = real();
	if (pid == 0)
		pages_fork_child();
	else
		pages_fork_parent();
	return pid;
}

struct entry {
	int (*fn)(void *);
	void *arg;
};

static int enter_clone(void *entry)
{
	struct entry e = *(struct entry *)entry;
	pages_fork_child();
	return e.fn(e.arg);
}

typedef int (*clone_fn)(int (*)(void *), void *, int, void *, ...);

/* With CLONE_VM it is a thread or a vfork: nothing is copied. */
EXPORT int clone(int (*fn)(void *), void *stack, int flags, void *arg, ...)
{
	clone_fn real = (clone_fn)dlsym(RTLD_NEXT, "clone");
	struct entry e = { fn, arg };
	va_list args;
	va_start(args, arg);
	pid_t *parent_tid = va_arg(args, pid_t *);
	void *tls = va_arg(args, void *);
	pid_t *child_tid = va_arg(args, pid_t *);
	va_end(args);
	if ((flags & CLONE_VM) || !urdma_pages_state.usable)
		return real(fn, stack, flags, arg, parent_tid, tls, child_tid);
	pages_fork_prepare();
	int pid = real(enter_clone, stack, flags, &e, parent_tid, tls, child_tid);
	int saved = errno;
	pages_fork_parent();
	errno = saved;
	return pid;
}
