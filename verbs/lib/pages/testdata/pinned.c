/* Pages that the kernel holds by themselves, whatever is mapped at their
 * address: io_uring's registered buffers. What it reads into them must be seen
 * by the program, registered with us or not. */
#include <errno.h>
#include <grp.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "torture.h"

struct uring {
	int fd;
	char *sq, *cq;
	struct io_uring_sqe *sqes;
	struct io_uring_params p;
};

static bool uring_open(struct uring *u)
{
	memset(u, 0, sizeof *u);
	u->fd = (int)syscall(SYS_io_uring_setup, 4, &u->p);
	if (u->fd < 0)
		return false;
	u->sq = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, u->fd,
	             IORING_OFF_SQ_RING);
	u->cq = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, u->fd,
	             IORING_OFF_CQ_RING);
	u->sqes = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, u->fd,
	               IORING_OFF_SQES);
	CHECK(u->sq != MAP_FAILED && u->cq != MAP_FAILED &&
	      u->sqes != MAP_FAILED, "io_uring's rings: %s", strerror(errno));
	return true;
}

static bool uring_register(struct uring *u, void *p, size_t n)
{
	struct iovec v = { p, n };
	return syscall(SYS_io_uring_register, u->fd, IORING_REGISTER_BUFFERS, &v,
	               1) == 0;
}

static uint32_t *at(char *ring, uint32_t offset)
{
	return (uint32_t *)(void *)(ring + offset);
}

/* Reads file's first n bytes into the registered buffer at p. */
static void read_fixed(struct uring *u, int file, void *p, uint32_t n)
{
	uint32_t tail = *at(u->sq, u->p.sq_off.tail), head, i;
	i = tail & *at(u->sq, u->p.sq_off.ring_mask);
	u->sqes[i] = (struct io_uring_sqe){ .opcode = IORING_OP_READ_FIXED,
		                            .fd = file, .len = n,
		                            .addr = (uint64_t)p };
	at(u->sq, u->p.sq_off.array)[i] = i;
	__atomic_store_n(at(u->sq, u->p.sq_off.tail), tail + 1, __ATOMIC_RELEASE);
	CHECK(syscall(SYS_io_uring_enter, u->fd, 1, 1, IORING_ENTER_GETEVENTS,
	              NULL, 0) == 1, "io_uring_enter: %s", strerror(errno));
	head = *at(u->cq, u->p.cq_off.head);
	const struct io_uring_cqe *e = (const void *)(u->cq + u->p.cq_off.cqes);
	e += head & *at(u->cq, u->p.cq_off.ring_mask);
	CHECK(e->res == (int)n, "read %d of %u bytes", e->res, n);
	__atomic_store_n(at(u->cq, u->p.cq_off.head), head + 1, __ATOMIC_RELEASE);
}

static void reads(struct uring *u, unsigned char *p, int value)
{
	unsigned char content[2 * PAGE];
	int file = memfd_create("content", 0);
	memset(content, value, sizeof content);
	CHECK(file >= 0 && write(file, content, sizeof content) == sizeof content,
	      "content");
	read_fixed(u, file, p, sizeof content);
	for (size_t i = 0; i < sizeof content; i++)
		CHECK(p[i] == value, "byte %zu is %#x, and %#x was read", i, p[i],
		      value);
	close(file);
}

/* Pinned, then registered with us. */
static void pinned_first(void)
{
	struct uring u;
	unsigned char *p = anon(2 * PAGE);
	memset(p, 1, 2 * PAGE);
	CHECK(uring_open(&u) && uring_register(&u, p, 2 * PAGE), "io_uring");
	reads(&u, p, 2);
	struct urdma_region r = must_register(p, 2 * PAGE);
	reads(&u, p, 3);
	must_deregister(&r);
	reads(&u, p, 4);
	close(u.fd);
}

/* Registered with us, then pinned: such pages are given back only when they
 * are pinned no more. */
static void pinned_later(void)
{
	struct uring u;
	unsigned char *p = anon(2 * PAGE), *other = anon(PAGE);
	memset(p, 1, 2 * PAGE);
	struct urdma_region r = must_share(p, 2 * PAGE), q;
	CHECK(uring_open(&u) && uring_register(&u, p, 2 * PAGE), "io_uring");
	reads(&u, p, 2);
	must_deregister(&r);
	reads(&u, p, 3);
	CHECK(syscall(SYS_io_uring_register, u.fd, IORING_UNREGISTER_BUFFERS,
	              NULL, 0) == 0, "IORING_UNREGISTER_BUFFERS");
	close(u.fd);
	for (int i = 0; i < 6000 && converted() > 0; i++) {
		q = must_register(other, PAGE);
		must_deregister(&q);
		usleep(10000);
	}
	CHECK(converted() == 0, "%lu pages left", (long)converted());
	for (size_t i = 0; i < 2 * PAGE; i++)
		CHECK(p[i] == 3, "given back, byte %zu", i);
}

/* What the kernel says of pinned memory comes behind the groups of a process. */
static bool join_many_groups(void)
{
	enum { GROUPS = 1500 };
	gid_t groups[GROUPS];
	for (unsigned i = 0; i < GROUPS; i++)
		groups[i] = 1000000000 + i;
	return setgroups(GROUPS, groups) == 0;
}

int test_pinned(void)
{
	struct uring u;
	if (!uring_open(&u)) {
		printf("no io_uring: %s\n", strerror(errno));
		return SKIP_STATUS;
	}
	close(u.fd);
	usleep(100000); /* its end is asynchronous */
	pinned_later();
	pinned_first();
	if (join_many_groups())
		pinned_first();
	else
		printf("setgroups: %s: not tested\n", strerror(errno));
	return 0;
}
