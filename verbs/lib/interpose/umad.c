/* umad.c - see umad.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "interpose.h"
#include "standin.h"
#include "umad.h"

/* The kernel's header of a MAD with a P_Key index; then a MAD of one segment. */
#define HEADER 64
#define SEGMENT 256

int urdma_umad_open(uint32_t device, bool issm, int flags)
{
	struct urdma_abi_open_umad request = {
		.header = { .type = URDMA_ABI_OPEN_UMAD, .length = sizeof(request) }, .device = device, .issm = issm
	};

	return urdma_standin_open(URDMA_UMAD, &request.header, (flags & O_CLOEXEC ? SOCK_CLOEXEC : 0) |
							       (flags & O_NONBLOCK ? SOCK_NONBLOCK : 0));
}

/* A MAD of several segments needs a large buffer. If the buffer is too small, the beginning of the MAD is
 * copied, whose header contains the length, and the call fails with ENOSPC (the kernel's
 * Documentation/infiniband/user_mad.rst). */
static ssize_t read_mad(int fd, void *buffer, size_t size)
{
	ssize_t n = recv(fd, buffer, size, MSG_PEEK | MSG_TRUNC);

	if (n < 0)
		return -1;
	if (n == 0)
		return urdma_fail(EIO); /* urdmad has ended; the kernel reports a removed device in this way */
	if ((size_t)n > size)
		return urdma_fail(size < HEADER + SEGMENT ? EINVAL : ENOSPC);
	return recv(fd, buffer, size, 0);
}

ssize_t read(int fd, void *buffer, size_t size);
EXPORT ssize_t read(int fd, void *buffer, size_t size)
{
	return urdma_standin(URDMA_UMAD, fd) ? read_mad(fd, buffer, size) : REAL(read)(fd, buffer, size);
}

/* A non-blocking send may find the socket full. */
static ssize_t send_whole(int fd, const struct msghdr *message)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };
	ssize_t n;

	while ((n = sendmsg(fd, message, MSG_NOSIGNAL)) < 0 && (errno == EAGAIN || errno == EINTR))
		poll(&room, 1, -1);
	return n;
}

static int send_ioctl(int fd, struct urdma_abi_umad_ioctl *call, int answer_to)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} rights = { .bytes = { 0 } };
	struct iovec part = { .iov_base = call, .iov_len = sizeof(*call) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = rights.bytes,
				  .msg_controllen = sizeof(rights.bytes) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &answer_to, sizeof(int));
	return send_whole(fd, &message) == sizeof(*call) ? 0 : -1;
}

/* The response comes on a separate socket, because unread MADs may be queued on this one. Returns 0 or an
 * errno value. */
static int call_urdmad(int fd, struct urdma_abi_umad_ioctl *call)
{
	int ends[2], status = EIO;
	ssize_t n;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return errno;
	n = send_ioctl(fd, call, ends[1]);
	urdma_close(ends[1]); /* so that recv returns when urdmad ends */
	while (n == 0) {
		n = recv(ends[0], call, sizeof(*call), 0);
		if (n == sizeof(*call))
			status = urdma_answer_status((int32_t)call->request);
		else if (n < 0 && errno == EINTR)
			n = 0;
	}
	urdma_close(ends[0]);
	return status;
}

static int ioctl_mad(int fd, unsigned long request, void *argument)
{
	struct urdma_abi_umad_ioctl call = { .request = (uint32_t)request };
	size_t size = _IOC_SIZE(request);
	int status;

	if (size > sizeof(call.argument))
		return urdma_fail(ENOTTY);
	if (size && !argument)
		return urdma_fail(EFAULT);
	if (size)
		memcpy(call.argument, argument, size);
	status = call_urdmad(fd, &call);
	if (_IOC_DIR(request) & _IOC_READ)
		memcpy(argument, call.argument, size);
	return status ? urdma_fail(status) : 0;
}

#define MAD_IOCTLS 0x1b

int ioctl(int fd, unsigned long request, ...);
EXPORT int ioctl(int fd, unsigned long request, ...)
{
	void *argument;
	va_list rest;

	va_start(rest, request);
	argument = va_arg(rest, void *);
	va_end(rest);
	if (_IOC_TYPE(request) == MAD_IOCTLS && urdma_standin(URDMA_UMAD, fd))
		return ioctl_mad(fd, request, argument);
	return REAL(ioctl)(fd, request, argument);
}
