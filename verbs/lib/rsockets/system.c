/* system.c - system calls, and the blocking of signals around them. */
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rsockets.h"

/* The program's signal mask while signals are blocked. */
static _Thread_local sigset_t programs;
static _Thread_local int programs_cancel;

/* Signals raised by an instruction are not blocked. */
void rs_block_signals(void)
{
	static const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
	sigset_t blocked;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &programs_cancel);
	sigfillset(&blocked);
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		sigdelset(&blocked, own[i]);
	pthread_sigmask(SIG_BLOCK, &blocked, &programs);
}

void rs_unblock_signals(void)
{
	pthread_sigmask(SIG_SETMASK, &programs, NULL);
	pthread_setcancelstate(programs_cancel, NULL);
}

int64_t rs_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* librspreload replaces poll, but not ppoll. wait_ns below 0: for ever. */
int rs_sys_poll(struct pollfd *fds, nfds_t n, int64_t wait_ns)
{
	struct timespec wait = { .tv_sec = wait_ns / 1000000000, .tv_nsec = wait_ns % 1000000000 };
	sigset_t mask = programs; /* a signal handler's calls overwrite both variables */
	int found, cancel = programs_cancel;

	pthread_setcancelstate(cancel, NULL);
	found = ppoll(fds, n, wait_ns < 0 ? NULL : &wait, &mask);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	programs = mask;
	programs_cancel = cancel;
	return found;
}

int rs_raw_close(int fd)
{
	return (int)syscall(SYS_close, fd);
}

struct rs_file rs_file_of(int fd)
{
	int before = errno;
	struct stat st = { 0 };

	if (fstat(fd, &st))
		fd = -1;
	errno = before;
	return (struct rs_file){ fd, st.st_dev, st.st_ino };
}

bool rs_is_open(const struct rs_file *file)
{
	struct rs_file now = rs_file_of(file->fd);

	return now.fd >= 0 && now.device == file->device && now.inode == file->inode;
}
