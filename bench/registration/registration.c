// registration - the time of ibv_reg_mr and ibv_dereg_mr, compared with a copy of the same memory, with mlock(2)
// and munlock(2), and, for untouched memory, with the page faults for as much memory.
//
// 	urdma exec -- build/registration [BYTES]
//
// Prints one result per line with its name: medians in µs for one page that was written to before; ms for BYTES (1
// GiB) of memory that was written to, and for copying them to other memory of the process; for a second
// registration of the same pages while they are registered, of one page and of all; ms for BYTES of untouched
// memory: registered, entered (MADV_POPULATE_WRITE, or a write to each page), locked and unlocked. mib: medians in
// µs of the same for 1 MiB. born: ms for BYTES of memory of urdma_alloc, which is shared from the start. pin is
// mlock of untouched memory and one copy of as much.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { page = 4096, mib = 1 << 20, rounds = 501 };

static const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static char *untouched(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		fail("mmap");
	return p;
}

static char *touched(size_t bytes)
{
	char *p = untouched(bytes);
	for (size_t i = 0; i < bytes; i += page)
		p[i] = (char)(i / page + 1);
	return p;
}

// timed_reg and timed_dereg return the duration of the call in µs.
static double timed_reg(struct ibv_pd *pd, void *at, size_t bytes, struct ibv_mr **mr)
{
	double start = now_us();
	*mr = ibv_reg_mr(pd, at, bytes, rights);
	if (!*mr)
		fail("ibv_reg_mr");
	return now_us() - start;
}

static double timed_dereg(struct ibv_mr *mr)
{
	double start = now_us();
	if (ibv_dereg_mr(mr))
		fail("ibv_dereg_mr");
	return now_us() - start;
}

// timed_lock returns the duration of mlock(2) for untouched memory in µs, and sets *unlock to the duration of
// munlock(2). It locks 4 MiB at a time, which RLIMIT_MEMLOCK usually allows an ordinary user.
static double timed_lock(size_t bytes, double *unlock)
{
	const size_t most = 4 << 20;
	char *memory = untouched(bytes);
	double lock = *unlock = 0;
	for (size_t at = 0, n; at < bytes; at += n) {
		n = bytes - at < most ? bytes - at : most;
		double start = now_us();
		if (mlock(memory + at, n))
			fail("mlock (RLIMIT_MEMLOCK must be 4 MiB at least)");
		double locked = now_us();
		if (munlock(memory + at, n))
			fail("munlock");
		lock += locked - start;
		*unlock += now_us() - locked;
	}
	munmap(memory, bytes);
	return lock;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *v)
{
	qsort(v, rounds, sizeof *v, ascending);
	return v[rounds / 2];
}

// pages registers one new page after the other.
static void pages(struct ibv_pd *pd)
{
	static double reg[rounds], again[rounds], dereg[rounds], pin[rounds], unlock[rounds];
	char *memory = touched((size_t)rounds * 2 * page), *other = touched(page);
	for (int i = 0; i < rounds; i++) {
		struct ibv_mr *mr, *second;
		double start = now_us();
		memcpy(other, memory + (size_t)i * 2 * page, page);
		double copy = now_us() - start;
		pin[i] = copy + timed_lock(page, &unlock[i]);
		reg[i] = timed_reg(pd, memory + (size_t)i * 2 * page, page, &mr);
		again[i] = timed_reg(pd, memory + (size_t)i * 2 * page, page, &second);
		dereg[i] = timed_dereg(second);
		timed_dereg(mr);
	}
	printf("page.reg %.3f\npage.again %.3f\npage.dereg %.3f\npage.pin %.3f\npage.unlock %.3f\n",
	       median(reg), median(again), median(dereg), median(pin), median(unlock));
}

