/* ways_calls.c - stores of a thread, and system calls that copy into memory and out of it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "writers.h"

char *scratch(void)
{
	static char memory[SIZE] __attribute__((aligned(4096)));

	return memory;
}

void store_lanes(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++)
		pattern_fill(lane_at(&cell.mine[i]), cell.mine[i].at, cell.length, cell.mine[i].version);
}

const struct way way_store = { .name = "store", .kinds = ALL, .whole = true, .put = store_lanes };

/* The file that is mapped: another mapping of it, and pwrite(2). */
static char *other;

static void start_alias(void)
{
	other = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, cell.file, 0);
	CHECK(other != MAP_FAILED, "mmap: %s", strerror(errno));
}

static void put_alias(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++) {
		const struct lane *l = &cell.mine[i];

		if (i & 1) {
			pattern_fill(other + l->at, l->at, cell.length, l->version);
			continue;
		}
		pattern_fill(scratch(), l->at, cell.length, l->version);
		CHECK(pwrite(cell.file, scratch(), cell.length, (off_t)l->at) == (ssize_t)cell.length, "pwrite: %s", strerror(errno));
	}
}

static void get_alias(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++) {
		const struct lane *l = &cell.mine[i];

		CHECK(pread(cell.file, scratch(), cell.length, (off_t)l->at) == (ssize_t)cell.length, "pread: %s", strerror(errno));
		pattern_check(scratch(), l->at, cell.length, l->version, "pread of the file");
		pattern_check(other + l->at, l->at, cell.length, l->version, "another mapping of the file");
	}
}

const struct way way_alias = { .name = "alias", .kinds = MEMFD | FILE_SHARED, .start = start_alias, .put = put_alias, .get = get_alias };

/* A pipe's or a socket's two ends. */
static int ends[2];

static void start_pipe(void)
{
	CHECK(pipe(ends) == 0, "pipe: %s", strerror(errno));
}

static void start_socket(void)
{
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair: %s", strerror(errno));
}

static void send_pattern(const struct lane *l)
{
	pattern_fill(scratch(), l->at, cell.length, l->version);
	CHECK(write(ends[1], scratch(), cell.length) == (ssize_t)cell.length, "write: %s", strerror(errno));
}

static void check_received(const struct lane *l, const char *what)
{
	memset(scratch(), 0, cell.length);
	CHECK(read(ends[0], scratch(), cell.length) == (ssize_t)cell.length, "read: %s", strerror(errno));
	pattern_check(scratch(), l->at, cell.length, l->version, what);
}

static void put_read(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++) {
		send_pattern(&cell.mine[i]);
		ssize_t got = read(ends[0], lane_at(&cell.mine[i]), cell.length);
		CHECK(got == (ssize_t)cell.length, "read: %zd, %s", got, strerror(errno));
	}
}

static void get_write(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++) {
		ssize_t put = write(ends[1], lane_at(&cell.mine[i]), cell.length);
		CHECK(put == (ssize_t)cell.length, "write: %zd, %s", put, strerror(errno));
		check_received(&cell.mine[i], "write");
	}
}

const struct way way_read = { .name = "read", .kinds = ALL, .start = start_pipe, .put = put_read, .get = get_write };

static struct iovec lane_part(unsigned i, size_t at, size_t length)
{
	return (struct iovec){ lane_at(&cell.mine[i]) + at, length };
}

/* A lane in three parts. */
static void parts_of(unsigned i, struct iovec v[3])
{
	v[0] = lane_part(i, 0, 8);
	v[1] = lane_part(i, 8, cell.length / 2);
	v[2] = lane_part(i, 8 + cell.length / 2, cell.length / 2 - 8);
}

static void put_readv(unsigned first, unsigned n)
{
	struct iovec v[3];

	for (unsigned i = first; i < first + n; i++) {
		send_pattern(&cell.mine[i]);
		parts_of(i, v);
		ssize_t got = readv(ends[0], v, 3);
		CHECK(got == (ssize_t)cell.length, "readv: %zd, %s", got, strerror(errno));
	}
}

static void get_writev(unsigned first, unsigned n)
{
	struct iovec v[3];

	for (unsigned i = first; i < first + n; i++) {
		parts_of(i, v);
		ssize_t put = writev(ends[1], v, 3);
		CHECK(put == (ssize_t)cell.length, "writev: %zd, %s", put, strerror(errno));
		check_received(&cell.mine[i], "writev");
	}
}

const struct way way_readv = { .name = "readv", .kinds = ALL, .start = start_pipe, .put = put_readv, .get = get_writev };

static void put_recv(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++) {
		send_pattern(&cell.mine[i]);
		ssize_t got = recv(ends[0], lane_at(&cell.mine[i]), cell.length, MSG_WAITALL);
		CHECK(got == (ssize_t)cell.length, "recv: %zd, %s", got, strerror(errno));
	}
}

static void get_send(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++) {
		ssize_t put = send(ends[1], lane_at(&cell.mine[i]), cell.length, 0);
		CHECK(put == (ssize_t)cell.length, "send: %zd, %s", put, strerror(errno));
		check_received(&cell.mine[i], "send");
	}
}

const struct way way_recv = { .name = "recv", .kinds = ALL, .start = start_socket, .put = put_recv, .get = get_send };

/* vmsplice(2) out of a pipe copies; into it, the pipe refers to the page. */
static void splice_lane(int end, unsigned i, const char *what)
{
	struct iovec v = lane_part(i, 0, cell.length);

	ssize_t n = vmsplice(end, &v, 1, 0);
	CHECK(n == (ssize_t)cell.length, "vmsplice %s: %zd, %s", what, n, strerror(errno));
}

static void put_vmsplice(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++) {
		send_pattern(&cell.mine[i]);
		splice_lane(ends[0], i, "out of a pipe");
	}
}

static void refer_vmsplice(unsigned i)
{
	splice_lane(ends[1], i, "into a pipe");
}

static void changed_vmsplice(unsigned i)
{
	check_received(&cell.mine[i], "a page in a pipe");
}

static void get_vmsplice(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++) {
		refer_vmsplice(i);
		cell.mine[i].version = next_version(cell.mine[i].version);
		store_lanes(i, 1);
		changed_vmsplice(i);
	}
}

const struct way way_vmsplice = { .name = "vmsplice", .kinds = ALL, .unforked = true, .start = start_pipe, .put = put_vmsplice,
				  .get = get_vmsplice, .refer = refer_vmsplice, .changed = changed_vmsplice };
