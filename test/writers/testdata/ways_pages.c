/* ways_pages.c - what changes pages under the addresses: advice, mappings, userfaultfd. */
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "writers.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102 /* Linux 6.13 */
#define MADV_GUARD_REMOVE 103
#endif
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static void check_zeros(const char *at, const char *what)
{
	for (size_t i = 0; i < cell.length; i += 8)
		CHECK(!*(const volatile uint64_t *)(const void *)(at + i), "%s: a word at %zu is not zero", what, i);
}

static uint32_t version_before(const struct lane *l)
{
	return l->version == 1 ? VERSIONS : l->version - 1;
}

static void check_before(const struct lane *l, const char *what)
{
	pattern_check(lane_at(l), l->at, cell.length, version_before(l), what);
}

static void advise(const struct lane *l, int advice, const char *name)
{
	CHECK(madvise(lane_at(l), cell.length, advice) == 0, "%s: %s", name, strerror(errno));
}

static void put_dontneed(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++) {
		const struct lane *l = &cell.mine[i];

		advise(l, MADV_DONTNEED, "MADV_DONTNEED");
		if (cell.kind->bit & COMMON)
			check_before(l, "after MADV_DONTNEED of a file");
		else
			check_zeros(lane_at(l), "after MADV_DONTNEED");
		store_lanes(i, 1);
	}
}

const struct way way_dontneed = { .name = "dontneed", .kinds = WHOLE_PAGES, .pages = true, .put = put_dontneed };

/* The kernel may take the pages until they are written to again. */
static void put_free(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++) {
		const struct lane *l = &cell.mine[i];

		advise(l, MADV_FREE, "MADV_FREE");
		if (*(volatile uint64_t *)(void *)lane_at(l))
			check_before(l, "after MADV_FREE");
		else
			check_zeros(lane_at(l), "after MADV_FREE");
		store_lanes(i, 1);
	}
}

const struct way way_free = { .name = "free", .kinds = PRIVATE | ALIGNED | ARENA, .pages = true, .put = put_free };

static void put_remove(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++) {
		advise(&cell.mine[i], MADV_REMOVE, "MADV_REMOVE");
		check_zeros(lane_at(&cell.mine[i]), "after MADV_REMOVE");
		store_lanes(i, 1);
	}
}

static void get_remove(unsigned first, unsigned n)
{
	for (unsigned i = first; cell.file >= 0 && i < first + n; i++) {
		const struct lane *l = &cell.mine[i];

		CHECK(pread(cell.file, scratch(), cell.length, (off_t)l->at) == (ssize_t)cell.length, "pread: %s", strerror(errno));
		pattern_check(scratch(), l->at, cell.length, l->version, "pread of the file");
	}
}

const struct way way_remove = { .name = "remove", .kinds = COMMON, .pages = true, .put = put_remove, .get = get_remove };

/* Registering what is not mapped, or not readable, is refused. */
static void check_refused(const struct lane *l, int access, const char *what)
{
	struct ibv_mr *mr = rdma_register(lane_at(l), cell.length, access);

	CHECK(!mr, "ibv_reg_mr of %s is not refused", what);
}

static char *somewhere(void)
{
	char *p = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED, "mmap: %s", strerror(errno));
	return p;
}

static void moved(char *from, int flags, char *to)
{
	CHECK(mremap(from, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED | flags, to) == to, "mremap: %s", strerror(errno));
}

/* Away, written to there, back, and written to here. */
static void put_mremap(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++) {
		const struct lane *l = &cell.mine[i];
		bool hole = (cell.kind->bit & (COMMON | ALIGNED | ARENA)) || (l->version & 1);
		char *there;

		if (hole)
			pthread_mutex_lock(&cell.hole); /* nobody else maps anything in the hole */
		there = somewhere();
		moved(lane_at(l), hole ? 0 : MREMAP_DONTUNMAP, there);
		pattern_check(there, l->at, cell.length, version_before(l), "after mremap");
		if (hole && !cell.fault)
			check_refused(l, IBV_ACCESS_LOCAL_WRITE, "a hole");
		else if (!hole)
			check_zeros(lane_at(l), "what MREMAP_DONTUNMAP left");
		pattern_fill(there, l->at, cell.length / 2, l->version);
		moved(there, 0, lane_at(l));
		if (hole)
			pthread_mutex_unlock(&cell.hole);
		for (size_t at = cell.length / 2; at < cell.length; at += 64) {
			pattern_fill(lane_at(l) + at, l->at + at, 64, l->version);
			if (cell.fault) /* the other party was held up; now it can move the page */
				sched_yield();
		}
	}
	if (first % 8 == 0)
		check_child();
}

