/* Results of registering memory, the same as ibv_reg_mr's, and the path to each region. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "torture.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102 /* Linux 6.13 */
#endif

static char in_bss[3 * PAGE];
static char in_data[3 * PAGE] = { 1, 2, 3 };
static const char in_text[2 * PAGE] = { 1 };

/* Memory outside the arena is neither changed nor moved. */
static void other_memory(void)
{
	char on_stack[100] = { 7 }, *in_heap = malloc(300), *p = anon(4 * PAGE);
	long before = mappings_of_memfd();
	must_fall_back(on_stack, sizeof on_stack);
	must_fall_back(in_heap, 300);
	must_fall_back(in_bss + 5, sizeof in_bss - 9);
	must_fall_back(in_data, sizeof in_data);
	must_fall_back(p + 1, 4 * PAGE - 2);
	must_refuse((void *)(uintptr_t)in_text, sizeof in_text, 0, 0, "text");
	must_refuse((void *)(uintptr_t)in_text, sizeof in_text, URDMA_PAGES_WRITE, EFAULT, "text to be written");
	CHECK(mappings_of_memfd() == before, "something became shared");
	CHECK(in_data[2] == 3 && on_stack[0] == 7, "content");
	munmap(p, 4 * PAGE);
	free(in_heap);
}

static void holes_and_rights(void)
{
	char *p = anon(8 * PAGE);
	must_refuse(p, 0, 0, EINVAL, "no bytes");
	must_refuse(p, SIZE_MAX, 0, EINVAL, "a range that wraps");
	must_refuse((void *)(uintptr_t)-PAGE, PAGE - 1, 0, EINVAL, "its last page wraps");
	must_refuse((void *)(uintptr_t)(UINT64_C(1) << 46), PAGE, 0, EFAULT, "nothing there");
	munmap(p + 4 * PAGE, PAGE);
	must_refuse(p, 8 * PAGE, 0, EFAULT, "a hole");
	must_refuse(p + 4 * PAGE - 1, 2, 0, EFAULT, "a hole behind the first byte");
	must_refuse(p, 4 * PAGE, 0, 0, "before the hole");
	mprotect(p, PAGE, PROT_READ);
	must_refuse(p, 2 * PAGE, URDMA_PAGES_WRITE, EFAULT, "not writable");
	must_refuse(p, 2 * PAGE, 0, 0, "to be read");
	mprotect(p, PAGE, PROT_NONE);
	must_refuse(p, 2 * PAGE, 0, EFAULT, "not readable");
	munmap(p, 8 * PAGE);
}

static void guard_region(void)
{
	char *p = anon(4 * PAGE);
	memset(p, 1, 4 * PAGE);
	if (madvise(p + 2 * PAGE, PAGE, MADV_GUARD_INSTALL)) {
		printf("no guard regions: %s\n", strerror(errno));
		return;
	}
	must_refuse(p, 4 * PAGE, URDMA_PAGES_WRITE, EFAULT, "a guard region");
	must_refuse(p, 2 * PAGE, URDMA_PAGES_WRITE, 0, "before it");
	munmap(p, 4 * PAGE);
}

/* A private mapping of a file that was truncated; memory of a device. */
static void not_to_be_had(void)
{
	int file = memfd_create("short", 0), zero = open("/dev/zero", O_RDWR);
	CHECK(file >= 0 && ftruncate(file, 4 * PAGE) == 0, "file");
	char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	strcpy(p, "kept");
	CHECK(ftruncate(file, PAGE) == 0, "shorter");
	must_refuse(p, 4 * PAGE, 0, EFAULT, "behind the end of a file");
	must_fall_back(p, PAGE);
	CHECK(!strcmp(p, "kept"), "content");
	munmap(p, 4 * PAGE);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, zero, 0);
	must_fall_back(p, PAGE);
	close(file);
	close(zero);
}

/* The file is reported if the program maps one shared. */
static void files(void)
{
	struct urdma_region r;
	int file = memfd_create("file", 0);
	CHECK(file >= 0 && ftruncate(file, 8 * PAGE) == 0, "file");
	char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 2 * PAGE);
	r = must_register(p + 10, 3 * PAGE);
	CHECK(r.path == URDMA_PATH_FALLBACK && r.shared.inode && r.shared.offset == 2 * PAGE + 10, "offset %lu",
		(long)r.shared.offset);
	CHECK(mmap(p + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED, "mmap");
	r = must_register(p, 4 * PAGE);
	CHECK(!r.shared.inode, "two places of a file");
	munmap(p, 4 * PAGE);
	close(file);
}

/* The arena's memory is shared, unless the program has mapped something else there. */
static void arena(void)
{
	char *p = urdma_alloc(8 * PAGE), *q = urdma_alloc(PAGE);
	struct urdma_region r = must_share(p + 7, 3 * PAGE);
	char *view = daemon_view(&r);
	memset(view, 9, 100);
	CHECK(p[7] == 9 && p[106] == 9 && !p[107], "the view");
	drop_view(view, &r);
	must_share(p, 8 * PAGE);
	mprotect(p + PAGE, PAGE, PROT_READ);
	must_refuse(p, 8 * PAGE, URDMA_PAGES_WRITE, EFAULT, "not writable");
	mprotect(p + PAGE, PAGE, PROT_READ | PROT_WRITE);
	CHECK(mmap(p + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED,
		"mmap");
	must_fall_back(p, 8 * PAGE);
	must_share(p, 2 * PAGE);
	CHECK(mremap(q, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p + 2 * PAGE) == p + 2 * PAGE, "mremap");
	must_fall_back(p + 2 * PAGE, PAGE);
	must_refuse(q, PAGE, 0, EFAULT, "moved away");
}

int test_answers(void)
{
	for (int i = 0; i < 2; i++) {
		other_memory();
		holes_and_rights();
		guard_region();
		not_to_be_had();
		files();
		if (i == 0)
			arena();
	}
	return 0;
}

/* No descriptor is left to open /proc: only the kernel's result is used. */
int test_no_proc(void)
{
	char *p = urdma_alloc(PAGE), *q = anon(4 * PAGE);
	munmap(q + 2 * PAGE, PAGE);
	const struct rlimit none = { 0, 0 };
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0, "setrlimit");
	must_share(p, PAGE);
	must_fall_back(q, 2 * PAGE);
	must_refuse(q, 4 * PAGE, 0, ENOMEM, "a hole");
	return 0;
}
