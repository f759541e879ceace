/* Another process's access by both paths, what is refused, and the calls that
 * are interposed. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture.h"

static void send_fd(int sock, int fd, const struct urdma_region *r)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { (void *)(uintptr_t)r, sizeof *r };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1,
		            .msg_control = control,
		            .msg_controllen = sizeof control };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	CHECK(sendmsg(sock, &m, 0) == sizeof *r, "sendmsg");
}

static int receive_fd(int sock, struct urdma_region *r)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { r, sizeof *r };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1,
		            .msg_control = control,
		            .msg_controllen = sizeof control };
	int fd = -1;
	if (recvmsg(sock, &m, 0) != sizeof *r)
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
	return fd;
}

/* Adds 1 to every byte of the region, as urdmad would reach it. */
static void touch_shared(int fd, const struct urdma_region *r)
{
	uint64_t skip = r->file_offset % PAGE;
	unsigned char *p = mmap(NULL, skip + r->length, PROT_READ | PROT_WRITE,
	                        MAP_SHARED, fd, (off_t)(r->file_offset - skip));
	CHECK(p != MAP_FAILED, "daemon: mmap: %s", strerror(errno));
	for (uint64_t i = 0; i < r->length; i++)
		p[skip + i]++;
	CHECK(ftruncate(fd, 0) != 0 && errno == EPERM, "the file can shrink");
	munmap(p, skip + r->length);
}

static void touch_mem(int fd, const struct urdma_region *r)
{
	unsigned char *p = malloc(r->length);
	ssize_t n = pread(fd, p, r->length, (off_t)r->addr);
	CHECK(n == (ssize_t)r->length, "daemon: pread: %s", strerror(errno));
	for (uint64_t i = 0; i < r->length; i++)
		p[i]++;
	n = pwrite(fd, p, r->length, (off_t)r->addr);
	CHECK(n == (ssize_t)r->length, "daemon: pwrite: %s", strerror(errno));
	free(p);
}

static void serve(int sock, uid_t uid)
{
	struct urdma_region r;
	if (uid && getuid() == 0)
		CHECK(setresgid(uid, uid, uid) == 0 &&
		      setresuid(uid, uid, uid) == 0, "setuid");
	for (int fd; (fd = receive_fd(sock, &r)) >= 0; close(fd)) {
		if (r.path == URDMA_PATH_SHARED)
			touch_shared(fd, &r);
		else
			touch_mem(fd, &r);
		CHECK(write(sock, "", 1) == 1, "answer");
	}
	_exit(0);
}

static void check_touched(int sock, unsigned char *p, size_t n, int path)
{
	char byte;
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)(i * 3);
	struct urdma_region r = must_register(p, n);
	CHECK(r.path == path, "path %d: %s", r.path, r.why ? r.why : "");
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	CHECK(mem >= 0, "/proc/self/mem: %s", strerror(errno));
	send_fd(sock, path == URDMA_PATH_SHARED ? urdma_pages_file(r.file_id)
	                                        : mem, &r);
	CHECK(read(sock, &byte, 1) == 1, "the daemon is gone");
	for (size_t i = 0; i < n; i++)
		CHECK(p[i] == (unsigned char)(i * 3 + 1), "byte %zu", i);
	must_deregister(&r);
	for (size_t i = 0; i < n; i++)
		CHECK(p[i] == (unsigned char)(i * 3 + 1), "byte %zu after", i);
	close(mem);
}

static void peer_of_uid(uid_t uid)
{
	unsigned char on_stack[9000];
	int s[2], status;
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s) == 0,
	      "socketpair");
	pid_t pid = fork();
	if (pid == 0) {
		close(s[0]);
		serve(s[1], uid);
	}
	close(s[1]);
	unsigned char *p = malloc(100000), *big = malloc(5 << 20);
	check_touched(s[0], p, 100000, URDMA_PATH_SHARED);
	check_touched(s[0], big + 77, (5 << 20) - 99, URDMA_PATH_SHARED);
	check_touched(s[0], on_stack, sizeof on_stack, URDMA_PATH_FALLBACK);
	/* Not dumpable: new opens of the fd's file are root's, but an fd that
	 * is open already goes on working. Programs that are so from the start
	 * (setuid, unreadable file) can't open their own. */
	int mem = open("/proc/self/mem", O_RDWR);
	CHECK(prctl(PR_SET_DUMPABLE, 0) == 0, "PR_SET_DUMPABLE");
	int again = open("/proc/self/mem", O_RDWR);
	CHECK(getuid() == 0 || (again < 0 && errno == EACCES),
	      "/proc/self/mem of a process that isn't dumpable opens");
	struct urdma_region r = must_register(on_stack, sizeof on_stack);
	char byte;
	on_stack[5] = 41;
	send_fd(s[0], mem, &r);
	CHECK(read(s[0], &byte, 1) == 1, "the daemon is gone");
	CHECK(on_stack[5] == 42, "an fd opened while dumpable");
	CHECK(prctl(PR_SET_DUMPABLE, 1) == 0, "PR_SET_DUMPABLE");
	close(mem);
	close(again);
	close(s[0]);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0, "daemon %#x", status);
	free(p);
	free(big);
}

