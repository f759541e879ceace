//go:build c_only
/*
 * The arena: a range of addresses that is reserved once. [start, top), the part used so far, is mapped
 * from the memfd at offsets equal to the addresses. Free memory stays mapped and takes no pages, so it is
 * all one mapping. A child does not inherit it (fork.c).
 *
 * The pages form extents, free or in use. A separate table has each extent's length at its first and last
 * page, so that both neighbours can be found; free extents are in lists by the logarithm of their length.
 * A few small freed extents keep their pages and data, for the next allocation of the same length.
 *
 * A lock guards all of it except the ranges, which never change. The table inherited by a child may be
 * inconsistent, except for the lengths of extents in use. So a child only frees memory of the inherited
 * arena, and allocates from a new one.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "internal.h"
#include "kernel/sys.h"

#define IN_USE (1u << 31)
#define FIRST (1u << 30) /* first page of an extent in use that was not freed */
#define LENGTH (FIRST - 1)
#define MOST (UINT64_C(1) << 41) /* bytes: limit of lengths */
#define RW (PROT_READ | PROT_WRITE)

enum {
	GENERATIONS = 8,     /* arenas, including those inherited by forks */
	LISTS = 30,          /* lists of free extents */
	TRIES = 64,          /* extents tried in a list where some may be too short */
	LEAST_LARGE = 32,    /* pages: freed extents of this size or more are renewed at once */
	MOST_KEPT = 1024,    /* pages in freed extents that keep their data */
	MOST_PRIVATE = 1024, /* ranges made private */
};

struct page {
	uint32_t tag;
	uint32_t next, prev; /* links of a list, at an extent's first page: index + 1 */
};

struct arena {
	uint64_t start, end;
	struct page *page;
};

static struct arena all[GENERATIONS];
static unsigned made;     /* entries of all that are used; read without lock */
static struct arena *own; /* the last entry, unless it was inherited; read without lock */
static bool shared;       /* own is mapped from the memfd, and not private memory */
static uint64_t top;
static uint32_t list[LISTS], kept[LEAST_LARGE], freed[2]; /* list heads: index + 1 */
static unsigned kept_pages;
/* counts periods between forks; forks and freed have an entry for this epoch and the one before */
static unsigned epoch;
static unsigned forks[2]; /* forks that began in an epoch and have not ended */
static struct { uint64_t from, to; } private[MOST_PRIVATE]; /* ranges of own that are no longer mapped from the memfd */
static unsigned private_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum { SIG_SET = 2 /* SIG_SETMASK */ };

void pages_block_signals(struct held *h)
{
	const uint64_t every = ~UINT64_C(0);
	sys_sigmask(SIG_SET, &every, &h->mask);
}

void pages_restore_signals(const struct held *h)
{
	sys_sigmask(SIG_SET, &h->mask, NULL);
}

void arena_lock(struct held *h)
{
	pages_block_signals(h);
	pthread_mutex_lock(&lock);
}

void arena_unlock(const struct held *h)
{
	pthread_mutex_unlock(&lock);
	pages_restore_signals(h);
}

static uint64_t address(uint64_t i)
{
	return own->start + i * PAGE;
}

static void push(uint32_t *head, uint64_t i)
{
	struct page *p = own->page;
	p[i].prev = 0;
	p[i].next = *head;
	if (*head)
		p[*head - 1].prev = (uint32_t)i + 1;
	*head = (uint32_t)i + 1;
}

static void drop(uint32_t *head, uint64_t i)
{
	struct page *p = own->page;
	if (p[i].prev)
		p[p[i].prev - 1].next = p[i].next;
	else
		*head = p[i].next;
	if (p[i].next)
		p[p[i].next - 1].prev = p[i].prev;
}

static uint64_t pop(uint32_t *head)
{
	uint64_t i = *head - 1;
	drop(head, i);
	return i;
}

static void set_extent(uint64_t first, uint64_t pages, uint32_t flag)
{
	own->page[first + pages - 1].tag = (uint32_t)pages | flag;
	own->page[first].tag = (uint32_t)pages | flag | (flag ? FIRST : 0);
}

static unsigned list_of(uint64_t pages)
{
	return 63 - (unsigned)__builtin_clzll(pages);
}

static void add_free(uint64_t first, uint64_t pages)
{
	if (!pages)
		return;
	set_extent(first, pages, 0);
	push(&list[list_of(pages)], first);
}

