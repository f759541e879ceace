//go:build c_only
/*
 * The exchange itself, for one run inside one block.
 *
 *   in   private pages move aside (MREMAP_DONTUNMAP leaves their mapping in
 *        place, empty), are written to the memfd, and the memfd's mapping moves
 *        over the range, or is made there where nobody else runs;
 *   out  the memfd's pages are unmapped, read into the mapping that waits
 *        aside, and that moves back over the range.
 *
 * Between shut and wake, a thread that touches the range waits, and this one
 * uses nothing but system calls and its own stack: the page in flight may be
 * anyone's, a data page of the program that we are linked into included.
 *
 * Why the original mapping is kept aside (emptied) and not made anew: an
 * anonymous mapping that was faulted in elsewhere never merges with its
 * neighbours again, so each round would cut the heap into more mappings, of
 * which a process may have 65,530.
 *
 * Failures leave the range as it was. mremap(2) with MREMAP_FIXED refuses for
 * want of mappings before it unmaps its target.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"
#include "kernel/sys.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif
#define DONTUNMAP 4 /* MREMAP_DONTUNMAP, Linux 5.7 */
enum { RW = PROT_READ | PROT_WRITE };

static long write_all(int fd, uint64_t from, uint64_t len, uint64_t off)
{
	while (len) {
		long n = sys_pwrite(fd, from, len, off);
		if (n <= 0)
			return n ? n : -EIO;
		from += (uint64_t)n;
		off += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return 0;
}

static long read_all(int fd, uint64_t to, uint64_t len, uint64_t off)
{
	while (len) {
		long n = sys_pread(fd, to, len, off);
		if (n <= 0)
			return n ? n : -EIO;
		to += (uint64_t)n;
		off += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return 0;
}

/* Has the pages exist, as zeros: to write them takes two thirds of what it takes
 * to have faults make them. */
static long write_zeros(int fd, uint64_t off, uint64_t len)
{
	static char zeros[16 * PAGE]; /* in no file, as it would be if const */
	long err = 0;
	for (uint64_t n; !err && len; off += n, len -= n) {
		n = len < sizeof zeros ? len : sizeof zeros;
		err = write_all(fd, (uint64_t)zeros, n, off);
	}
	return err;
}

/* memcpy without a call: see the head of this file. */
static void copy_bytes(uint64_t to, uint64_t from, uint64_t len)
{
#if defined(__x86_64__)
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(len)::"memory");
#else
	for (uint64_t i = 0; i < len; i += 8)
		*(volatile uint64_t *)(to + i) = *(volatile uint64_t *)(from + i);
#endif
}

/* Word was changed by the program from before to now; the memfd's word may
 * have been changed by the daemon meanwhile. Each byte's changer wins. */
static void merge_word(uint64_t *file, uint64_t before, uint64_t now)
{
	uint64_t expected = before;
	if (__atomic_compare_exchange_n(file, &expected, now, false,
	                                __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return;
	for (unsigned i = 0; i < 8; i++) {
		uint8_t was = (uint8_t)(before >> (i * 8));
		uint8_t is = (uint8_t)(now >> (i * 8));
		if (was != is)
			__atomic_store_n((uint8_t *)file + i, is, __ATOMIC_SEQ_CST);
	}
}

static void merge(uint64_t file, uint64_t side, const void *before, uint64_t len)
{
	uint64_t *f = (uint64_t *)file;
	const uint64_t *now = (const uint64_t *)side, *was = before;
	for (uint64_t i = 0; i < len / 8; i++)
		if (now[i] != was[i])
			merge_word(&f[i], was[i], now[i]);
}

/* Where blocks are mapped beside their place, aligned as they are. */
static uint64_t beside(uint64_t addr)
{
	return shadow(addr) ^ (UINT64_C(1) << 45);
}

/*
 * Has blocks of which the memfd has nothing exist there as huge pages, all zeros: each is
 * cleared, entered and freed by one step in place of 512, here and in urdmad. The
 * kernel makes one where a page of it exists, whatever shmem_enabled says.
 */
long swap_make_huge(int fd, uint64_t start, uint64_t len)
{
	long err = 0;
	for (uint64_t at = start; !err && at < start + len; at += BLOCK)
		err = write_zeros(fd, at, 1);
	long at = sys_mmap(beside(start), len, RW, MAP_SHARED, fd, start);
	if (!err && !sys_failed(at))
		err = (uint64_t)at & (BLOCK - 1) ? -EAGAIN
		                                 : sys_madvise((uint64_t)at, len, MADV_COLLAPSE);
	if (!sys_failed(at))
		sys_munmap((uint64_t)at, len);
	err = sys_failed(at) ? at : err;
	if (sys_failed(err))
		sys_punch(fd, start, len);
	return err;
}

/* A mapping of the memfd, still beside, aligned as the block is if there is room. A
 * child of a fork that our handlers don't see must not share it: a hole there is
 * the lesser evil. */
static long map_file(const struct run *r)
{
	long fresh = sys_mmap(r->len == BLOCK ? beside(r->addr) : 0, r->len, RW,
	                      MAP_SHARED, r->fd, r->addr);
	if (!sys_failed(fresh))
		sys_madvise((uint64_t)fresh, r->len, MADV_DONTFORK);
	return fresh;
}

/* The pages have moved: free what is left aside, or all of it where it didn't
 * get its place. */
static bool settle_aside(const struct run *r, uint64_t side)
{
	if (side == shadow(r->addr)) {
		sys_madvise(side, r->len, MADV_DONTNEED);
		return true;
	}
	sys_munmap(side, r->len);
	return false;
}

/* Locked memory is unlocked while it moves (MREMAP_DONTUNMAP counts it twice
 * and for ever against RLIMIT_MEMLOCK: seen with 6.18) and locked again where
 * it has gone. MADV_COLD, harmless, is refused for locked memory alone. */
static bool unlock(const struct run *r)
{
	if (urdma_pages_state.none_locked ||
	    sys_madvise(r->addr, PAGE, MADV_COLD) != -EINVAL)
		return false;
	sys_munlock(r->addr, r->len);
	return true;
}

/* Puts the moved pages back. It may need one mapping more than were there when
 * they moved, which the reserve has; then only other threads can make it wait. */
static void put_back(const struct run *r, uint64_t side)
{
	const struct { long s, ns; } pause = { 0, 100 * 1000 };
	while (sys_failed(sys_mremap(side, r->len, r->len,
	                             MREMAP_MAYMOVE | MREMAP_FIXED, r->addr)))
		if (!reserve_spend())
			sys6(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
}

/* What a run becomes: its mapping of the memfd, still beside. */
struct incoming {
	uint64_t fresh;
	bool populated;     /* its pages are there: storing to it can't fail */
	bool zeros;         /* the memfd has them, as zeros */
	bool holes;         /* not all of it exists: see has_holes */
	const void *before; /* see swap_in */
};

/* Some pages don't exist and read as zero. False also where nothing is known. */
static bool has_holes(const struct run *r)
{
	uint64_t entry[BLOCK_PAGES];
	unsigned pages = (unsigned)(r->len / PAGE), i = 0;
	if (!pagemap_read(r->pagemap, r->addr, pages, entry))
		return false;
	while (i < pages && !pagemap_is_empty(entry[i]))
		i++;
	return i < pages;
}

static long fill_part(const struct run *r, const struct incoming *in,
                      uint64_t side, uint64_t from, uint64_t len)
{
	if (!in->populated)
		return write_all(r->fd, side + from, len, r->addr + from);
	copy_bytes(in->fresh + from, side + from, len);
	return 0;
}

/* Where there are holes, what exists is copied: asked again, of what nobody else
 * reaches any more. The rest is zeros, and so are pages of ours that exist. */
static long fill(const struct run *r, const struct incoming *in, uint64_t side)
{
	uint64_t entry[BLOCK_PAGES];
	unsigned pages = (unsigned)(r->len / PAGE);
	long err = 0;
	if (in->before) {
		merge(in->fresh, side, in->before, r->len);
		return 0;
	}
	if (!in->holes || !pagemap_read(r->pagemap, side, pages, entry))
		return fill_part(r, in, side, 0, r->len);
	for (unsigned i = 0, end; !err && i < pages; i = end) {
		bool empty = pagemap_is_empty(entry[i]);
		for (end = i + 1; end < pages && pagemap_is_empty(entry[end]) == empty;)
			end++;
		uint64_t from = i * PAGE, len = (end - i) * PAGE;
		if (!empty)
			err = fill_part(r, in, side, from, len);
		else if (!in->zeros)
			err = write_zeros(r->fd, r->addr + from, len);
	}
	return err;
}

static long exchange_in(const struct window *w, const struct run *r,
                        const struct incoming *in, uint64_t *side)
{
	long err = window_shut(w, r->addr, r->len, false);
	if (sys_failed(err))
		return err;
	long moved = sys_mremap(r->addr, r->len, r->len,
	                        MREMAP_MAYMOVE | DONTUNMAP, shadow(r->addr));
	if (sys_failed(moved)) {
		window_cancel(w, r->addr, r->len);
		return moved;
	}
	*side = (uint64_t)moved;
	err = fill(r, in, *side);
	if (!err)
		err = sys_mremap(in->fresh, r->len, r->len,
		                 MREMAP_MAYMOVE | MREMAP_FIXED, r->addr);
	if (sys_failed(err)) {
		sys_munmap(in->fresh, r->len);
		put_back(r, *side);
	}
	window_wake(w, r->addr, r->len);
	return sys_failed(err) ? err : 0;
}

/* Of [start, end) of a memfd, what nobody has written to becomes huge pages if there is
 * enough of it at a stretch. */
static void fill_by_huge(int fd, uint64_t start, uint64_t end)
{
	for (uint64_t at = (start + BLOCK - 1) & ~(BLOCK - 1), n; at + LEAST_HUGE <= end; at += n) {
		n = end - at < MOST_HUGE ? (end - at) & ~(BLOCK - 1) : MOST_HUGE;
		long data = sys6(SYS_lseek, fd, (long)at, SEEK_DATA, 0, 0, 0);
		bool empty = data == -ENXIO || (!sys_failed(data) && (uint64_t)data >= at + n);
		if (empty && sys_failed(swap_make_huge(fd, at, n)))
			return;
	}
}

/* Pages of a mapping of the memfd are entered, sixteen at a time. Holes are filled
 * by that: they are memory of the program's, and not of the process that touches them first. */
void swap_enter(const struct run *r)
{
	if (r->sparse)
		fill_by_huge(r->fd, r->addr, r->addr + r->len);
	if (sys_madvise(r->addr, r->len, MADV_POPULATE_READ) == -EINVAL)
		sys_allocate(r->fd, r->addr, r->len); /* Linux before 5.14 */
}

/* Over the range itself, of any length. */
bool map_shared_over(const struct run *r)
{
	long over = sys_mmap(r->addr, r->len, RW, MAP_SHARED | MAP_FIXED, r->fd,
	                     r->addr);
	if (sys_failed(over))
		return false;
	sys_madvise(r->addr, r->len, MADV_DONTFORK);
	return true;
}

/* Over the range itself. The pages are entered, but for few: the program's first
 * write would enter one at a time. */
static long map_file_over(const struct run *r)
{
	if (!map_shared_over(r))
		return -ENOMEM;
	if (r->len > FEW * PAGE)
		swap_enter(r);
	return 0;
}

/* With nobody else to hold back: written to the memfd, a small page isn't zeroed
 * before, and the mapping needn't be made beside the range. */
static long alone_in(const struct run *r, bool *shadowed)
{
	sys_madvise(r->addr, PAGE, MADV_POPULATE_WRITE);
	struct incoming in = { .zeros = r->zeros, .holes = has_holes(r) };
	long side = sys_mremap(r->addr, r->len, r->len,
	                       MREMAP_MAYMOVE | DONTUNMAP, shadow(r->addr));
	if (sys_failed(side))
		return side;
	long err = fill(r, &in, (uint64_t)side);
	if (!err)
		err = map_file_over(r);
	if (err) {
		put_back(r, (uint64_t)side);
		return err;
	}
	*shadowed = settle_aside(r, (uint64_t)side);
	return 0;
}

static long try_in(const struct window *w, const struct run *r,
                   const void *before, bool *shadowed)
{
	uint64_t side = 0;
	if (w->kind == WINDOW_ALONE && !before)
		return alone_in(r, shadowed);
	/* What takes time is done before others have to wait. */
	struct incoming in = { .zeros = r->zeros, .before = before };
	if (!r->zeros && !before && r->len > FEW * PAGE)
		in.zeros = write_zeros(r->fd, r->addr, r->len) == 0;
	long fresh = map_file(r);
	if (sys_failed(fresh))
		return fresh;
	in.fresh = (uint64_t)fresh;
	in.populated = sys_madvise(in.fresh, r->len, MADV_POPULATE_WRITE) == 0;
	in.holes = in.zeros && in.populated && has_holes(r);
	sys_madvise(r->addr, PAGE, MADV_POPULATE_WRITE);
	long err = exchange_in(w, r, &in, &side);
	if (err) {
		if (!side)
			sys_munmap(in.fresh, r->len);
		return err;
	}
	*shadowed = settle_aside(r, side);
	return 0;
}

/* Where a run's content waits for its place. */
struct outgoing {
	uint64_t side;
	bool populated; /* its pages are there: storing to it can't fail */
};

/* Of memory that may have holes: what is zeros stays a hole where it goes. */
static long read_sparse(const struct run *r, uint64_t side)
{
	uint64_t page[PAGE / 8];
	long err = 0;
	for (uint64_t at = 0, i = 0; !err && at < r->len; at += PAGE, i = 0) {
		err = read_all(r->fd, (uint64_t)page, PAGE, r->addr + at);
		while (!err && i < PAGE / 8 && !page[i])
			i++;
		if (!err && i < PAGE / 8)
			err = read_all(r->fd, side + at, PAGE, r->addr + at);
	}
	return err;
}

/* With nobody else to hold back the pages are still mapped, and copied from there:
 * read(2) of shared memory takes more than twice as long, page by page. A child
 * lacks the mapping set aside of what no child was to inherit: read(2) says so. */
static long read_out(const struct window *w, const struct run *r,
                     const struct outgoing *out, int prot)
{
	if (r->sparse)
		return read_sparse(r, out->side);
	if (w->kind != WINDOW_ALONE || !out->populated || !(prot & PROT_READ))
		return read_all(r->fd, out->side, r->len, r->addr);
	copy_bytes(out->side, r->addr, r->len);
	return 0;
}

static long exchange_out(const struct window *w, const struct run *r,
                         const struct outgoing *out, int prot, void *snapshot)
{
	const uint64_t side = out->side;
	long err = window_shut(w, r->addr, r->len, true);
	if (sys_failed(err))
		return err;
	if (snapshot) {
		err = read_all(r->fd, (uint64_t)snapshot, r->len, r->addr);
		if (!err)
			copy_bytes(side, (uint64_t)snapshot, r->len);
	} else {
		err = read_out(w, r, out, prot);
	}
	if (!err && prot != RW)
		err = sys_mprotect(side, r->len, prot);
	if (!err)
		err = sys_mremap(side, r->len, r->len,
		                 MREMAP_MAYMOVE | MREMAP_FIXED, r->addr);
	if (sys_failed(err)) {
		window_cancel(w, r->addr, r->len);
		return err;
	}
	window_wake(w, r->addr, r->len);
	return 0;
}

static long try_out(const struct window *w, const struct run *r, int prot,
                    bool shadowed, void *snapshot)
{
	uint64_t side = shadow(r->addr);
	if (!shadowed) {
		long fresh = sys_mmap(0, r->len, RW, MAP_PRIVATE | MAP_ANONYMOUS,
		                      -1, 0);
		if (sys_failed(fresh))
			return fresh;
		side = (uint64_t)fresh;
	}
	/* Faulted in now, not while others wait. */
	struct outgoing out = { .side = side };
	out.populated = !r->sparse && sys_madvise(side, r->len, MADV_POPULATE_WRITE) == 0;
	long err = exchange_out(w, r, &out, prot, snapshot);
	if (!err)
		return 0;
	if (!shadowed)
		sys_munmap(side, r->len);
	else if (!sys_failed(sys_mprotect(side, r->len, RW)))
		sys_madvise(side, r->len, MADV_DONTNEED);
	return err;
}

/*
 * Private read-write pages become pages of r->fd. *shadowed: their mapping
 * waits at shadow(r->addr). The first page is faulted in first, because only
 * a mapping that was faulted keeps its identity when it moves.
 */
long swap_in(const struct window *w, const struct run *r, const void *before,
             bool *shadowed)
{
	bool locked = unlock(r);
	long err = try_in(w, r, before, shadowed);
	/* A fresh conversion may fail; one that returns from a fork may not. */
	if (err == -ENOMEM && before && reserve_spend()) {
		err = try_in(w, r, before, shadowed);
		reserve_make();
	}
	if (err && !before)
		sys_punch(r->fd, r->addr, r->len);
	if (locked)
		sys_mlock(r->addr, r->len);
	return err;
}

/*
 * The run's pages become private again, with the memfd's content and prot.
 * snapshot: gets the same content (for a fork), else NULL. The memfd keeps its
 * pages: a caller that has no more use for them punches them out.
 */
long swap_out(const struct window *w, const struct run *r, int prot,
              bool shadowed, void *snapshot)
{
	bool locked = unlock(r);
	long err = try_out(w, r, prot, shadowed, snapshot);
	if (err == -ENOMEM && reserve_spend()) {
		err = try_out(w, r, prot, shadowed, snapshot);
		reserve_make();
	}
	if (locked)
		sys_mlock(r->addr, r->len);
	return err;
}
