//go:build c_only
/*
 * Memory stays shared after its last registration, but for little: giving it back
 * copies all of it, and registering it again would copy it once more. Nobody but the
 * program uses such pages, and nothing moves. They are given back when a process
 * of one thread forks (with more, the child copies them, as registered ones) and
 * when the program moves them by mremap, and are dropped when it unmaps them.
 *
 * What the program mapped by libc's mmap is known, and unmapped by a call that we
 * see. An allocator that calls the kernel by itself, as glibc's does, unmaps the
 * rest unseen, and the memfd goes on holding it: of that little stays, and it is
 * looked through for what is gone before more does. None is given back to make
 * room, for a system call may be under way in it.
 *
 * Go's runtime drops pages by a system call of its own, and relies on zeros.
 */
#include <dlfcn.h>
#include <sys/resource.h>

#include "internal.h"
#include "kernel/sys.h"

enum { SPANS = 1024 };
#define MOST_UNSEEN (UINT64_C(64) << 20)

struct span {
	uint64_t start, end;
};

struct spans {
	struct span at[SPANS]; /* in no order, none beside another */
	unsigned count;        /* may be read without lock: 0 means nothing to do */
};

static struct spans mapped; /* by the program */
static struct spans unseen; /* kept, and not of those */

static void set_count(struct spans *s, unsigned n)
{
	__atomic_store_n(&s->count, n, __ATOMIC_RELEASE);
}

bool keep_none(void)
{
	return !__atomic_load_n(&mapped.count, __ATOMIC_ACQUIRE);
}

/* False: there is no room for it. */
static bool spans_add(struct spans *s, uint64_t start, uint64_t end)
{
	for (unsigned i = 0; i < s->count;) {
		struct span old = s->at[i];
		if (old.start > end || old.end < start) {
			i++;
			continue;
		}
		start = old.start < start ? old.start : start;
		end = old.end > end ? old.end : end;
		s->at[i] = s->at[s->count - 1];
		set_count(s, s->count - 1);
	}
	if (s->count == SPANS)
		return false;
	s->at[s->count] = (struct span){ start, end };
	set_count(s, s->count + 1);
	return true;
}

/* What is left of a span on both sides counts as long as there is room. */
static void spans_remove(struct spans *s, uint64_t start, uint64_t end)
{
	for (unsigned i = 0; i < s->count;) {
		struct span *old = &s->at[i], above = { end, old->end };
		if (old->start >= end || old->end <= start) {
			i++;
			continue;
		}
		old->end = start;
		if (old->start >= old->end) {
			*old = s->at[s->count - 1];
			set_count(s, s->count - 1);
		}
		if (above.start < above.end && s->count < SPANS) {
			s->at[s->count] = above;
			set_count(s, s->count + 1);
		}
	}
}

static bool spans_have(const struct spans *s, uint64_t start, uint64_t end)
{
	for (unsigned i = 0; i < s->count; i++)
		if (s->at[i].start <= start && end <= s->at[i].end)
			return true;
	return false;
}

static uint64_t spans_bytes(const struct spans *s)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < s->count; i++)
		sum += s->at[i].end - s->at[i].start;
	return sum;
}

/* The program mapped [start, end). Without room for it that isn't known. */
void keep_add(uint64_t start, uint64_t end)
{
	spans_add(&mapped, start, end);
}

void keep_remove(uint64_t start, uint64_t end)
{
	spans_remove(&mapped, start, end);
	spans_remove(&unseen, start, end);
}

bool keep_has(uint64_t start, uint64_t end)
{
	return spans_have(&mapped, start, end);
}

/* A child's copy may be torn: another thread was changing it. */
void keep_reset(void)
{
	set_count(&mapped, 0);
	set_count(&unseen, 0);
}

void keep_setup(void)
{
	if (dlsym(RTLD_DEFAULT, "crosscall2")) /* every Go program with cgo has it */
		urdma_pages_state.keep_least = urdma_pages_state.seen_least = UINT64_MAX;
}

/* Where the allocator has unmapped it, the memfd drops it, too. */
static void look_at(struct maps *m, struct span s)
{
	struct vma v;
	for (uint64_t at = s.start, end; at < s.end; at = end) {
		bool hole = maps_find(m, at, &v) != 0;
		bool there = !hole && v.start <= at;
		end = hole ? s.end : there ? v.end : v.start;
		end = end < s.end ? end : s.end;
		if (there && vma_file(&v) >= 0 && vma_is_identity(&v))
			spans_add(&unseen, at, end);
		else
			pages_gone(at, end);
	}
}

static void look_through(struct maps *m)
{
	static struct spans before;
	before = unseen;
	set_count(&unseen, 0);
	for (unsigned i = 0; i < before.count; i++)
		look_at(m, before.at[i]);
}

static bool unseen_room(uint64_t bytes)
{
	return spans_bytes(&unseen) + bytes <= MOST_UNSEEN && unseen.count < SPANS;
}

static bool unseen_may_stay(struct maps *m, uint64_t first, uint64_t last)
{
	if (spans_have(&unseen, first, last))
		return true;
	if (!unseen_room(last - first))
		look_through(m);
	return unseen_room(last - first) && spans_add(&unseen, first, last);
}

static bool is_limited(int resource)
{
	struct rlimit l = { 0, 0 };
	long r = sys6(SYS_prlimit64, 0, resource, 0, (long)&l, 0, 0);
	return sys_failed(r) || l.rlim_cur != RLIM_INFINITY;
}

/* vm.overcommit_memory is 2: what waits aside is counted like what is used. */
static bool never_overcommits(void)
{
	char mode = '2';
	struct stat st;
	long fd = proc_open(PROC_OVERCOMMIT, &st);
	if (sys_failed(fd))
		return true;
	long n = sys_pread((int)fd, (uint64_t)&mode, 1, 0);
	proc_close(PROC_OVERCOMMIT, (int)fd);
	return n != 1 || mode == '2';
}

/* Whether [first, last) stays shared. The mapping that waits aside goes on
 * taking address space, of which there must be enough. A program that forks
 * beside other threads would have its children copy it each time. */
bool keep_wanted(struct maps *m, uint64_t first, uint64_t last)
{
	const struct state *s = &urdma_pages_state;
	if (arena_has(first, last))
		return !s->forks;
	return last - first >= s->keep_least && !s->forks &&
	       !is_limited(RLIMIT_AS) && !is_limited(RLIMIT_DATA) &&
	       !never_overcommits() &&
	       (keep_has(first, last) || unseen_may_stay(m, first, last));
}
