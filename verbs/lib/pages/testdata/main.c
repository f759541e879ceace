#include <dirent.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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
	CHECK(r.path == URDMA_PATH_SHARED, "%p+%zu fell back: %s", p, n, r.why);
	return r;
}

void must_deregister(const struct urdma_region *r)
{
	int err = urdma_pages_deregister(r);
	CHECK(err == 0, "deregister %#lx+%#lx: %s", (long)r->addr,
	      (long)r->length, strerror(err));
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
	               urdma_pages_file(r->file_id),
	               (off_t)(r->file_offset - skip));
	CHECK(p != MAP_FAILED, "daemon's mapping of file %d", r->file_id);
	return p + skip;
}

void drop_view(void *view, const struct urdma_region *r)
{
	munmap((char *)view - r->file_offset % PAGE, view_len(r));
}

static long count_fds(void)
{
	long n = 0;
	DIR *d = opendir("/proc/self/fd");
	CHECK(d, "/proc/self/fd");
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static long count_mappings(void)
{
	static char buf[1 << 16];
	long n = 0, got;
	FILE *f = fopen("/proc/self/maps", "r");
	CHECK(f, "/proc/self/maps");
	while ((got = (long)fread(buf, 1, sizeof buf, f)) > 0)
		for (long i = 0; i < got; i++)
			n += buf[i] == '\n';
	fclose(f);
	return n;
}

static long rss(void)
{
	char line[128];
	long kib = 0;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "VmRSS: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

struct usage usage_now(void)
{
	struct usage u = { rss(), count_fds(), count_mappings(), 0 };
	for (int i = 0; i < 4; i++) {
		struct stat st;
		int fd = urdma_pages_file(i);
		if (fd >= 0 && fstat(fd, &st) == 0)
			u.file_kib += st.st_blocks / 2;
	}
	return u;
}

bool only_idle(void)
{
	long kib = usage_now().file_kib;
	return kib <= (long)idle_pages() * PAGE / 1024 && kib <= 64 * 1024;
}

static const struct {
	const char *name;
	int (*run)(void);
} tests[] = {
	{ "writers", test_writers }, { "heap_writers", test_heap_writers },
	{ "system_calls", test_system_calls }, { "overlap", test_overlap },
	{ "realloc", test_realloc }, { "calloc", test_calloc },
	{ "fork", test_fork }, { "fork_daemon", test_fork_daemon },
	{ "fork_causality", test_fork_causality },
	{ "fork_causality_edges", test_fork_causality_edges },
	{ "fork_advice", test_fork_advice },
	{ "fork_advised_before", test_fork_advised_before },
	{ "fork_descriptors", test_fork_descriptors },
	{ "rounds", test_rounds }, { "scatter", test_scatter },
	{ "pinned", test_pinned }, { "peer", test_peer }, { "refused", test_refused },
	{ "interposed", test_interposed }, { "reuse", test_reuse },
	{ "brk", test_brk }, { "static", test_static },
	{ "fork_together", test_fork_together },
	{ "fork_moment", test_fork_moment }, { "conditions",
	test_conditions }, { "no_userfaultfd", test_no_userfaultfd },
	{ "limits", test_limits }, { "unreadable", test_unreadable },
	{ "untouched", test_untouched }, { "kept", test_kept },
	{ "born", test_born }, { "swap", test_swap },
	{ "group", test_group }, { "group_forks", test_group_forks },
	{ "group_threads", test_group_threads },
	{ "huge", test_huge }, { "direct", test_direct },
	{ "cost", test_cost }, { "bench", test_bench },
};

static bool has_full_userfaultfd(void)
{
	long fd = syscall(SYS_userfaultfd, 0);
	if (fd >= 0)
		close((int)fd);
	return fd >= 0;
}

/* torture TEST [ROUNDS [SEED]] */
int main(int argc, char **argv)
{
	opt.rounds = argc > 2 ? atol(argv[2]) : 0;
	opt.seed = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
	opt.full = has_full_userfaultfd();
	if (getenv("URDMA_TORTURE_KEEP"))
		keep_least(1); /* all that the test maps stays shared */
	for (size_t i = 0; argc > 1 && i < sizeof tests / sizeof *tests; i++)
		if (strcmp(tests[i].name, argv[1]) == 0)
			return tests[i].run();
	fprintf(stderr, "usage: torture TEST [ROUNDS [SEED]]; no test %s\n",
	        argc > 1 ? argv[1] : "given");
	return 2;
}
