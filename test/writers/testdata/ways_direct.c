/* ways_direct.c - direct I/O: the kernel, or a device, writes to pages that it has pinned. */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "writers.h"

#define TAKEN "direct.dat" /* each version of all lanes, which stays for the next cells */
#define DIRECT (WHOLE_PAGES | HUGE_PAGES)

static int taken, given, written; /* a file of versions; one for what is written, also without O_DIRECT */

static off_t place(const struct lane *l)
{
	return (off_t)((l->version - 1) * (SIZE / 2) + l->at / 2);
}

static void make_versions(void)
{
	char path[] = "direct.XXXXXX";
	int fd = mkstemp(path);

	CHECK(fd >= 0, "%s: %s", path, strerror(errno));
	for (uint32_t v = 1; v <= VERSIONS; v++)
		for (unsigned i = 0; i < cell.lanes; i++) {
			struct lane l = { cell.mine[i].at, v };

			pattern_fill(scratch(), l.at, cell.length, v);
			CHECK(pwrite(fd, scratch(), cell.length, place(&l)) == (ssize_t)cell.length, "%s: %s", path, strerror(errno));
		}
	CHECK(fsync(fd) == 0 && rename(path, TAKEN) == 0, "%s: %s", path, strerror(errno));
	close(fd);
}

static void start_direct(void)
{
	char path[] = "given.XXXXXX";

	if (access(TAKEN, R_OK) != 0)
		make_versions();
	taken = open(TAKEN, O_RDONLY | O_DIRECT | O_CLOEXEC);
	given = mkostemp(path, O_DIRECT | O_CLOEXEC);
	written = open(path, O_RDONLY | O_CLOEXEC);
	unlink(path);
	if (taken < 0 || given < 0 || written < 0 || pread(taken, scratch(), PAGE / 2, 0) != (ssize_t)PAGE / 2 ||
	    pwrite(given, scratch(), PAGE / 2, PAGE / 2) != (ssize_t)PAGE / 2)
		skip("no direct I/O of %zu bytes in %s: %s", PAGE / 2, cell.dir, strerror(errno));
}

/* Lanes that are next to each other in a file too: one transfer if versions agree. */
static unsigned run(unsigned first, unsigned n, struct iovec *v)
{
	unsigned same = 0;

	for (; same < n && cell.mine[first + same].version == cell.mine[first].version; same++)
		v[same] = (struct iovec){ lane_at(&cell.mine[first + same]), cell.length };
	return same;
}

/* How a way reads from a file into lanes, or writes to one from them. */
typedef void transfer(const struct iovec *v, unsigned n, int fd, off_t at, bool writes);

static void put_by(transfer *by, unsigned first, unsigned n)
{
	struct iovec v[MAX_LANES];

	for (unsigned done = 0, same; done < n; done += same) {
		same = run(first + done, n - done, v);
		by(v, same, taken, place(&cell.mine[first + done]), false);
	}
}

static void get_by(transfer *by, unsigned first, unsigned n)
{
	struct iovec v[MAX_LANES];

	for (unsigned i = first; i < first + n; i++)
		v[i - first] = (struct iovec){ lane_at(&cell.mine[i]), cell.length };
	by(v, n, given, 0, true);
	/* without O_DIRECT: before Linux 6.3 a fork by the neighbour would lose what is being read (open(2)) */
	CHECK(pread(written, scratch(), n * cell.length, 0) == (ssize_t)(n * cell.length), "pread: %s", strerror(errno));
	for (unsigned i = 0; i < n; i++) /* is it the memory or the file? */
		pattern_check(lane_at(&cell.mine[first + i]), cell.mine[first + i].at, cell.length, cell.mine[first + i].version,
			      "memory that was written to a file");
	for (unsigned i = 0; i < n; i++)
		pattern_check(scratch() + i * cell.length, cell.mine[first + i].at, cell.length, cell.mine[first + i].version, "a direct write");
}

static void check_result(ssize_t got, unsigned n, const char *what)
{
	CHECK(got == (ssize_t)(n * cell.length), "%s of %zu bytes: %zd, %s", what, n * cell.length, got, strerror(got < 0 ? (int)-got : 0));
}

static void by_call(const struct iovec *v, unsigned n, int fd, off_t at, bool writes)
{
	ssize_t got = writes ? pwritev(fd, v, (int)n, at) : preadv(fd, v, (int)n, at);

	check_result(got < 0 ? -errno : got, n, writes ? "pwritev" : "preadv");
}

static void put_direct(unsigned first, unsigned n)
{
	put_by(by_call, first, n);
}

static void get_direct(unsigned first, unsigned n)
{
	get_by(by_call, first, n);
}

const struct way way_direct = { .name = "direct", .kinds = DIRECT, .pinned = true, .start = start_direct, .put = put_direct, .get = get_direct };

/* Asynchronous I/O, as of libaio. */
static aio_context_t aio;

static void start_aio(void)
{
	start_direct();
	if (syscall(SYS_io_setup, 4, &aio))
		skip("io_setup: %s", strerror(errno));
}

static void by_aio(const struct iovec *v, unsigned n, int fd, off_t at, bool writes)
{
	struct iocb cb = { .aio_fildes = (uint32_t)fd, .aio_lio_opcode = writes ? IOCB_CMD_PWRITEV : IOCB_CMD_PREADV, .aio_buf = (uintptr_t)v,
			   .aio_nbytes = n, .aio_offset = at }, *list = &cb;
	struct io_event event;
	long got;

	CHECK(syscall(SYS_io_submit, aio, 1, &list) == 1, "io_submit: %s", strerror(errno));
	while ((got = syscall(SYS_io_getevents, aio, 1, 1, &event, NULL)) < 0 && errno == EINTR)
		;
	CHECK(got == 1, "io_getevents: %s", strerror(errno));
	check_result((ssize_t)event.res, n, "libaio");
}