int test_peer(void)
{
	peer_of_uid(0);
	if (getuid() == 0)
		peer_of_uid(12345);
	return 0;
}

static void expect_fallback(const char *what, void *p, size_t n)
{
	struct urdma_region r = must_register(p, n);
	CHECK(r.path == URDMA_PATH_FALLBACK && r.why, "%s was converted", what);
	printf("%s: %s\n", what, r.why);
	must_deregister(&r);
}

static void expect_errno(const char *what, void *p, size_t n, int flags, int want)
{
	struct urdma_region r;
	int err = urdma_pages_register(p, n, flags, &r);
	CHECK(err == want, "%s: errno %d, not %d", what, err, want);
}

static char in_bss[3 * PAGE];
static char in_data[3 * PAGE] = { 1, 2, 3 };

static _Thread_local char in_tls[100];

static void *on_thread(void *arg)
{
	char local[5000] = { 0 };
	expect_fallback("stack of this thread", local, sizeof local);
	expect_fallback("thread-local variable", in_tls, sizeof in_tls);
	*(char **)arg = local;
	pause();
	return NULL;
}

static void refuse_threads(void)
{
	pthread_t t;
	char *volatile other = NULL;
	pthread_create(&t, NULL, on_thread, (void *)&other);
	while (!other)
		usleep(1000);
	expect_fallback("stack of another thread", other, 5000);
	expect_fallback("program's data, threaded", in_data, 100);
}

