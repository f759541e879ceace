//go:build c_only
/* Registration: inspects the range, makes the kernel allocate its pages, and decides by which path urdmad
 * reaches it. Holds no lock and blocks no signals meanwhile. */
#include "pages.h"

#include <errno.h>
#include <sys/mman.h>

#include "internal.h"
#include "kernel/sys.h"

struct request {
	uint64_t addr, first, last; /* as requested; in whole pages: [first, last) */
	int flags;
	bool ours; /* everything inspected so far is memory of the arena */
	struct urdma_shared shared;
};

/* Records the file of which the range is a shared mapping, if a single file covers the whole range. */
static void note_shared(struct request *q, const struct vma *v, uint64_t at)
{
	struct urdma_shared *s = &q->shared;
	uint64_t offset = v->offset + (at - v->start);
	bool fits = v->shared && v->inode;
	if (at == q->first) {
		offset += q->addr - q->first;
		*s = (struct urdma_shared){ fits ? v->inode : 0, v->major,
			                    v->minor, offset, v->start, v->end };
		return;
	}
	if (!fits || v->inode != s->inode || v->major != s->major ||
	    v->minor != s->minor || offset - s->offset != at - q->addr)
		s->inode = 0;
}

/* Inspects one mapping of the range. Returns an errno value or 0. */
static int inspect_mapping(struct request *q, const struct vma *v, uint64_t at)
{
	if (v->start > at || !(v->prot & PROT_READ))
		return EFAULT;
	if ((q->flags & URDMA_PAGES_WRITE) && !(v->prot & PROT_WRITE))
		return EFAULT;
	note_shared(q, v, at);
	q->ours = q->ours && v->shared && v->offset == v->start &&
	          memfd_is(v->inode, v->major, v->minor);
	return 0;
}

/* Checks the mappings of the range and finds out whether they are ours. Without /proc only the arena is asked,
 * and inaccessible memory is found only by touch (below). */
static int inspect(struct request *q)
{
	struct vma v;
	struct maps m;
	int err = 0;
	if (maps_open(&m) != 0) {
		q->ours = arena_owns(q->first, q->last);
		return 0;
	}
	q->ours = true;
	for (uint64_t at = q->first; !err && at < q->last; at = v.end)
		err = maps_find(&m, at, &v) ? EFAULT : inspect_mapping(q, &v, at);
	maps_close(&m);
	return err;
}

/* Returns whether the kernel knows MADV_POPULATE_READ (Linux 5.14): on an existing page it fails for no
 * other reason. */
static bool can_populate(void)
{
	uint64_t here = (uint64_t)__builtin_frame_address(0) & ~(PAGE - 1);
	return sys_madvise(here, PAGE, MADV_POPULATE_READ) != -EINVAL;
}

/* Finds inaccessible memory at registration rather than at a later access: guard regions, pages beyond the
 * end of a file, and memory of devices (VM_IO, VM_PFNMAP), for which the kernel returns EINVAL. */
static int touch(uint64_t first, uint64_t last)
{
	for (uint64_t at = first, end; at < last; at = end) {
		long r;
		end = (at & ~(BLOCK - 1)) + BLOCK;
		end = end < last ? end : last;
		do
			r = sys_madvise(at, end - at, MADV_POPULATE_READ);
		while (r == -EINTR || r == -EAGAIN);
		if (r == -EINVAL && !can_populate())
			return 0;
		if (sys_failed(r))
			return r == -ENOMEM ? ENOMEM : EFAULT;
	}
	return 0;
}

static const char *reason(const struct request *q)
{
	if (q->ours)
		return NULL;
	return q->shared.inode ? "a shared mapping of a file that urdmad can't map"
	                       : "memory that isn't shared with urdmad";
}

int urdma_pages_register(void *addr, size_t len, int flags,
                         struct urdma_region *out)
{
	uint64_t start = (uint64_t)addr;
	struct request q = {
		.addr = start, .flags = flags,
		.first = start & ~(PAGE - 1), .last = page_up(start + len),
	};
	if (len == 0 || start + len < start || q.last <= q.first)
		return EINVAL;
	int err = inspect(&q);
	if (!err)
		err = touch(q.first, q.last);
	*out = (struct urdma_region){
		.addr = start, .length = len, .why = reason(&q),
		.path = q.ours ? URDMA_PATH_SHARED : URDMA_PATH_FALLBACK,
		.file_offset = q.ours ? start : 0,
	};
	if (!q.ours)
		out->shared = q.shared;
	return err;
}

int urdma_pages_mappings(void)
{
	struct vma v;
	struct maps m;
	int err = maps_open(&m);
	if (!err) {
		err = maps_find(&m, (uint64_t)&v, &v);
		if (!err && !m.text)
			return m.fd;
		maps_close(&m);
		err = -EOPNOTSUPP;
	}
	errno = -err;
	return -1;
}

int urdma_pages_prefetch(uint64_t addr, uint64_t len, int flags)
{
	uint64_t first = addr & ~(PAGE - 1), last = page_up(addr + len);
	int advice = flags & URDMA_PAGES_WRITE ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
	long r;
	do
		r = len ? sys_madvise(first, last - first, advice) : 0;
	while (r == -EINTR || r == -EAGAIN);
	return sys_failed(r) ? EFAULT : 0;
}

int urdma_pages_file(void)
{
	struct held held;
	arena_lock(&held);
	int fd = memfd_get();
	arena_unlock(&held);
	return fd < 0 ? -1 : fd;
}

/* Registered at load, when no fork can be under way: a handler added while another thread forks does not
 * run for that fork. */
__attribute__((constructor)) static void at_load(void)
{
	urdma_pages_init();
}

static void set_up(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

int urdma_pages_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	return pthread_once(&once, set_up);
}