// mebibytes registers one new MiB after the other.
static void mebibytes(struct ibv_pd *pd)
{
	static double reg[rounds], dereg[rounds], pin[rounds], unlock[rounds];
	char *other = touched(mib);
	for (int i = 0; i < rounds; i++) {
		struct ibv_mr *mr;
		char *memory = touched(mib);
		double start = now_us();
		memcpy(other, memory, mib);
		double copy = now_us() - start;
		pin[i] = copy + timed_lock(mib, &unlock[i]);
		reg[i] = timed_reg(pd, memory, mib, &mr);
		dereg[i] = timed_dereg(mr);
		munmap(memory, mib);
	}
	munmap(other, mib);
	printf("mib.reg %.3f\nmib.dereg %.3f\nmib.pin %.3f\nmib.unlock %.3f\n", median(reg), median(dereg), median(pin),
	       median(unlock));
}

static void all(struct ibv_pd *pd, size_t bytes)
{
	char *memory = touched(bytes), *other = touched(bytes);
	double start = now_us();
	memcpy(other, memory, bytes);
	double copy = now_us() - start;
	munmap(other, bytes);
	double unlock, lock = timed_lock(bytes, &unlock);
	struct ibv_mr *mr, *second;
	double reg = timed_reg(pd, memory, bytes, &mr);
	double again = timed_reg(pd, memory, bytes, &second);
	timed_dereg(second);
	double dereg = timed_dereg(mr);
	printf("all.copy %.3f\nall.reg %.3f\nall.again %.3f\nall.dereg %.3f\n", copy / 1e3, reg / 1e3, again, dereg / 1e3);
	printf("all.lock %.3f\nall.pin %.3f\nall.unlock %.3f\n", lock / 1e3, (lock + copy) / 1e3, unlock / 1e3);
	for (size_t i = 0; i < bytes; i += page)
		if (memory[i] != (char)(i / page + 1)) {
			fprintf(stderr, "page %zu changed while it was registered\n", i / page);
			exit(1);
		}
	munmap(memory, bytes);
}

// timed_enter returns the duration of the page faults for new memory, in µs.
static double timed_enter(size_t bytes)
{
	char *memory = untouched(bytes);
	double start = now_us();
	if (madvise(memory, bytes, MADV_POPULATE_WRITE))
		for (size_t i = 0; i < bytes; i += page)
			((volatile char *)memory)[i] = 0;
	double took = now_us() - start;
	munmap(memory, bytes);
	return took;
}

// warm lets the host of a virtual machine allocate the memory: the first use of a page there takes several times as
// long as all that is measured here. Huge pages come from another part of the memory.
static void warm(size_t bytes)
{
	timed_enter(3 * bytes);
	char *memory = untouched(3 * bytes);
	madvise(memory, 3 * bytes, MADV_HUGEPAGE);
	memset(memory, 1, 3 * bytes);
	munmap(memory, 3 * bytes);
}

static void fresh(struct ibv_pd *pd, size_t bytes)
{
	double enter = timed_enter(bytes);
	char *memory = untouched(bytes);
	struct ibv_mr *mr;
	double reg = timed_reg(pd, memory, bytes, &mr);
	timed_dereg(mr);
	munmap(memory, bytes);
	printf("fresh.enter %.3f\nfresh.reg %.3f\n", enter / 1e3, reg / 1e3);
}

// born registers memory that is shared from the start.
static void born(struct ibv_pd *pd, size_t bytes)
{
	void *(*alloc)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "urdma_alloc");
	if (!alloc)
		return;  // the library is not urdma's
	double start = now_us();
	char *memory = alloc(bytes);
	double took = now_us() - start;
	if (!memory)
		fail("urdma_alloc");
	memset(memory, 1, bytes);
	struct ibv_mr *mr;
	double reg = timed_reg(pd, memory, bytes, &mr);
	double dereg = timed_dereg(mr);
	printf("born.alloc %.3f\nborn.reg %.3f\nborn.dereg %.3f\n", took / 1e3, reg / 1e3, dereg / 1e3);
}

int main(int argc, char **argv)
{
	size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 0) : (size_t)1 << 30;
	struct ibv_device **list = ibv_get_device_list(NULL);
	if (!list || !*list) {
		fprintf(stderr, "there are no RDMA devices here\n");
		return 1;
	}
	struct ibv_context *context = ibv_open_device(*list);
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	if (!pd)
		fail("ibv_alloc_pd");
	pages(pd);
	mebibytes(pd);
	warm(bytes);
	all(pd, bytes);
	fresh(pd, bytes);
	born(pd, bytes);
	return 0;
}
