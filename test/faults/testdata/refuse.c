/* Runs a program for which the kernel refuses a system call with EPERM, as the
 * seccomp profile of a container does; "dumpable" makes the process one that has
 * no right to its own files in /proc.
 *
 *   refuse "WHAT [WHAT]" PROGRAM [ARGUMENT...] */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct { const char *name; unsigned number; } calls[] = {
	{"ptrace", SYS_ptrace},
	{"process_vm_readv", SYS_process_vm_readv},
	{"memfd_create", SYS_memfd_create},
	{"io_uring_setup", SYS_io_uring_setup},
	{"sched_setaffinity", SYS_sched_setaffinity},
	{"mlock", SYS_mlock},
};

static int refuse(unsigned number)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

int main(int argc, char **argv)
{
	int found = 0;

	for (char *what = argc > 2 ? strtok(argv[1], " ") : NULL; what; what = strtok(NULL, " "))
		for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
			if (!strcmp(what, calls[i].name)) {
				found++;
				if (refuse(calls[i].number)) {
					perror("seccomp");
					return 3;
				}
			}
	if (!found)
		return 2;
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 4;
}