const struct way way_mremap = { .name = "mremap", .kinds = PRIVATE | ALIGNED | ARENA | COMMON, .pages = true, .holes = true, .anew = true, .put = put_mremap };

static void map_again(const struct lane *l)
{
	int flags = cell.file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *p = mmap(lane_at(l), PAGE, PROT_READ | PROT_WRITE, flags | MAP_FIXED, cell.file, cell.file < 0 ? 0 : (off_t)l->at);

	CHECK(p == lane_at(l), "mmap: %s", strerror(errno));
}

static void unmap_and_map(const struct lane *l)
{
	pthread_mutex_lock(&cell.hole);
	CHECK(munmap(lane_at(l), PAGE) == 0, "munmap: %s", strerror(errno));
	if (!cell.fault)
		check_refused(l, IBV_ACCESS_LOCAL_WRITE, "what is unmapped");
	map_again(l);
	pthread_mutex_unlock(&cell.hole);
}

static void put_remap(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++) {
		const struct lane *l = &cell.mine[i];

		if (l->version & 1)
			map_again(l);
		else
			unmap_and_map(l);
		if (cell.file < 0)
			check_zeros(lane_at(l), "memory mapped again");
		else
			check_before(l, "a file mapped again");
		store_lanes(i, 1);
	}
	if (first % 8 == 0)
		check_child();
}

const struct way way_remap = { .name = "remap", .kinds = PRIVATE | ALIGNED | ARENA | MEMFD | FILE_SHARED, .pages = true, .holes = true, .anew = true, .put = put_remap };

static void protect(const struct lane *l, int protection)
{
	CHECK(mprotect(lane_at(l), PAGE, protection) == 0, "mprotect: %s", strerror(errno));
}

static void put_protect(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++) {
		const struct lane *l = &cell.mine[i];
		struct ibv_mr *mr;

		store_lanes(i, 1);
		protect(l, PROT_READ);
		check_refused(l, IBV_ACCESS_LOCAL_WRITE, "read-only memory");
		mr = rdma_register(lane_at(l), cell.length, IBV_ACCESS_REMOTE_READ);
		CHECK(mr, "read-only memory can't be registered to be read");
		rdma_deregister(mr);
		protect(l, PROT_NONE);
		check_refused(l, IBV_ACCESS_REMOTE_READ, "memory that nobody may read");
		protect(l, PROT_READ | PROT_WRITE);
	}
}

/* What became read-only after it was registered is written all the same, as by a NIC,
 * but for what is mapped shared and not mapped by urdmad. */
static void refer_protect(unsigned i)
{
	if (!(cell.kind->bit & (SHARED | FILE_SHARED)))
		protect(&cell.mine[i], PROT_READ);
}

static void changed_protect(unsigned i)
{
	protect(&cell.mine[i], PROT_READ | PROT_WRITE);
}

const struct way way_protect = { .name = "protect", .kinds = WHOLE_PAGES, .pages = true, .holes = true, .most = 4, .put = put_protect,
				 .refer = refer_protect, .changed = changed_protect };

static void start_guard(void)
{
	if (madvise(cell.at, PAGE, MADV_GUARD_INSTALL))
		skip("MADV_GUARD_INSTALL: %s", strerror(errno));
	advise(&cell.mine[0], MADV_GUARD_REMOVE, "MADV_GUARD_REMOVE");
	store_lanes(0, 1);
}

static void put_guard(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++) {
		const struct lane *l = &cell.mine[i];

		advise(l, MADV_GUARD_INSTALL, "MADV_GUARD_INSTALL");
		check_refused(l, IBV_ACCESS_LOCAL_WRITE, "a guard region");
		advise(l, MADV_GUARD_REMOVE, "MADV_GUARD_REMOVE");
		if (!(cell.kind->bit & COMMON) && !cell.shared_with_urdmad)
			check_zeros(lane_at(l), "after MADV_GUARD_REMOVE");
		store_lanes(i, 1);
	}
}

