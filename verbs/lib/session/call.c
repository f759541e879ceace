/*
 * call.c - requests and responses on the control socket.
 *
 * System calls are made directly: libc's wrappers are cancellation points, and if a thread were cancelled
 * while it holds the call lock all other threads would hang. Event sockets, on which programs block and
 * are cancelled, are read through libc.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client.h"

#define ROOM_TRIES 1000 /* of 1 ms each */

union control_buffer {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(URDMA_ABI_MAX_FDS * sizeof(int))];
};

/* Marks the session as ended. Returns whether it was not before. */
static bool end(struct urdma_client *client)
{
	uint32_t live = URDMA_CLIENT_LIVE;

	return __atomic_compare_exchange_n(client->state, &live, URDMA_CLIENT_GONE, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

bool urdma_client_has(struct urdma_client *client, const struct urdma_kept *kept)
{
	if (urdma_kept_is(kept))
		return true;
	if (end(client))
		urdma_complain("this program has closed all descriptors, and with them its session with urdmad: the devices that "
			"it had "
			       "open are gone, and their work requests fail; it may open them again");
	return false;
}

/* If urdmad still runs, it ends the session, too, and closes the event sockets on which threads wait. */
void urdma_client_lose(struct urdma_client *client, const char *why)
{
	if (!end(client))
		return;
	if (urdma_kept_is(&client->control))
		syscall(SYS_shutdown, client->control.fd, SHUT_RDWR);
	urdma_complain("urdmad has ended, or was restarted, under this program, or somebody ended it as a client (%s): its "
		       "devices are gone, and its work requests fail; start it again when \"urdma status\" shows a urdmad", why);
}

bool urdma_client_alive(const struct urdma_client *client)
{
	return urdma_client_state(client) == URDMA_CLIENT_LIVE;
}

static bool look(struct urdma_client *client, long wait_ns)
{
	struct pollfd p = { .fd = client->control.fd, .events = POLLRDHUP };
	struct timespec wait = { .tv_nsec = wait_ns };

	if (!urdma_client_alive(client) || !urdma_client_has(client, &client->control))
		return false;
	if (syscall(SYS_ppoll, &p, 1, &wait, NULL, 0) > 0 && (p.revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL)))
		urdma_client_lose(client, "hang-up");
	return urdma_client_alive(client);
}

bool urdma_client_probe(struct urdma_client *client)
{
	return look(client, 0);
}

/* When urdmad dies the kernel closes its sockets one after another; the control socket may be the last. */
bool urdma_client_check(struct urdma_client *client)
{
	return look(client, 200000000);
}

static void close_all(const int *fds, int n)
{
	for (int i = 0; i < n; i++)
		urdma_close(fds[i]);
}

static int send_request(struct urdma_client *client, const void *request, size_t length, int fd)
{
	union control_buffer control;
	struct iovec iov = { .iov_base = (void *)request, .iov_len = length };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	long n;

	if (fd >= 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(sizeof(int));
		memset(&control, 0, sizeof(control));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(int));
	}
	do
		n = syscall(SYS_sendmsg, client->control.fd, &message, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (long)length ? 0 : -1;
}

/* The kernel drops the descriptors of a message if the process has no room for them, and sets MSG_CTRUNC. */
#define CUT_OFF -1

/* Returns the number of bytes received, or -1. Closes descriptors beyond max. If descriptors were dropped,
 * *got is CUT_OFF and none is left. */
static long receive_response(struct urdma_client *client, void *buffer, size_t room, int *fds, int max, int *got,
			     int flags)
{
	union control_buffer control;
	struct iovec iov = { .iov_base = buffer, .iov_len = room };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *c;
	long n;
	int fd;

	*got = 0;
	do {
		n = syscall(SYS_recvmsg, client->control.fd, &message, MSG_CMSG_CLOEXEC | flags);
		if (n < 0 && errno == EAGAIN) {
			urdma_silence_tell(client);
			errno = EINTR;
		}
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -1;
	for (c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
			memcpy(&fd, CMSG_DATA(c) + at, sizeof(int));
			if (*got < max)
				fds[(*got)++] = fd;
			else
				urdma_close(fd);
		}
	}
	if (message.msg_flags & MSG_CTRUNC) {
		close_all(fds, *got);
		*got = CUT_OFF;
	}
	return n;
}

int urdma_call_room(struct urdma_client *client)
{
	int fd = fcntl(client->control.fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return urdma_client_alive(client) ? errno : EIO;
	urdma_close(fd);
	return 0;
}

/*
 * When urdmad answers it has already moved the queue, so the response's descriptor must not be lost. The
 * caller has checked that there is room for one; if another thread has used it since, this thread waits,
 * with the response still in the socket.
 */
static void await_room(struct urdma_client *client)
{
	struct urdma_abi_header head;
	struct timespec pause = { .tv_nsec = 1000000 };
	int fd, got = CUT_OFF;

	for (int i = 0; i < ROOM_TRIES; i++) {
		if (receive_response(client, &head, sizeof(head), &fd, 1, &got, MSG_PEEK) <= 0 || got != CUT_OFF)
			break;
		syscall(SYS_nanosleep, &pause, NULL);
	}
	close_all(&fd, got);
}

/* Sends the request and receives the response; the call lock is held. *length: size of the response
 * buffer; set to the bytes received. */
static int exchange(struct urdma_client *client, struct urdma_abi_header *request, void *answer, size_t *length,
		    int send_fd, int *fds, int want, int *got)
{
	struct urdma_abi_header *head = answer;
	size_t room = *length;
	long n;

	*got = 0;
	*length = 0;
	if (!urdma_client_alive(client) || !urdma_client_has(client, &client->control))
		return EIO;
	request->seq = ++client->seq;
	if (send_request(client, request, request->length, send_fd) != 0) {
		if (errno == EBADF && send_fd >= 0 && urdma_client_probe(client))
			return EBADF; /* the program has closed the descriptor to send */
		urdma_client_lose(client, "cannot send");
		return EIO;
	}
	if (urdma_moves_queue(request->type))
		await_room(client);
	n = receive_response(client, answer, room, fds, want, got, 0);
	if (n <= 0) {
		urdma_client_lose(client, "no answer");
		return EIO;
	}
	*length = (size_t)n;
	if ((size_t)n < sizeof(*head) || head->seq != request->seq || head->type != request->type) {
		urdma_client_lose(client, "answer out of step");
		return EPROTO;
	}
	return urdma_answer_status(head->status);
}

/* Destroys an object that was created: it can't be used without its descriptors. */
static int take_back(struct urdma_client *client, enum urdma_abi_type type, uint32_t handle)
{
	enum urdma_abi_type undo = urdma_undoing(type);

	if (undo)
		urdma_call_handle(client, undo, handle);
	else if (urdma_moves_queue(type))
		urdma_client_lose(client, "no descriptor for a queue that urdmad has moved");
	return EMFILE;
}

void (*urdma_call_refused)(struct urdma_client *client, int status);

/* The end of a call: sets errno on failure, and closes all descriptors then. */
static int ended(struct urdma_client *client, enum urdma_abi_type type, int status, int before, int *fds, int *got)
{
	if (status && urdma_call_refused && type != URDMA_ABI_EXPLAIN && urdma_client_alive(client))
		urdma_call_refused(client, status);
	if (status) {
		close_all(fds, *got);
		*got = 0;
		urdma_log("%s: %s%s", urdma_request_name(type), strerror(status), urdma_request_advice(status));
	}
	errno = status ? status : before;
	return status;
}

int urdma_call_whole(struct urdma_client *client, enum urdma_abi_type type, void *request, size_t request_length,
		     void *answer, size_t *length, int send_fd, int *fds, int max, int *got)
{
	struct urdma_abi_header *head = request;
	struct urdma_abi_handle made = { 0 }; /* every response to a request that creates an object begins so */
	int status, before = errno;

	*head = (struct urdma_abi_header){ .type = type, .length = (uint32_t)request_length };
	pthread_mutex_lock(&client->call);
	status = exchange(client, head, answer, length, send_fd, fds, max, got);
	pthread_mutex_unlock(&client->call);

	if (status == 0 && *got == CUT_OFF) {
		memcpy(&made, answer, *length < sizeof(made) ? *length : sizeof(made));
		status = take_back(client, type, made.handle);
	}
	return ended(client, type, status, before, fds, got);
}

int urdma_call_any_fds(struct urdma_client *client, enum urdma_abi_type type, void *request, size_t request_length,
		       void *response, size_t response_length, int send_fd, int *fds, int max, int *got)
{
	union {
		struct urdma_abi_header head;
		uint8_t bytes[URDMA_ABI_MAX_MESSAGE];
	} answer;
	size_t length = sizeof(answer);
	int before = errno;
	int status = urdma_call_whole(client, type, request, request_length, &answer, &length, send_fd, fds, max, got);

	/* Also on failure: the response to HELLO contains urdmad's version. */
	if (response)
		memcpy(response, &answer, length < response_length ? length : response_length);
	if (status == 0 && length < (response_length ? response_length : sizeof(answer.head)))
		status = ended(client, type, EPROTO, before, fds, got);
	return status;
}

int urdma_call_fds(struct urdma_client *client, enum urdma_abi_type type, void *request, size_t request_length,
		   void *response, size_t response_length, int send_fd, int *fds, int want)
{
	int got = 0, status = urdma_call_any_fds(client, type, request, request_length, response, response_length, send_fd,
					     fds, want, &got);

	if (status || got == want)
		return status;
	close_all(fds, got);
	urdma_log("%s: answered with %d descriptors, expected %d", urdma_request_name(type), got, want);
	return urdma_status(EPROTO);
}

int urdma_call(struct urdma_client *client, enum urdma_abi_type type, void *request, size_t request_length,
	       void *response, size_t response_length)
{
	return urdma_call_fds(client, type, request, request_length, response, response_length, -1, NULL, 0);
}

int urdma_call_handle(struct urdma_client *client, enum urdma_abi_type type, uint32_t handle)
{
	struct urdma_abi_handle request = { .handle = handle };

	return URDMA_TELL(client, type, &request);
}

int urdma_call_destroy(struct urdma_client *client, enum urdma_abi_type type, uint32_t handle)
{
	int before = errno, status = urdma_call_handle(client, type, handle);

	if (!status || urdma_client_alive(client))
		return status;
	errno = before;
	return 0;
}

int urdma_event_read(struct urdma_client *client, const struct urdma_kept *kept, void *event, size_t size)
{
	uint8_t buffer[URDMA_ABI_MAX_MESSAGE];
	ssize_t n;

	if (urdma_client_state(client) == URDMA_CLIENT_FORKED || !urdma_client_has(client, kept))
		return 0;
	n = recv(kept->fd, buffer, sizeof(buffer), 0);
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return 0;
	if (n < 0)
		return -1;
	if ((size_t)n != size) {
		urdma_client_lose(client, "event of another length");
		return 0;
	}
	memcpy(event, buffer, size);
	return 1;
}