int test_refused(void)
{
	char local[5000] = { 0 };
	const int rw = PROT_READ | PROT_WRITE;
	char *p = anon(16 * PAGE);
	char *shared = mmap(NULL, 4 * PAGE, rw, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *huge = mmap(NULL, 2 << 20, rw,
	                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	expect_fallback("stack of the main thread", local, sizeof local);
	expect_fallback("shared mapping", shared, 2 * PAGE);
	if (huge != MAP_FAILED)
		expect_fallback("hugetlb", huge, 2 * PAGE);
	mprotect(p + 4 * PAGE, PAGE, PROT_READ);
	struct urdma_region r;
	CHECK(urdma_pages_register(p + 3 * PAGE, 3 * PAGE, 0, &r) == 0 &&
	      r.path == URDMA_PATH_FALLBACK, "read-only page");
	expect_errno("write to a read-only page", p + 3 * PAGE, 3 * PAGE,
	             URDMA_PAGES_WRITE, EFAULT);
	munmap(p + 8 * PAGE, PAGE);
	expect_errno("hole", p + 6 * PAGE, 4 * PAGE, 0, EFAULT);
	mprotect(p + 10 * PAGE, PAGE, PROT_NONE);
	expect_errno("no access", p + 10 * PAGE, PAGE, 0, EFAULT);
	expect_errno("no length", p, 0, 0, EINVAL);
	expect_errno("wraps", p, SIZE_MAX, 0, EINVAL);
	struct urdma_region never = { .addr = (uintptr_t)p, .length = PAGE };
	CHECK(urdma_pages_deregister(&never) == EINVAL, "not registered");
	refuse_threads();
	CHECK(converted() == 0, "pages left");
	return 0;
}

static void check_all(const char *p, size_t n, char want, const char *what)
{
	for (size_t i = 0; i < n; i++)
		CHECK(p[i] == want, "%s: byte %zu = %d", what, i, p[i]);
}

static void advise_drops(int advice, const char *what)
{
	char *p = anon(12 * PAGE);
	memset(p, 5, 12 * PAGE);
	struct urdma_region r = must_share(p + 4 * PAGE, 4 * PAGE);
	CHECK(madvise(p + 2 * PAGE, 4 * PAGE, advice) == 0, "%s", what);
	check_all(p, 2 * PAGE, 5, what);
	check_all(p + 4 * PAGE, 2 * PAGE, 0, what);
	check_all(p + 6 * PAGE, 6 * PAGE, 5, what);
	char *view = daemon_view(&r);
	check_all(view, 2 * PAGE, 0, "daemon's view");
	memset(view, 6, PAGE);
	check_all(p + 4 * PAGE, PAGE, 6, "still shared");
	drop_view(view, &r);
	must_deregister(&r);
	munmap(p, 12 * PAGE);
}

static void unmap_part(void)
{
	char *p = anon(12 * PAGE);
	memset(p, 5, 12 * PAGE);
	struct urdma_region r = must_share(p, 12 * PAGE);
	CHECK(munmap(p + 4 * PAGE, 4 * PAGE) == 0, "munmap");
	CHECK(usage_now().file_kib == 32, "%ld KiB", usage_now().file_kib);
	must_deregister(&r);
	check_all(p, 4 * PAGE, 5, "below");
	check_all(p + 8 * PAGE, 4 * PAGE, 5, "above");
	munmap(p, 4 * PAGE);
	munmap(p + 8 * PAGE, 4 * PAGE);
}

static void remap_grows(void)
{
	char *p = anon(12 * PAGE);
	memset(p, 5, 12 * PAGE);
	struct urdma_region r = must_share(p + 2 * PAGE, 3 * PAGE);
	char *q = mremap(p, 12 * PAGE, 300 * PAGE, MREMAP_MAYMOVE);
	CHECK(q != MAP_FAILED, "mremap: %s", strerror(errno));
	check_all(q, 12 * PAGE, 5, "moved");
	check_all(q + 12 * PAGE, 288 * PAGE, 0, "grown");
	must_deregister(&r);
	check_all(q, 12 * PAGE, 5, "moved, deregistered");
	CHECK(mremap(q, 300 * PAGE, 10 * PAGE, 0) == q, "shrink");
	munmap(q, 10 * PAGE);
}

static void protection_is_kept(void)
{
	char *p = anon(4 * PAGE);
	memset(p, 5, 4 * PAGE);
	struct urdma_region r = must_share(p, 4 * PAGE);
	CHECK(mprotect(p + PAGE, PAGE, PROT_READ) == 0, "mprotect");
	must_deregister(&r);
	int fd[2];
	CHECK(pipe(fd) == 0 && write(fd[1], "xx", 2) == 2, "pipe");
	CHECK(read(fd[0], p + PAGE, 1) < 0 && errno == EFAULT, "writable again");
	CHECK(read(fd[0], p + 2 * PAGE, 1) == 1, "read");
	check_all(p + PAGE, PAGE, 5, "read-only page");
	munmap(p, 4 * PAGE);
}

int test_interposed(void)
{
	advise_drops(MADV_DONTNEED, "MADV_DONTNEED");
	advise_drops(MADV_FREE, "MADV_FREE");
	unmap_part();
	remap_grows();
	protection_is_kept();
	CHECK(converted() == 0, "pages left");
	CHECK(usage_now().file_kib == 0, "%ld KiB left", usage_now().file_kib);
	return 0;
}

/* A program's variables, which share pages with this library's own. */
int test_static(void)
{
	for (int i = 0; i < 500; i++) {
		memset(in_bss, i, sizeof in_bss);
		memset(in_data, i + 1, sizeof in_data);
		struct urdma_region a = must_share(in_bss, sizeof in_bss);
		struct urdma_region b = must_share(in_data, sizeof in_data);
		struct urdma_region c = must_share(&opt, sizeof opt);
		struct urdma_region d = must_share(&stdout, sizeof stdout);
		char *view = daemon_view(&b);
		check_all(view, sizeof in_data, (char)(i + 1), "daemon's view");
		drop_view(view, &b);
		must_deregister(&a);
		must_deregister(&b);
		must_deregister(&c);
		must_deregister(&d);
		check_all(in_bss, sizeof in_bss, (char)i, ".bss");
		check_all(in_data, sizeof in_data, (char)(i + 1), ".data");
	}
	CHECK(converted() == 0, "pages left");
	return 0;
}