const struct way way_guard = { .name = "guard", .kinds = PRIVATE | ALIGNED | ARENA | MEMFD, .pages = true, .holes = true, .most = 4, .start = start_guard,
			       .put = put_guard };

/* The program's own userfaultfd: a thread has missing pages. */
static int uffd;
static pthread_mutex_t page_lock = PTHREAD_MUTEX_INITIALIZER;

static void open_uffd(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	int device;

	uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (uffd < 0 && (device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC)) >= 0)
		uffd = ioctl(device, 0xAA00 /* USERFAULTFD_IOC_NEW */, O_CLOEXEC);
	if (uffd < 0) /* without the kernel's faults: ibv_reg_mr says EFAULT where a page is missing */
		uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (uffd < 0)
		skip("userfaultfd: %s", strerror(errno));
	CHECK(ioctl(uffd, UFFDIO_API, &api) == 0, "UFFDIO_API: %s", strerror(errno));
}

/* Both the thread and the writer may: the second finds a page. */
static void fill_missing(const struct lane *l)
{
	struct uffdio_copy copy = { .dst = (uintptr_t)lane_at(l), .src = (uintptr_t)scratch(), .len = PAGE };
	struct uffdio_zeropage zero = { .range = { (uintptr_t)lane_at(l), PAGE } };
	bool copies = cell.way == &way_uffd_copy;

	pattern_fill(scratch(), l->at, cell.length, l->version);
	while (ioctl(uffd, copies ? UFFDIO_COPY : UFFDIO_ZEROPAGE, copies ? (void *)&copy : (void *)&zero)) {
		if (errno == EEXIST)
			return;
		CHECK(errno == EAGAIN, "UFFDIO_COPY, UFFDIO_ZEROPAGE: %s", strerror(errno));
	}
}

static void *serve_faults(void *arg)
{
	struct uffd_msg m;

	while (read(uffd, &m, sizeof(m)) == sizeof(m)) {
		size_t at = (size_t)(m.arg.pagefault.address & ~(PAGE - 1)) - (size_t)cell.at;

		CHECK(m.event == UFFD_EVENT_PAGEFAULT && at < SIZE && at % (2 * PAGE) == 0, "a fault at %zu, which is not missing", at);
		pthread_mutex_lock(&page_lock);
		fill_missing(&cell.mine[at / (2 * PAGE)]);
		pthread_mutex_unlock(&page_lock);
	}
	return arg;
}

static void start_uffd(void)
{
	struct uffdio_register range = { .range = { (uintptr_t)cell.at, SIZE }, .mode = UFFDIO_REGISTER_MODE_MISSING };
	pthread_t thread;

	if (cell.shared_with_urdmad)
		skip("urdmad's accesses to memory that it maps raise no fault");
	open_uffd();
	CHECK(ioctl(uffd, UFFDIO_REGISTER, &range) == 0, "UFFDIO_REGISTER: %s", strerror(errno));
	CHECK(!pthread_create(&thread, NULL, serve_faults, NULL), "pthread_create");
}

static void put_uffd(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++) {
		pthread_mutex_lock(&page_lock);
		advise(&cell.mine[i], MADV_DONTNEED, "MADV_DONTNEED");
		if (i & 1) /* else the thread does, when it is touched below or registered */
			fill_missing(&cell.mine[i]);
		pthread_mutex_unlock(&page_lock);
		if (cell.way == &way_uffd_zero) {
			check_zeros(lane_at(&cell.mine[i]), "after UFFDIO_ZEROPAGE");
			store_lanes(i, 1);
		}
	}
}

/* RDMA to a page that has gone missing since it was registered fails, and not in silence:
 * the kernel doesn't wait for the program's thread in such an access. */