static void put_aio(unsigned first, unsigned n)
{
	put_by(by_aio, first, n);
}

static void get_aio(unsigned first, unsigned n)
{
	get_by(by_aio, first, n);
}

const struct way way_aio = { .name = "aio", .kinds = DIRECT, .pinned = true, .start = start_aio, .put = put_aio, .get = get_aio };

/* io_uring, without liburing. */
static struct uring {
	int fd;
	unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
} uring;

static char *ring(size_t size, off_t what)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, uring.fd, what);

	CHECK(p != MAP_FAILED, "mmap of an io_uring: %s", strerror(errno));
	madvise(p, size, MADV_DONTFORK); /* as liburing does */
	return p;
}

static void start_uring(void)
{
	struct io_uring_params p = { .flags = 0 };
	char *sq, *cq;

	start_direct();
	uring.fd = (int)syscall(SYS_io_uring_setup, MAX_LANES, &p);
	if (uring.fd < 0)
		skip("io_uring_setup: %s", strerror(errno));
	sq = ring(p.sq_off.array + p.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
	cq = ring(p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
	uring.sqes = (struct io_uring_sqe *)(void *)ring(p.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
	uring.sq_tail = (unsigned *)(void *)(sq + p.sq_off.tail);
	uring.sq_mask = (unsigned *)(void *)(sq + p.sq_off.ring_mask);
	uring.sq_array = (unsigned *)(void *)(sq + p.sq_off.array);
	uring.cq_head = (unsigned *)(void *)(cq + p.cq_off.head);
	uring.cq_tail = (unsigned *)(void *)(cq + p.cq_off.tail);
	uring.cq_mask = (unsigned *)(void *)(cq + p.cq_off.ring_mask);
	uring.cqes = (struct io_uring_cqe *)(void *)(cq + p.cq_off.cqes);
}

static void submit(const struct io_uring_sqe *requests, unsigned n)
{
	unsigned tail = *uring.sq_tail;
	long got;

	for (unsigned i = 0; i < n; i++, tail++) {
		uring.sqes[tail & *uring.sq_mask] = requests[i];
		uring.sq_array[tail & *uring.sq_mask] = tail & *uring.sq_mask;
	}
	__atomic_store_n(uring.sq_tail, tail, __ATOMIC_RELEASE);
	while ((got = syscall(SYS_io_uring_enter, uring.fd, n, 0, 0, NULL, 0)) < 0 && errno == EINTR)
		;
	CHECK(got == (long)n, "io_uring_enter: %ld of %u, %s", got, n, strerror(errno));
}

static void complete(unsigned n, unsigned lanes_each)
{
	while (n) {
		unsigned head = *uring.cq_head;

		if (head == __atomic_load_n(uring.cq_tail, __ATOMIC_ACQUIRE)) {
			CHECK(syscall(SYS_io_uring_enter, uring.fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) >= 0 || errno == EINTR,
			      "io_uring_enter: %s", strerror(errno));
			continue;
		}
		check_result(uring.cqes[head & *uring.cq_mask].res, lanes_each, "io_uring");
		__atomic_store_n(uring.cq_head, head + 1, __ATOMIC_RELEASE);
		n--;
	}
}

static void by_uring(const struct iovec *v, unsigned n, int fd, off_t at, bool writes)
{
	struct io_uring_sqe request = { .opcode = writes ? IORING_OP_WRITEV : IORING_OP_READV, .fd = fd, .off = (uint64_t)at,
					.addr = (uintptr_t)v, .len = n };

	submit(&request, 1);
	complete(1, n);
}

static void put_uring(unsigned first, unsigned n)
{
	put_by(by_uring, first, n);
}

static void get_uring(unsigned first, unsigned n)
{
	get_by(by_uring, first, n);
}

const struct way way_uring = { .name = "uring", .kinds = DIRECT, .pinned = true, .start = start_uring, .put = put_uring, .get = get_uring };

/* Its pages are pinned as long as the buffer is registered with io_uring. */
static void start_uring_fixed(void)
{
	struct iovec whole = { cell.at, SIZE };

	start_uring();
	if (syscall(SYS_io_uring_register, uring.fd, IORING_REGISTER_BUFFERS, &whole, 1))
		skip("IORING_REGISTER_BUFFERS: %s", strerror(errno));
}

static void by_uring_fixed(const struct iovec *v, unsigned n, int fd, off_t at, bool writes)
{
	struct io_uring_sqe requests[MAX_LANES] = { { .opcode = 0 } };

	for (unsigned i = 0; i < n; i++) {
		requests[i].opcode = writes ? IORING_OP_WRITE_FIXED : IORING_OP_READ_FIXED;
		requests[i].fd = fd;
		requests[i].off = (uint64_t)at + i * cell.length;
		requests[i].addr = (uintptr_t)v[i].iov_base;
		requests[i].len = (uint32_t)cell.length;
	}
	submit(requests, n);
	complete(n, 1);
}

static void put_uring_fixed(unsigned first, unsigned n)
{
	put_by(by_uring_fixed, first, n);
}

static void get_uring_fixed(unsigned first, unsigned n)
{
	get_by(by_uring_fixed, first, n);
}

const struct way way_uring_fixed = { .name = "uring-fixed", .kinds = DIRECT & ~FILE_SHARED, .start = start_uring_fixed, .put = put_uring_fixed,
				     .get = get_uring_fixed };
