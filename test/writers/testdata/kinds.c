/* kinds.c - the kinds of memory. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "writers.h"

#define HUGE_PAGE ((size_t)2 << 20)

/* Of the size of huge pages, where one can lie. */
static char *place_of(size_t size)
{
	void *p;

	if (size < HUGE_PAGE)
		return NULL;
	p = mmap(NULL, size + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED, "mmap: %s", strerror(errno));
	return (char *)(((uintptr_t)p + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
}

static char *mapped(size_t size, int flags, int fd)
{
	char *place = place_of(size);
	void *p = mmap(place, size, PROT_READ | PROT_WRITE, flags | (place ? MAP_FIXED : 0), fd, 0);

	CHECK(p != MAP_FAILED, "mmap: %s", strerror(errno));
	return p;
}

static char *make_private(size_t size)
{
	return mapped(size, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static char *make_heap(size_t size)
{
	char *p = malloc(size + 64);

	CHECK(p, "malloc");
	return p + 16; /* beside what malloc keeps there */
}

static char *make_aligned(size_t size)
{
	void *p;

	CHECK(posix_memalign(&p, PAGE, size) == 0, "posix_memalign");
	return p;
}

static char *make_static(size_t size)
{
	static char memory[SIZE + 64];

	CHECK(size <= SIZE, "static memory of %zu bytes", size);
	return memory + 24;
}

static char *make_arena(size_t size)
{
	void *(*alloc)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "urdma_alloc");
	char *p;

	if (!alloc)
		skip("no urdma_alloc");
	p = alloc(size);
	CHECK(p, "urdma_alloc: %s", strerror(errno));
	return p;
}

static char *make_shared(size_t size)
{
	return mapped(size, MAP_SHARED | MAP_ANONYMOUS, -1);
}

static char *make_memfd(size_t size)
{
	cell.file = memfd_create("writers", MFD_CLOEXEC);
	CHECK(cell.file >= 0 && ftruncate(cell.file, (off_t)size) == 0, "memfd_create: %s", strerror(errno));
	return mapped(size, MAP_SHARED, cell.file);
}

static char *make_file(size_t size, int flags)
{
	char path[] = "mapped.XXXXXX";

	cell.file = mkstemp(path);
	CHECK(cell.file >= 0 && ftruncate(cell.file, (off_t)size) == 0, "%s: %s", path, strerror(errno));
	unlink(path);
	return mapped(size, flags, cell.file);
}

static char *make_file_shared(size_t size)
{
	return make_file(size, MAP_SHARED);
}

static char *make_file_private(size_t size)
{
	char *p = make_file(size, MAP_PRIVATE);

	close(cell.file);
	cell.file = -1;
	return p;
}

static char *make_huge(size_t size)
{
	size_t whole = (size + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
	void *p = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (p == MAP_FAILED)
		skip("no huge page (vm.nr_hugepages): %s", strerror(errno));
	return p;
}

const struct kind kinds[] = {
	{ "private", PRIVATE, make_private },
	{ "malloc", HEAP, make_heap },
	{ "aligned", ALIGNED, make_aligned },
	{ "static", STATIC, make_static },
	{ "urdma_alloc", ARENA, make_arena },
	{ "shared", SHARED, make_shared },
	{ "memfd", MEMFD, make_memfd },
	{ "file-shared", FILE_SHARED, make_file_shared },
	{ "file-private", FILE_PRIVATE, make_file_private },
	{ "hugetlb", HUGE_PAGES, make_huge },
	{ NULL, 0, NULL },
};