static uint64_t remove_free(uint64_t first)
{
	uint64_t pages = own->page[first].tag & LENGTH;
	drop(&list[list_of(pages)], first);
	return pages;
}

static uint64_t page_count(void)
{
	return (own->end - own->start) / PAGE;
}

/* Merges freed pages with their free neighbours. */
static void make_free(uint64_t first, uint64_t pages)
{
	uint64_t end = first + pages;
	if (end < page_count() && !(own->page[end].tag & IN_USE))
		end += remove_free(end);
	if (first && !(own->page[first - 1].tag & IN_USE)) {
		first -= own->page[first - 1].tag & LENGTH;
		remove_free(first);
	}
	add_free(first, end - first);
}

/* ---- mappings ------------------------------------------------------------------ */

/* After a fork without handlers the mapping is a hole in the child; accessing it then fails. */
static bool map(uint64_t from, uint64_t to)
{
	int fd = shared ? memfd_get() : -1;
	if (shared && fd < 0)
		return false;
	long r = sys_mmap(from, to - from, RW, MAP_FIXED | (shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS), fd,
		shared ? from : 0);
	if (sys_failed(r))
		return false;
	if (shared)
		sys_madvise(from, to - from, MADV_DONTFORK);
	return true;
}

static bool map_up_to(uint64_t end)
{
	if (end <= top)
		return true;
	end = (end + BLOCK - 1) & ~(BLOCK - 1);
	if (!map(top, end))
		return false;
	__atomic_store_n(&top, end, __ATOMIC_RELEASE);
	return true;
}

/* Discards the contents of [at, at+len), which then reads as zeros. Returns 0 or -errno. */
long arena_zero(uint64_t at, uint64_t len)
{
	if (!shared)
		return sys_madvise(at, len, MADV_DONTNEED);
	int fd = memfd_get();
	return fd < 0 ? sys_madvise(at, len, MADV_REMOVE) : sys_punch(fd, at, len);
}

/* Returns whether part of the range was private, and removes it from the list. */
static bool forget_private(uint64_t from, uint64_t to)
{
	bool any = false;
	for (unsigned i = 0; i < private_count;) {
		if (private[i].from >= to || private[i].to <= from) {
			i++;
			continue;
		}
		any = true;
		private[i] = private[--private_count];
	}
	return any;
}

/* Maps the pages anew, which undoes everything that the program did to the mapping (mprotect, mlock,
 * another mapping in its place), as munmap would. Returns false if they can't be used again. */
static bool renew(uint64_t first, uint64_t pages)
{
	uint64_t from = address(first), to = from + pages * PAGE;
	bool was_private = forget_private(from, to);
	if (sys_failed(arena_zero(from, to - from)))
		return false;
	return map(from, to) || !was_private;
}

/* Makes [from, to) private memory with the same contents, which a child inherits as it does other memory.
 * Copies nothing. */
bool arena_make_private(uint64_t from, uint64_t to)
{
	int fd = memfd_get();
	if (!shared || fd < 0 || private_count == MOST_PRIVATE)
		return false;
	if (sys_failed(sys_mmap(from, to - from, RW, MAP_FIXED | MAP_PRIVATE, fd, from)))
		return false;
	forget_private(from, to);
	private[private_count].from = from;
	private[private_count].to = to;
	__atomic_store_n(&private_count, private_count + 1, __ATOMIC_RELEASE);
	return true;
}

/* ---- the range ----------------------------------------------------------------- */

static bool reserve(struct arena *a, uint64_t bytes)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	const uint64_t table = bytes / PAGE * sizeof *a->page;
	long at = sys_mmap(0, bytes + BLOCK, PROT_NONE, flags, -1, 0);
	if (sys_failed(at))
		return false;
	long page = sys_mmap(0, table, RW, flags, -1, 0); /* its pages are allocated when used */
	uint64_t start = ((uint64_t)at + BLOCK - 1) & ~(BLOCK - 1);
	if (sys_failed(page) || start + bytes > URDMA_PAGES_FILE_SIZE) {
		sys_munmap((uint64_t)at, bytes + BLOCK);
		return false;
	}
	*a = (struct arena){ start, start + bytes, (struct page *)page };
	return true;
}

/* Takes only part of the addresses if the program's are limited. */
static uint64_t most_bytes(uint64_t bytes)
{
	struct rlimit l = { RLIM_INFINITY, 0 };
	sys6(SYS_prlimit64, 0, RLIMIT_AS, 0, (long)&l, 0, 0);
	if (l.rlim_cur != RLIM_INFINITY && bytes > l.rlim_cur / 4)
		bytes = l.rlim_cur / 4;
	return bytes < MOST ? bytes : MOST;
}

