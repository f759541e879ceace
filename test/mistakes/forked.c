/* forked.c - forks, and sends in the child with the parent's queue pair. */
#include <sys/wait.h>
#include <unistd.h>

#include "mistakes.h"

int main(void)
{
	struct side a, b;
	int status;

	connected(&a, &b, PLAN);
	if (fork() == 0) {
		post(&a, &b, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, part(&a, 0, 64));
		_exit(0);
	}
	must(wait(&status) > 0, "wait");
	return WEXITSTATUS(status);
}
