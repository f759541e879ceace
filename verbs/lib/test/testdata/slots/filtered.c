/* filtered.c - a seccomp filter kills processes that make unusual system calls: registering memory,
 * posting and forking need none of them. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "slots.h"

#define KILLS(call)                                          \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),     \
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static void filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		KILLS(SYS_userfaultfd), KILLS(SYS_memfd_create), KILLS(SYS_membarrier),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void *idle(void *arg)
{
	pause();
	return arg;
}

void case_filtered(void)
{
	size_t bytes = 4 << 20;
	char *more = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct end from, to;
	struct ibv_mr *region;
	pthread_t thread;
	int status;
	pid_t pid;

	filter();
	CHECK(!pthread_create(&thread, NULL, idle, NULL));
	CHECK(more != MAP_FAILED && (region = ibv_reg_mr(pd, more, bytes, IBV_ACCESS_LOCAL_WRITE)));
	pair_up(&from, &to);
	CHECK_RETURNS(post_write(&from, 1, IBV_SEND_SIGNALED), 0);
	expect(from.qp->send_cq, 1, 1, IBV_WC_SUCCESS);
	pid = fork();
	if (pid == 0)
		_exit(0);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK_RETURNS(ibv_dereg_mr(region), 0);
	CHECK(munmap(more, bytes) == 0);
}
