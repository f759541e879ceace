//go:build c_only
/*
 * Large memory stays shared after its last registration: giving it back copies
 * all of it, and registering it again would copy it once more. Nobody but the
 * program uses such pages, and nothing moves. They are given back when a process
 * of one thread forks (with more, the child copies them, as registered ones) and
 * when the program moves them by mremap, and are dropped when it unmaps them.
 *
 * Only memory that the program mapped by libc's mmap: an allocator that calls the
 * kernel by itself, as glibc's does, would unmap it unseen, and the memfd would
 * go on holding it.
 */
#include <sys/resource.h>

#include "internal.h"
#include "kernel/sys.h"

enum { MAPPED = 1024 };

struct span {
	uint64_t start, end;
};

static struct span mapped[MAPPED]; /* in no order, none beside another */
static unsigned mapped_count;      /* read without lock: 0 means nothing to do */

static void set_count(unsigned n)
{
	__atomic_store_n(&mapped_count, n, __ATOMIC_RELEASE);
}

bool keep_none(void)
{
	return !__atomic_load_n(&mapped_count, __ATOMIC_ACQUIRE);
}

/* The program mapped [start, end). Without room for it that isn't known. */
void keep_add(uint64_t start, uint64_t end)
{
	for (unsigned i = 0; i < mapped_count;) {
		struct span s = mapped[i];
		if (s.start > end || s.end < start) {
			i++;
			continue;
		}
		start = s.start < start ? s.start : start;
		end = s.end > end ? s.end : end;
		mapped[i] = mapped[mapped_count - 1];
		set_count(mapped_count - 1);
	}
	if (mapped_count == MAPPED)
		return;
	mapped[mapped_count] = (struct span){ start, end };
	set_count(mapped_count + 1);
}

/* What is left of a mapping on both sides counts as long as there is room. */
void keep_remove(uint64_t start, uint64_t end)
{
	for (unsigned i = 0; i < mapped_count;) {
		struct span *s = &mapped[i], above = { end, s->end };
		if (s->start >= end || s->end <= start) {
			i++;
			continue;
		}
		s->end = start;
		if (s->start >= s->end) {
			*s = mapped[mapped_count - 1];
			set_count(mapped_count - 1);
		}
		if (above.start < above.end && mapped_count < MAPPED) {
			mapped[mapped_count] = above;
			set_count(mapped_count + 1);
		}
	}
}

bool keep_has(uint64_t start, uint64_t end)
{
	for (unsigned i = 0; i < mapped_count; i++)
		if (mapped[i].start <= start && end <= mapped[i].end)
			return true;
	return false;
}

/* A child's copy may be torn: another thread was changing it. */
void keep_reset(void)
{
	set_count(0);
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
	long fd = sys_open("/proc/sys/vm/overcommit_memory", 0 /* O_RDONLY */);
	if (sys_failed(fd))
		return true;
	long n = sys_read((int)fd, &mode, 1);
	sys_close((int)fd);
	return n != 1 || mode == '2';
}

/* Whether [first, last) stays shared. The mapping that waits aside goes on
 * taking address space, of which there must be enough. A program that forks
 * beside other threads would have its children copy it each time. */
bool keep_wanted(uint64_t first, uint64_t last)
{
	const struct state *s = &urdma_pages_state;
	return last - first >= s->keep_least && !s->forks && keep_has(first, last) &&
	       !is_limited(RLIMIT_AS) && !is_limited(RLIMIT_DATA) &&
	       !never_overcommits();
}
