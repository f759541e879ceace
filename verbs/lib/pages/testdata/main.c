#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture.h"

struct options opt;

/* splitmix64 */
uint64_t rnd(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

uint64_t below(uint64_t *state, uint64_t n)
{
	return rnd(state) % n;
}

struct urdma_region must_register(void *p, size_t n)
{
	struct urdma_region r;
	int err = urdma_pages_register(p, n, URDMA_PAGES_WRITE, &r);
	CHECK(err == 0, "register %p+%zu: %s", p, n, strerror(err));
	return r;
}

struct urdma_region must_share(void *p, size_t n)
{
	struct urdma_region r = must_register(p, n);
	CHECK(r.path == URDMA_PATH_SHARED && !r.why && r.file_offset == (uintptr_t)p, "%p+%zu fell back: %s", p, n, r.why);
	return r;
}

void must_fall_back(void *p, size_t n)
{
	struct urdma_region r = must_register(p, n);
	CHECK(r.path == URDMA_PATH_FALLBACK && r.why, "%p+%zu is shared", p, n);
}

void must_refuse(void *p, size_t n, int flags, int want, const char *what)
{
	struct urdma_region r;
	int err = urdma_pages_register(p, n, flags, &r);
	CHECK(err == want, "%s: %s, not %s", what, strerror(err), strerror(want));
}

void *anon(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
	               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED, "mmap of %zu", n);
	return p;
}

static uint64_t view_len(const struct urdma_region *r)
{
	return r->file_offset % PAGE + r->length;
}

void *daemon_view(const struct urdma_region *r)
{
	uint64_t skip = r->file_offset % PAGE;
	char *p = mmap(NULL, view_len(r), PROT_READ | PROT_WRITE, MAP_SHARED,
	               urdma_pages_file(), (off_t)(r->file_offset - skip));
	CHECK(p != MAP_FAILED, "daemon's mapping");
	return p + skip;
}

void drop_view(void *view, const struct urdma_region *r)
{
	munmap((char *)view - r->file_offset % PAGE, view_len(r));
}

void fill(void *p, size_t n, unsigned salt)
{
	for (size_t i = 0; i < n; i++)
		((unsigned char *)p)[i] = (unsigned char)(i / 61 * 7 + salt);
}

void check(const void *p, size_t n, unsigned salt, const char *what)
{
	for (size_t i = 0; i < n; i++)
		CHECK(((const unsigned char *)p)[i] == (unsigned char)(i / 61 * 7 + salt), "%s: byte %zu", what, i);
}

void check_zero(const void *p, size_t n, const char *what)
{
	for (size_t i = 0; i < n; i++)
		CHECK(((const unsigned char *)p)[i] == 0, "%s: byte %zu", what, i);
}

void wait_ok(pid_t pid, const char *what)
{
	int status = 0;
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid, "%s", what);
	CHECK(status == 0, "%s: child ended with %#x", what, status);
}

bool is_mapped(const void *p)
{
	unsigned char v;
	return mincore((void *)((uintptr_t)p & ~(uintptr_t)(PAGE - 1)), PAGE, &v) == 0;
}

long mappings_of_memfd(void)
{
	char line[512];
	long n = 0;
	FILE *f = fopen("/proc/self/maps", "r");
	CHECK(f, "/proc/self/maps");
	while (fgets(line, sizeof line, f))
		n += strstr(line, "/memfd:urdma") != NULL;
	fclose(f);
	return n;
}

long file_kib(void)
{
	struct stat st;
	return fstat(urdma_pages_file(), &st) == 0 ? st.st_blocks / 2 : 0;
}

void *wait_for_end(void *arg)
{
	pause();
	return arg;
}

static const struct {
	const char *name;
	int (*run)(void);
} tests[] = {
	{ "answers", test_answers }, { "no_proc", test_no_proc },
	{ "allocated", test_allocated }, { "model", test_model },
	{ "pieces", test_pieces }, { "threads", test_threads },
	{ "advice", test_advice },
	{ "forked", test_forked }, { "fork_threads", test_fork_threads },
	{ "fork_kinds", test_fork_kinds }, { "fork_ends", test_fork_ends },
	{ "fork_descriptors", test_fork_descriptors },
	{ "fork_stacks", test_fork_stacks }, { "fork_signal", test_fork_signal },
	{ "fork_mapped", test_fork_mapped },
};

/* torture TEST [ROUNDS [SEED]] */
int main(int argc, char **argv)
{
	opt.rounds = argc > 2 ? atol(argv[2]) : 0;
	opt.seed = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
	alarm(110);
	for (size_t i = 0; argc > 1 && i < sizeof tests / sizeof *tests; i++)
		if (strcmp(tests[i].name, argv[1]) == 0)
			return tests[i].run();
	fprintf(stderr, "usage: torture TEST [ROUNDS [SEED]]; no test %s\n",
	        argc > 1 ? argv[1] : "given");
	return 2;
}
