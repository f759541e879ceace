/* standin.c - see standin.h. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "standin.h"

/* More than most programs may open (RLIMIT_NOFILE); unused parts of the table take no memory. */
#define DESCRIPTORS 65536

/* Inodes of the sockets by descriptor, 0 for all others. A descriptor may refer to another file by now, with
 * another inode. */
static ino_t inodes[URDMA_STANDINS][DESCRIPTORS];

static ino_t inode(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) ? st.st_ino : 0;
}

bool urdma_standin(enum urdma_standin kind, int fd)
{
	ino_t known;

	if (fd < 0 || fd >= DESCRIPTORS)
		return false;
	known = __atomic_load_n(&inodes[kind][fd], __ATOMIC_RELAXED);
	if (!known)
		return false;
	if (inode(fd) == known)
		return true;
	__atomic_store_n(&inodes[kind][fd], 0, __ATOMIC_RELAXED);
	return false;
}

/* Returns 0 or an errno value. */
static int ask(int fd, const struct urdma_abi_header *request)
{
	struct urdma_abi_header answer;
	ssize_t n;

	if (send(fd, request, request->length, MSG_NOSIGNAL) != (ssize_t)request->length)
		return ENODEV;
	do
		n = recv(fd, &answer, sizeof(answer), 0);
	while (n < 0 && errno == EINTR);
	return n == sizeof(answer) ? urdma_answer_status(answer.status) : ENODEV;
}

int urdma_standin_open(enum urdma_standin kind, const struct urdma_abi_header *request, int flags)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | (flags & SOCK_CLOEXEC), 0), status;

	if (fd < 0)
		return -1;
	status = urdma_locate(fd) ? ENODEV : ask(fd, request);
	if (!status && flags & SOCK_NONBLOCK && fcntl(fd, F_SETFL, O_NONBLOCK))
		status = errno;
	if (status) {
		urdma_close(fd);
		return urdma_fail(status);
	}
	if (fd < DESCRIPTORS)
		__atomic_store_n(&inodes[kind][fd], inode(fd), __ATOMIC_RELAXED);
	return fd;
}
