//go:build c_only
/* Registration: look at the range, decide its path, convert, count. */
#include "pages.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"
#include "kernel/sys.h"

struct request {
	uint64_t addr, end;     /* as asked */
	uint64_t first, last;   /* whole pages: [first, last) */
	int flags;
	struct maps maps;
	struct window window;
	bool to_convert; /* some of it isn't in a memfd yet */
	bool was_idle;   /* some of it is, and wasn't registered */
	int pagemap;     /* -1: none */
	uint64_t huge_end; /* what is still to be converted before it has huge pages */
	bool no_huge;    /* there were none to be had */
	int file;        /* -1: none of it is */
	const char *why;
	struct urdma_shared shared;
};

/* At load: a handler that is added while another thread forks doesn't run for
 * that fork, whose child would then find our locks as they happened to be. */
__attribute__((constructor)) static void at_load(void)
{
	urdma_pages_init();
}

static void set_up(void)
{
	pages_fork_setup();
	keep_setup();
}

int urdma_pages_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const char *wish = getenv("URDMA_CONVERT");
	urdma_pages_state.usable = sysconf(_SC_PAGESIZE) == (long)PAGE;
	urdma_pages_state.refused = wish && strcmp(wish, "0") == 0;
	return pthread_once(&once, set_up);
}

static uint64_t piece_end(uint64_t at, const struct vma *v, uint64_t last)
{
	uint64_t block = (at & ~(BLOCK - 1)) + BLOCK;
	uint64_t end = v->end < last ? v->end : last;
	return end < block ? end : block;
}

/* Why a mapping that isn't a memfd's can't be converted, or NULL. */
static const char *unfit(struct request *q, const struct vma *v, uint64_t start,
                         uint64_t end)
{
	if (v->shared)
		return "a shared mapping";
	if (v->huge)
		return "private huge pages (MAP_HUGETLB)";
	if (v->prot != (PROT_READ | PROT_WRITE))
		return "memory that isn't plainly readable and writable";
	if (v->inode && q->window.kind != WINDOW_ALONE)
		return "a private file mapping in a threaded process";
	return threads_own(&q->maps, v, start, end,
	                   q->window.kind == WINDOW_ALONE);
}

static const char *fit_converted(struct request *q, const struct vma *v)
{
	int file = vma_file(v);
	if (!vma_is_identity(v))
		return "registered memory that was remapped";
	if (q->file >= 0 && q->file != file)
		return "pages of two memory files";
	q->file = file;
	return NULL;
}

/* Notes which file the range is a shared mapping of, if it is one of a single file
 * from its first byte to its last. */
