/* Memory that can't be read: a private mapping of a file that has become shorter.
 * To register it fails halfway, with any number of mappings left to the process. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "torture.h"

enum { MOST_MAPPINGS = 200000, STEPS = 40 };

static long most_mappings(void)
{
	long n = 0;
	FILE *f = fopen("/proc/sys/vm/max_map_count", "r");
	if (f && fscanf(f, "%ld", &n) != 1)
		n = 0;
	if (f)
		fclose(f);
	return n;
}

/* Of four pages, of which the file has one. */
static char *cut_short(void)
{
	int file = memfd_create("short", 0);
	CHECK(file >= 0 && ftruncate(file, 4 * PAGE) == 0, "file");
	char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	CHECK(p != MAP_FAILED, "mapping of the file");
	strcpy(p, "kept");
	CHECK(ftruncate(file, PAGE) == 0 && close(file) == 0, "shorter");
	return p;
}

/* Every second page of a range becomes a mapping of its own, until there may be
 * no more. */
static long use_up(char *p, long pages)
{
	long i = 1;
	while (i < pages && mprotect(p + i * PAGE, PAGE, PROT_READ) == 0)
		i += 2;
	CHECK(i < pages, "no limit met");
	return i;
}

int test_unreadable(void)
{
	long most = most_mappings();
	if (most == 0 || most > MOST_MAPPINGS) {
		printf("%ld mappings a process: too many to use up\n", most);
		return SKIP_STATUS;
	}
	char *own = anon(PAGE), *p = cut_short();
	char *many = mmap(NULL, (size_t)(most + 2) * PAGE, PROT_NONE,
	                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(many != MAP_FAILED, "many");
	struct urdma_region r = must_share(own, PAGE);
	alarm(60);
	for (int odd = 0; odd < 2; odd++) {
		long at = use_up(many, most + 2);
		if (odd) /* of two neighbours with different rights: one less */
			CHECK(mprotect(many, PAGE, PROT_READ) == 0, "odd");
		for (int i = 0; i < STEPS; i++, at -= 2) {
			struct urdma_region q = must_register(p, 4 * PAGE);
			CHECK(q.path == URDMA_PATH_FALLBACK, "converted");
			CHECK(strcmp(p, "kept") == 0, "the first page is lost");
			must_deregister(&q);
			CHECK(mprotect(many + (at - 2) * PAGE, PAGE, PROT_NONE) == 0, "fewer");
		}
		CHECK(mprotect(many, (size_t)(most + 2) * PAGE, PROT_NONE) == 0, "none");
	}
	must_deregister(&r);
	CHECK(converted() == 0, "pages left");
	return 0;
}
