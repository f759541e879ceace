/* Memory with properties of its own (huge, locked, not inherited), a process
 * without userfaultfd, descriptors closed by the program. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture.h"

static void fill(unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)(i * 5 + i / PAGE);
}

static void check(const unsigned char *p, size_t n, const char *what)
{
	for (size_t i = 0; i < n; i++)
		CHECK(p[i] == (unsigned char)(i * 5 + i / PAGE), "%s, byte %zu",
		      what, i);
}

static long status_kib(const char *field)
{
	char line[128];
	long kib = -1;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f))
		if (strncmp(line, field, strlen(field)) == 0)
			kib = atol(line + strlen(field));
	if (f)
		fclose(f);
	return kib;
}

static void huge_pages(void)
{
	const size_t n = 12 << 20;
	unsigned char *p = anon(n);
	uint64_t seed = opt.seed;
	madvise(p, n, MADV_HUGEPAGE);
	fill(p, n);
	for (int i = 0; i < 40; i++) {
		size_t a = below(&seed, n), len = 1 + below(&seed, n - a);
		struct urdma_region r = must_share(p + a, len);
		if (i % 8 == 0)
			check(p, n, "huge, registered");
		must_deregister(&r);
	}
	check(p, n, "huge");
	munmap(p, n);
}

static void locked(void)
{
	unsigned char *p = anon(16 * PAGE);
	fill(p, 16 * PAGE);
	if (mlock(p, 16 * PAGE) != 0) {
		printf("mlock: %s: not tested\n", strerror(errno));
		return;
	}
	struct urdma_region r = must_share(p + PAGE, 5 * PAGE);
	check(p, 16 * PAGE, "locked, registered");
	must_deregister(&r);
	check(p, 16 * PAGE, "locked");
	CHECK(status_kib("VmLck:") == 64, "%ld KiB locked", status_kib("VmLck:"));
	munmap(p, 16 * PAGE);
}

static int child_sees(const void *p)
{
	unsigned char v;
	int status;
	pid_t pid = fork();
	if (pid == 0)
		_exit(mincore((void *)(uintptr_t)p, PAGE, &v) == 0);
	CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
	return WEXITSTATUS(status);
}

static void not_inherited(void)
{
	unsigned char *p = anon(16 * PAGE);
	fill(p, 16 * PAGE);
	CHECK(madvise(p + PAGE, 5 * PAGE, MADV_DONTFORK) == 0, "MADV_DONTFORK");
	struct urdma_region r = must_share(p, 16 * PAGE);
	CHECK(!child_sees(p + 2 * PAGE), "MADV_DONTFORK undone");
	CHECK(child_sees(p), "the child lacks a page");
	check(p, 16 * PAGE, "not inherited, registered");
	CHECK(madvise(p, 4 * PAGE, MADV_DONTFORK) == 0, "MADV_DONTFORK");
	CHECK(!child_sees(p), "MADV_DONTFORK ignored");
	must_deregister(&r);
	CHECK(!child_sees(p + 2 * PAGE) && !child_sees(p), "MADV_DONTFORK lost");
	check(p, 16 * PAGE, "not inherited");
	munmap(p, 16 * PAGE);
}

/* closefrom(3), as some programs do to be tidy: registered memory goes on, new
 * registrations fall back, and nothing is done to a file that isn't ours. */
static void descriptors_closed(void)
{
	unsigned char *p = anon(16 * PAGE);
	fill(p, 16 * PAGE);
	struct urdma_region r = must_share(p, 8 * PAGE);
	int fd = urdma_pages_file(r.file_id);
	CHECK(dup2(1, fd) == fd, "dup2");
	CHECK(urdma_pages_file(r.file_id) == -1, "someone else's descriptor");
	struct urdma_region q = must_register(p + 8 * PAGE, 8 * PAGE);
	CHECK(q.path == URDMA_PATH_FALLBACK, "converted");
	printf("after closefrom: %s\n", q.why);
	must_deregister(&r);
	check(p, 16 * PAGE, "deregistered without the file");
	CHECK(close(fd) == 0, "close");
}

/* As the program's environment has it when the library is loaded. */
static void switched_off(void)
{
	unsigned char *p = anon(2 * PAGE);
	setenv("URDMA_CONVERT", "0", 1);
	urdma_pages_init();
	struct urdma_region r = must_register(p, 2 * PAGE);
	CHECK(r.path == URDMA_PATH_FALLBACK && strstr(r.why, "URDMA_CONVERT"),
	      "converted");
	must_deregister(&r);
	setenv("URDMA_CONVERT", "1", 1);
	urdma_pages_init();
	r = must_share(p, 2 * PAGE);
	must_deregister(&r);
}

int test_conditions(void)
{
	huge_pages();
	locked();
	not_inherited();
	switched_off();
	CHECK(converted() == 0, "pages left");
	descriptors_closed();
	return 0;
}

/* What a container's seccomp profile does. */
static void forbid_userfaultfd(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		         offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof code / sizeof *code, code };
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0,
	      "seccomp: %s", strerror(errno));
}

static void *idle(void *arg)
{
	pause();
	return arg;
}

static void child_checks(const unsigned char *p, size_t n)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		check(p, n, "in the child");
		memset((void *)(uintptr_t)p, 0, n);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0, "child %#x", status);
	check(p, n, "in the parent");
}

/* One thread converts; once there are more, pages can neither come nor go, and
 * all of them go on working. */
int test_no_userfaultfd(void)
{
	const size_t n = 64 * PAGE;
	pthread_t t;
	if (getuid() == 0) {
		printf("root can open /dev/userfaultfd instead\n");
		return SKIP_STATUS;
	}
	forbid_userfaultfd();
	unsigned char *p = anon(2 * n), *q = p + n;
	fill(p, n);
	struct urdma_region r = must_share(p + 5, n - 9);
	pthread_create(&t, NULL, idle, NULL);
	struct urdma_region fell = must_register(q, n);
	CHECK(fell.path == URDMA_PATH_FALLBACK, "converted");
	printf("threaded: %s\n", fell.why);
	struct urdma_region again = must_share(p + 100, 3 * PAGE);
	child_checks(p, n);
	must_deregister(&again);
	must_deregister(&r);
	check(p, n, "deregistered");
	CHECK(kept_pages() + idle_pages() == n / PAGE, "%ld pages kept",
	      (long)(kept_pages() + idle_pages()));
	CHECK(munmap(p, n) == 0, "munmap");
	CHECK(usage_now().file_kib == 0 && converted() == 0, "left");
	return 0;
}