/* Reserves addresses for so many bytes, or fewer, on the first call. Returns false if there are none. */
bool arena_make(uint64_t bytes)
{
	static bool never;
	if (own || never)
		return own;
	bytes = most_bytes((bytes + BLOCK - 1) & ~(BLOCK - 1)) & ~(BLOCK - 1);
	never = made == GENERATIONS || sysconf(_SC_PAGESIZE) != (long)PAGE;
	while (!never && bytes && !reserve(&all[made], bytes))
		bytes = bytes / 4 & ~(BLOCK - 1);
	if (never || !bytes)
		return false;
	shared = memfd_ready() >= 0;
	__atomic_store_n(&top, all[made].start, __ATOMIC_RELAXED);
	__atomic_store_n(&own, &all[made], __ATOMIC_RELEASE);
	add_free(0, bytes / PAGE);
	__atomic_store_n(&made, made + 1, __ATOMIC_RELEASE);
	return true;
}

bool arena_is_shared(void)
{
	return shared;
}

static const struct arena *arena_of(uint64_t from, uint64_t to)
{
	unsigned n = __atomic_load_n(&made, __ATOMIC_ACQUIRE);
	for (unsigned i = 0; i < n; i++)
		if (from >= all[i].start && to <= all[i].end && from < to)
			return &all[i];
	return NULL;
}

bool arena_has(uint64_t from, uint64_t to)
{
	return arena_of(from, to) != NULL;
}

/* Returns whether the range is in the process's own arena and shared. */
bool arena_owns(uint64_t from, uint64_t to)
{
	const struct arena *a = __atomic_load_n(&own, __ATOMIC_ACQUIRE);
	return a && shared && a == arena_of(from, to);
}

/* Returns the length in bytes of the extent in use that begins at an address in an arena; 0 if none does. */
uint64_t arena_length(uint64_t at)
{
	const struct arena *a = arena_of(at, at + 1);
	uint32_t tag = a->page[(at - a->start) / PAGE].tag;
	return tag & FIRST ? (tag & LENGTH) * PAGE : 0;
}

/* ---- extents ------------------------------------------------------------------- */

static bool fits(uint64_t i, uint64_t pages, uint64_t align, uint64_t *first)
{
	uint64_t end = i + (own->page[i].tag & LENGTH);
	*first = (((address(i) + align - 1) & ~(align - 1)) - own->start) / PAGE;
	return *first < end && pages <= end - *first;
}

/* Finds a free extent with room for so many pages, and the first of these pages. */
static bool find(uint64_t pages, uint64_t align, uint64_t *i, uint64_t *first)
{
	for (unsigned n = list_of(pages); n < LISTS; n++) {
		unsigned tries = 0;
		for (uint32_t at = list[n]; at && tries < TRIES; at = own->page[at - 1].next, tries++) {
			*i = at - 1;
			if (fits(*i, pages, align, first))
				return true;
		}
	}
	return false;
}

static void flush_kept(void)
{
	for (unsigned pages = 1; pages < LEAST_LARGE; pages++)
		while (kept[pages]) {
			uint64_t i = pop(&kept[pages]);
			if (renew(i, pages))
				make_free(i, pages);
		}
	kept_pages = 0;
}

/* Returns the address of len bytes (whole pages), or 0 if there are none. They contain zeros unless *dirty
 * is set. */
uint64_t arena_take(uint64_t len, uint64_t align, bool *dirty)
{
	uint64_t pages = len / PAGE, i, first;
	*dirty = pages < LEAST_LARGE && align <= PAGE && kept[pages];
	if (*dirty) {
		i = pop(&kept[pages]);
		kept_pages -= (unsigned)pages;
		own->page[i].tag |= FIRST;
		return address(i);
	}
	if (pages > page_count() || align > own->end - own->start)
		return 0;
	if (!find(pages, align, &i, &first)) {
		flush_kept();
		if (!find(pages, align, &i, &first))
			return 0;
	}
	uint64_t end = i + remove_free(i);
	add_free(i, first - i);
	add_free(first + pages, end - first - pages);
	set_extent(first, pages, IN_USE);
	if (map_up_to(address(first + pages)))
		return address(first);
	make_free(first, pages);
	return 0;
}

