//go:build c_only
/*
 * The other threads of the process, and which memory is a thread's own. Stacks and thread
 * control blocks stay out of conversions: the thread that converts stands on
 * the first, and the kernel writes the second (rseq, robust list) whenever it
 * likes.
 *
 * A thread's control block is found by get_robust_list(2): the C library keeps
 * that list's head in it, at the same offset for every thread.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/rseq.h>

#include "internal.h"
#include "kernel/sys.h"

/* On a stack that shares a mapping with other memory (coroutines): how far
 * from the stack pointer we stay away, below and above. */
#define BELOW (64 * 1024)
#define ABOVE (1024 * 1024)

struct thread_search {
	struct maps *maps;
	const struct vma *vma;
	uint64_t start, end;
	uint64_t list_offset; /* of the robust list in a control block */
	uint64_t low, high;   /* the control block's part that the kernel writes,
	                       * and what compiled code reads by itself */
	long leader;
};

static uint64_t robust_list(long tid)
{
	uint64_t head = 0, len = 0;
	long r = sys6(SYS_get_robust_list, tid, (long)&head, (long)&len, 0, 0, 0);
	return sys_failed(r) ? 0 : head;
}

static bool meets(const struct thread_search *s, uint64_t from, uint64_t to)
{
	return (s->start & ~(PAGE - 1)) < to && from < s->end;
}

/* The mapping starts on a guard: what pthread_create makes. */
static bool above_guard(const struct thread_search *s)
{
	struct vma below;
	int r = maps_find(s->maps, s->vma->start - 1, &below);
	return r == 0 && below.end == s->vma->start && below.prot == PROT_NONE;
}

static const char *check_thread(const struct thread_search *s, long tid)
{
	uint64_t list = robust_list(tid);
	if (!list)
		return NULL; /* not made by this C library */
	uint64_t block = list - s->list_offset;
	if (meets(s, (block + s->low) & ~(PAGE - 1), block + s->high))
		return "a thread's control block";
	if (tid != s->leader && s->vma->start <= list && list < s->vma->end &&
	    s->start < list && above_guard(s))
		return "a thread's stack";
	return NULL;
}

static long parse_tid(const char *s)
{
	long n = 0;
	for (; *s >= '0' && *s <= '9'; s++)
		n = n * 10 + (*s - '0');
	return *s ? 0 : n;
}

struct dirent64 {
	uint64_t ino, off;
	uint16_t len;
	uint8_t type;
	char name[];
};

static const char *check_listed(const struct thread_search *s, int dir)
{
	_Alignas(8) char buf[2048];
	for (;;) {
		long n = sys6(SYS_getdents64, dir, (long)buf, sizeof buf, 0, 0, 0);
		if (n <= 0)
			return n ? "/proc/self/task can't be read" : NULL;
		for (long at = 0; at < n;) {
			const struct dirent64 *d = (const void *)(buf + at);
			long tid = parse_tid(d->name);
			const char *why = tid ? check_thread(s, tid) : NULL;
			if (why)
				return why;
			at += d->len;
		}
	}
}

static const char *check_all(const struct thread_search *s)
{
	long dir = sys_open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (sys_failed(dir))
		return "/proc/self/task can't be opened";
	const char *why = check_listed(s, (int)dir);
	sys_close((int)dir);
	return why;
}

/* PROT_GROWSDOWN is refused (EINVAL) unless the mapping grows down. */
static bool grows_down(uint64_t page)
{
	return !sys_failed(sys_mprotect(page, PAGE,
	                   PROT_READ | PROT_WRITE | PROT_GROWSDOWN));
}

/* From the head with its canary to the robust list, and to rseq's area, which
 * newer C libraries put before the head. */
static void set_extent(struct thread_search *s)
{
	int64_t rseq = (int64_t)__builtin_thread_pointer() + __rseq_offset -
	               (int64_t)pthread_self();
	s->list_offset = robust_list(0) - (uint64_t)pthread_self();
	s->low = rseq < 0 ? (uint64_t)rseq : 0;
	s->high = s->list_offset + 24;
	if (rseq > 0 && (uint64_t)rseq + 32 > s->high)
		s->high = (uint64_t)rseq + 32;
}

/* The reason why [start, end) of the read-write mapping v is some thread's
 * own; NULL when it isn't. */
const char *threads_own(struct maps *m, const struct vma *v, uint64_t start,
                        uint64_t end, bool alone)
{
	uint64_t sp = (uint64_t)__builtin_frame_address(0);
	struct thread_search s = {
		.maps = m, .vma = v, .start = start, .end = end,
		.leader = sys6(SYS_getpid, 0, 0, 0, 0, 0, 0),
	};
	if (grows_down(start))
		return "a stack";
	if (v->start <= sp && sp < v->end && meets(&s, sp - BELOW, sp + ABOVE))
		return "the calling thread's stack";
	if (robust_list(0) == 0)
		return "a thread the C library didn't make";
	set_extent(&s);
	return alone ? check_thread(&s, s.leader) : check_all(&s);
}