static void finish_uffd(struct end *e, const struct ibv_mr *mr)
{
	struct lane *l = &cell.mine[0];

	pthread_mutex_lock(&page_lock);
	advise(l, MADV_DONTNEED, "MADV_DONTNEED");
	pthread_mutex_unlock(&page_lock);
	if (rdma_try_in(e, l, mr))
		pattern_check(lane_at(l), l->at, cell.length, l->version, "a Write to a missing page brought");
	else
		store_lanes(0, 1);
}

const struct way way_uffd_copy = { .name = "uffd-copy", .kinds = PRIVATE, .pages = true, .holes = true, .start = start_uffd, .put = put_uffd,
				   .finish = finish_uffd };
const struct way way_uffd_zero = { .name = "uffd-zero", .kinds = PRIVATE, .pages = true, .holes = true, .start = start_uffd, .put = put_uffd,
				   .finish = finish_uffd };

/* Pages with the same bytes become one. */
static void start_ksm(void)
{
	FILE *f = fopen("/sys/kernel/mm/ksm/run", "re");
	int on = 0;

	if (f && fscanf(f, "%d", &on) != 1)
		on = 0;
	if (f)
		fclose(f);
	if (on != 1)
		skip("KSM is off (/sys/kernel/mm/ksm/run)");
	CHECK(madvise(cell.at, SIZE, MADV_MERGEABLE) == 0, "MADV_MERGEABLE: %s", strerror(errno));
}

static void put_ksm(unsigned first, unsigned n)
{
	store_lanes(first, n);
	if (first % 4 == 0)
		usleep(30000);
}

const struct way way_ksm = { .name = "ksm", .kinds = PRIVATE, .pages = true, .period = PAGE, .start = start_ksm, .put = put_ksm };

/* A huge page is made of the pages, and small ones of it again. */
static void start_thp(void)
{
	if (madvise(cell.at, 2 << 20, MADV_COLLAPSE) && errno == EINVAL)
		skip("MADV_COLLAPSE: %s", strerror(errno));
}

static void put_thp(unsigned first, unsigned n)
{
	store_lanes(first, n);
	if (first & 1) {
		madvise(cell.at, 2 << 20, MADV_COLLAPSE); /* it may be busy */
	} else {
		char *last = cell.at + (2 << 20) - PAGE;

		CHECK(mprotect(last, PAGE, PROT_READ) == 0 && mprotect(last, PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect: %s", strerror(errno));
		madvise(last, PAGE, MADV_DONTNEED);
	}
}

const struct way way_thp = { .name = "thp", .kinds = PRIVATE | ARENA | SHARED | MEMFD, .whole = true, .room = 4 << 20, .start = start_thp, .put = put_thp };

/* The kernel moves pages itself: between nodes, and to gather free ones. */
static void start_mbind(void)
{
	unsigned long nodes = 1;

	if (syscall(SYS_mbind, (uintptr_t)cell.at & ~(PAGE - 1), PAGE, MPOL_BIND, &nodes, 8 * sizeof(nodes), 0))
		skip("mbind: %s", strerror(errno));
}

static void put_mbind(unsigned first, unsigned n)
{
	unsigned long nodes = 1;
	void *pages[SIZE / PAGE];
	int to[SIZE / PAGE] = { 0 }, status[SIZE / PAGE];
	int fd;

	store_lanes(first, n);
	for (size_t i = 0; i < SIZE / PAGE; i++)
		pages[i] = cell.at + i * PAGE;
	CHECK(syscall(SYS_mbind, (uintptr_t)cell.at & ~(PAGE - 1), SIZE, first & 1 ? MPOL_BIND : MPOL_PREFERRED, &nodes, 8 * sizeof(nodes),
		      MPOL_MF_MOVE) == 0 || errno == EIO || errno == EFAULT, "mbind: %s", strerror(errno));
	syscall(SYS_move_pages, 0, SIZE / PAGE, pages, to, status, MPOL_MF_MOVE);
	if (first % 8 == 0 && (fd = open("/proc/sys/vm/compact_memory", O_WRONLY | O_CLOEXEC)) >= 0) {
		(void)!write(fd, "1", 1); /* root alone may */
		close(fd);
	}
}

const struct way way_mbind = { .name = "mbind", .kinds = PRIVATE | ARENA | SHARED | MEMFD, .whole = true, .start = start_mbind, .put = put_mbind };