static void release(uint64_t i)
{
	uint64_t pages = own->page[i].tag & LENGTH;
	if (pages < LEAST_LARGE && kept_pages + pages <= MOST_KEPT && !private_count) {
		push(&kept[pages], i);
		kept_pages += (unsigned)pages;
	} else if (renew(i, pages)) {
		make_free(i, pages);
	}
}

/* Frees an extent of any arena. Ignores addresses where no extent begins or which were already freed. */
void arena_give(uint64_t at)
{
	const struct arena *a = arena_of(at, at + 1);
	struct page *p = &a->page[(at - a->start) / PAGE];
	if (!(p->tag & FIRST))
		return;
	p->tag &= ~FIRST;
	if (a != own) /* a child's copy */
		sys_madvise(at, (p->tag & LENGTH) * PAGE, MADV_DONTNEED);
	else if (forks[0] + forks[1])
		push(&freed[epoch & 1], (uint64_t)(p - a->page));
	else
		release((uint64_t)(p - a->page));
}

/* Grows an extent of the own arena into the free one after it, to len bytes. */
bool arena_extend(uint64_t at, uint64_t len)
{
	uint64_t first = (at - own->start) / PAGE, had = own->page[first].tag & LENGTH;
	uint64_t end = first + had, more = len / PAGE - had, room;
	if (end == page_count() || (own->page[end].tag & IN_USE) || (own->page[end].tag & LENGTH) < more)
		return false;
	room = remove_free(end);
	add_free(end + more, room - more);
	set_extent(first, had + more, IN_USE);
	if (map_up_to(at + len))
		return true;
	set_extent(first, had, IN_USE);
	make_free(end, more);
	return false;
}

/* ---- forks --------------------------------------------------------------------- */

/* Calls fn for the parts of [from, to) that are mapped from the memfd. Works without the lock, and in a
 * child, too. */
static void each_piece(uint64_t from, uint64_t to, piece_fn fn)
{
	unsigned n = __atomic_load_n(&private_count, __ATOMIC_ACQUIRE);
	for (uint64_t at = from, after; at < to; at = after) {
		uint64_t stop = to;
		after = to;
		for (unsigned i = 0; i < n; i++)
			if (private[i].to > at && private[i].from < stop) {
				stop = private[i].from;
				after = private[i].to;
			}
		if (stop > at)
			fn(at, stop);
	}
}

bool arena_in_use(void)
{
	return own && shared && __atomic_load_n(&top, __ATOMIC_ACQUIRE) > own->start;
}

void arena_each_piece(piece_fn fn)
{
	if (arena_in_use())
		each_piece(own->start, top, fn);
}

/* Calls fn for the parts of extents in use within [from, to). In a child: as of the fork. */
void arena_each_used(uint64_t from, uint64_t to, piece_fn fn)
{
	uint64_t pages = (to - own->start) / PAGE;
	for (uint64_t i = 0, n; i < pages; i += n) {
		uint32_t tag = own->page[i].tag;
		n = tag & FIRST ? tag & LENGTH : 1;
		uint64_t first = address(i), end = address(i + n);
		if (tag & FIRST && end > from)
			each_piece(first > from ? first : from, end < to ? end : to, fn);
	}
}

/* Begins a fork. Memory freed from now on keeps its contents until arena_end_fork is called with the
 * returned value, because the child copies it. */
unsigned arena_begin_fork(void)
{
	struct held held;
	arena_lock(&held);
	unsigned of = epoch & 1;
	forks[of]++;
	arena_unlock(&held);
	return of;
}

/* Ends a fork. When no fork of the previous epoch is left a new epoch begins, and memory freed in that
 * epoch is released: no child copies it any more. Returns whether no fork is under way. */
bool arena_end_fork(unsigned of)
{
	struct held held;
	arena_lock(&held);
	forks[of]--;
	for (int i = 0; i < 2 && !forks[(epoch + 1) & 1]; i++)
		for (epoch++; freed[epoch & 1];)
			release(pop(&freed[epoch & 1]));
	bool none = !forks[0] && !forks[1];
	arena_unlock(&held);
	return none;
}

/* Called in a child: other threads of the parent may have held the lock. */
void arena_inherit(void)
{
	if (own && shared)
		sys_mmap(top, own->end - top, PROT_NONE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	pthread_mutex_init(&lock, NULL);
	own = NULL;
	for (unsigned i = 0; i < LISTS; i++)
		list[i] = 0;
	for (unsigned i = 0; i < LEAST_LARGE; i++)
		kept[i] = 0;
	freed[0] = freed[1] = forks[0] = forks[1] = kept_pages = private_count = 0;
}