static void note_shared(struct request *q, const struct vma *v, uint64_t at)
{
	struct urdma_shared *s = &q->shared;
	uint64_t offset = v->offset + (at - v->start);
	bool fits = v->shared && v->inode && vma_file(v) < 0;
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

/* One mapping of the range. An errno or 0; sets why for the fallback. */
static int inspect_mapping(struct request *q, const struct vma *v, uint64_t at)
{
	uint64_t end = v->end < q->last ? v->end : q->last;
	if (v->start > at || !(v->prot & PROT_READ))
		return EFAULT;
	if ((q->flags & URDMA_PAGES_WRITE) && !(v->prot & PROT_WRITE))
		return EFAULT;
	note_shared(q, v, at);
	if (q->why)
		return 0; /* decided; the rest is looked at for its rights */
	if (vma_file(v) >= 0) {
		q->why = fit_converted(q, v);
		return 0;
	}
	q->to_convert = true;
	q->why = unfit(q, v, at, end);
	/* Entries that say otherwise are of memory since unmapped. */
	pages_gone(at, end);
	return 0;
}

static int inspect(struct request *q)
{
	struct vma v;
	for (uint64_t at = q->first; at < q->last; at = v.end) {
		if (maps_find(&q->maps, at, &v) != 0)
			return EFAULT;
		int err = inspect_mapping(q, &v, at);
		if (err)
			return err;
	}
	return 0;
}

static bool in_memfd(struct maps *m, uint64_t page)
{
	struct vma v;
	return maps_find(m, page, &v) == 0 && v.start <= page && vma_file(&v) >= 0;
}

/* The kernel's accesses to the rest of a partly covered page would fail while
 * the page is in flight, and they are nothing to do with the registration. */
static bool edges_in_doubt(struct request *q)
{
	return q->window.kind == WINDOW_USER_ONLY &&
	       ((q->addr != q->first && !in_memfd(&q->maps, q->first)) ||
	        (q->end != q->last && !in_memfd(&q->maps, q->last - PAGE)));
}

/* The memfd that the new pages go to: the one the range is partly in, or the
 * first where its offsets aren't held by registrations of former memory. */
static bool choose_file(struct request *q)
{
	struct vma v;
	int from = q->file < 0 ? 0 : q->file;
	int to = q->file < 0 ? FILES : q->file + 1;
	for (int f = from; f < to; f++) {
		bool free = true;
		for (uint64_t at = q->first; free && at < q->last; at = v.end) {
			if (maps_find(&q->maps, at, &v) != 0)
				return false;
			uint64_t end = v.end < q->last ? v.end : q->last;
			free = vma_file(&v) >= 0 || table_free_in(f, at, end);
		}
		if (free) {
			q->file = f;
			return true;
		}
	}
	return false;
}

static const char *refuse(struct request *q)
{
	if (!urdma_pages_state.usable)
		return "a page size other than 4096";
	if (q->last > URDMA_PAGES_FILE_SIZE)
		return "an address that only a hint to mmap brings";
	if (q->why || !q->to_convert)
		return q->why;
	if (urdma_pages_state.refused)
		return "URDMA_CONVERT=0";
	if (pages_pinned())
		return "pinned pages in the process (io_uring's buffers?)";
	if (q->window.kind == WINDOW_NONE)
		return "threads, and no userfaultfd";
	if (edges_in_doubt(q))
		return "threads, userfaultfd for user mode only, and pages "
		       "covered in part";
	if (!choose_file(q))
		return "an address reused while its former memory is registered";
	if (!reserve_make())
		return "no more mappings (vm.max_map_count)";
	memfd_ready(q->file, &q->why);
	return q->why;
}

static bool convert_piece(struct request *q, uint64_t at, uint64_t end,
                          bool anonymous)
{
	struct run r = { .addr = at, .len = end - at,
		         .fd = memfd_get(q->file),
		         .pagemap = anonymous ? q->pagemap : -1 };
	bool shadowed = false;
	struct block *b = table_make(q->file, at);
	if (!b || r.fd < 0)
		return false;
	r.zeros = at < q->huge_end;
	if (swap_in(&q->window, &r, NULL, &shadowed) != 0) {
		table_drop_if_empty(b);
		return false;
	}
	unsigned from = (unsigned)((at - b->start) / PAGE);
	unsigned to = (unsigned)((end - b->start) / PAGE);
	for (unsigned i = from; i < to; i++)
		entry_set(b, i, P_PRESENT | (shadowed ? P_SHADOW : 0));
	return true;
}

static void make_huge(struct request *q, const struct vma *v, uint64_t at)
{
	static bool never;
	uint64_t stop = (v->end < q->last ? v->end : q->last) & ~(BLOCK - 1);
	int fd = memfd_get(q->file);
	if (never || q->no_huge || (at & (BLOCK - 1)) || at < q->huge_end || fd < 0)
		return;
	stop = stop > at + MOST_HUGE ? at + MOST_HUGE : stop;
	if (stop < at + LEAST_HUGE || !table_free_in(q->file, at, stop))
		return;
	long err = swap_make_huge(fd, at, stop - at);
	q->no_huge = sys_failed(err);
	never = err == -EINVAL; /* before Linux 6.1, or prctl(PR_SET_THP_DISABLE) */
	if (!q->no_huge)
		q->huge_end = stop;
}

static bool convert(struct request *q)
{
	struct vma v;
	for (uint64_t at = q->first, end; at < q->last; at = end) {
		if (maps_find(&q->maps, at, &v) != 0 || v.start > at)
			return false;
		end = piece_end(at, &v, q->last);
		if (vma_file(&v) >= 0)
			continue;
		make_huge(q, &v, at);
		if (convert_piece(q, at, end, !v.inode))
			continue;
		if (at < q->huge_end)
			sys_punch(memfd_get(q->file), at, q->huge_end - at);
		return false;
	}
	return true;
}

/*
 * glibc's realloc moves and grows an mmapped chunk by an mremap that we don't
 * see; grown, a memfd's mapping would show pages of other memory. mremap(2)
 * refuses a range of two mappings (EFAULT) and glibc then copies, so the first
 * page of such a chunk gets an advice of its own and with it a mapping.
 */
static bool heads_mmapped_chunk(const struct request *q)
{
	const size_t *chunk = (const size_t *)q->first;
	const size_t is_mmapped = 2, flags = 7;
	return q->last - q->first > PAGE && chunk[0] == 0 &&
	       (chunk[1] & is_mmapped) && (chunk[1] & ~flags) % PAGE == 0 &&
	       chunk[1] >= PAGE;
}

static void count_block(struct block *b, unsigned from, unsigned to, void *arg)
{
	struct request *q = arg;
	if (b->file != (uint32_t)q->file)
		return;
	for (unsigned i = from; i < to; i++) {
		uint64_t page = block_addr(b, i);
		bool partial = page < q->addr || page + PAGE > q->end;
		uint32_t e = (b->page[i] & ~P_IDLE) + 1;
		q->was_idle |= !!(b->page[i] & P_IDLE);
		if (partial)
			e = (e | P_PARTIAL) & ~P_NOFORK;
		entry_set(b, i, e);
	}
}

/* What count_block says of a page covered in part, where the range has been
 * counted before. */
static void mark_partial(const struct request *q, uint64_t page)
{
	struct block *b = table_find(q->file, page);
	unsigned i = (unsigned)((page - b->start) / PAGE);
	if (!(b->page[i] & P_PARTIAL))
		entry_set(b, i, (b->page[i] | P_PARTIAL) & ~P_NOFORK);
}

static bool count(struct request *q)
{
	struct range *r = range_find(q->file, q->first, q->last);
	if (r) {
		if (q->addr != q->first)
			mark_partial(q, q->first);
		if (q->end != q->last)
			mark_partial(q, q->last - PAGE);
	} else {
		r = range_make(q->file, q->first, q->last);
		if (!r)
			return false;
		table_each(q->first, q->last, count_block, q);
	}
	r->count++;
	return true;
}

static void mark_head(struct request *q)
{
	if (!heads_mmapped_chunk(q))
		return;
	struct block *b = table_find(q->file, q->first);
	unsigned i = (unsigned)((q->first - b->start) / PAGE);
	if (b->page[i] & P_HEAD)
		return;
	entry_set(b, i, b->page[i] | P_HEAD);
	sys_madvise(q->first, PAGE, MADV_RANDOM);
}

/* The program may have dropped pages while nobody had them registered: holes are
 * filled by the process that owns the memory, not by urdmad. */
static void fill_idle(const struct request *q)
{
	struct run r = { .addr = q->first, .len = q->last - q->first,
		         .fd = memfd_get(q->file), .sparse = true };
	if (q->was_idle && r.fd >= 0)
		swap_enter(&r);
}

static void abandon_block(struct block *b, unsigned from, unsigned to, void *arg)
{
	struct request *q = arg;
	pages_release(&q->window, &q->maps, b, from, to);
	table_drop_if_empty(b);
}

/* Of a few pages, what was never touched costs no more to copy than to find. */
static bool convert_all(struct request *q)
{
	q->pagemap = q->last - q->first > FEW * PAGE ? pagemap_open() : -1;
	bool done = convert(q);
	pagemap_close(q->pagemap);
	return done;
}

static void place(struct request *q)
{
	q->why = refuse(q);
	if (q->why)
		return;
	if ((!q->to_convert || convert_all(q)) && count(q)) {
		mark_head(q);
		fill_idle(q);
		return;
	}
	q->why = "no memory or no more mappings to convert it with";
	maps_rewind(&q->maps);
	table_each(q->first, q->last, abandon_block, q);
}

static int look_and_place(struct request *q)
{
	int err = pages_open_maps(&q->maps);
	if (err) {
		q->why = "/proc/self/maps can't be opened";
		return 0;
	}
	window_open(&q->window);
	err = inspect(q);
	if (!err)
		place(q);
	maps_rewind(&q->maps);
	pages_retry_kept(&q->window, &q->maps);
	window_close(&q->window);
	pages_close_maps(&q->maps);
	return err;
}

int urdma_pages_register(void *addr, size_t len, int flags,
                         struct urdma_region *out)
{
	struct held held;
	uint64_t start = (uint64_t)addr;
	struct request q = {
		.addr = start, .end = start + len, .flags = flags, .file = -1,
		.first = start & ~(PAGE - 1),
		.last = (start + len + PAGE - 1) & ~(PAGE - 1),
	};
	if (len == 0 || start + len < start || q.last < start)
		return EINVAL;
	urdma_pages_init();
	pages_lock_all(&held);
	int err = look_and_place(&q);
	pages_unlock_all(&held);
	*out = (struct urdma_region){
		.addr = start, .length = len, .why = q.why,
		.path = q.why ? URDMA_PATH_FALLBACK : URDMA_PATH_SHARED,
		.file_id = q.why ? -1 : q.file,
		.file_offset = q.why ? 0 : start,
		.shared = q.shared,
	};
	return err;
}

int urdma_pages_file(int file_id)
{
	struct held held;
	if (file_id < 0 || file_id >= FILES)
		return -1;
	pages_lock_table(&held);
	int fd = memfd_get(file_id);
	pages_unlock_table(&held);
	return fd < 0 ? -1 : fd;
}
