/* connections.c - establishing connections, and failing to. */
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "streams.h"

void case_refused_arguments(void)
{
	struct sockaddr_in far = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xcb007101) }, own = place(0);
	int fd = stream_socket(), plain = open("/dev/null", O_RDWR);
	char byte = 0;

	REFUSES(rsocket(AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT);
	REFUSES(rsocket(AF_INET, SOCK_RAW, 0), ESOCKTNOSUPPORT);
	REFUSES(rsocket(AF_INET, SOCK_DGRAM, IPPROTO_TCP), EPROTONOSUPPORT);
	REFUSES(rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP), EPROTONOSUPPORT);
	REFUSES(rbind(fd, (struct sockaddr *)&far, sizeof(far)), EADDRNOTAVAIL);
	REFUSES(rbind(fd, (struct sockaddr *)&own, 3), EINVAL);
	REFUSES(rsend(fd, &byte, 1, 0), ENOTCONN);
	REFUSES(rrecv(fd, &byte, 1, 0), ENOTCONN);
	REFUSES(rshutdown(fd, SHUT_RDWR), ENOTCONN);
	REFUSES(raccept(fd, NULL, NULL), EINVAL);
	REFUSES(rgetpeername(fd, (struct sockaddr *)&own, &(socklen_t){ sizeof(own) }), ENOTCONN);
	REFUSES(rread(plain, &byte, 1), EBADF);
	REFUSES(rclose(plain), EBADF);
	REFUSES(rfcntl(plain, F_GETFL), EBADF);
	CHECK(rclose(fd) == 0);
	REFUSES(rclose(fd), EBADF);
	REFUSES(riomap(fd, &byte, 1, PROT_WRITE, 0, 0), EBADF);
}

void case_nobody_listens(void)
{
	struct sockaddr_in name = place(1);
	int fd = stream_socket(), error = 0;
	socklen_t length = sizeof(error);

	REFUSES(rconnect(fd, (struct sockaddr *)&name, sizeof(name)), ECONNREFUSED);
	REFUSES(rconnect(fd, (struct sockaddr *)&name, sizeof(name)), ECONNREFUSED); /* another attempt is allowed */
	CHECK(rclose(fd) == 0);
	fd = stream_socket();
	CHECK(rfcntl(fd, F_SETFL, O_NONBLOCK) == 0 && rfcntl(fd, F_GETFL) & O_NONBLOCK);
	REFUSES(rconnect(fd, (struct sockaddr *)&name, sizeof(name)), EINPROGRESS);
	CHECK(polled(fd, POLLOUT, 120000) & POLLOUT);
	CHECK(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == ECONNREFUSED);
	CHECK(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0);
	CHECK(rclose(fd) == 0);
}

void case_nonblocking(void)
{
	int l = listener_of(4), fd = stream_socket(), b, error = 1;
	socklen_t length = sizeof(error);
	char byte;

	CHECK(rfcntl(l, F_SETFL, O_NONBLOCK) == 0 && rfcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	REFUSES(raccept(l, NULL, NULL), EAGAIN);
	CHECK(polled(l, POLLIN, 0) == 0);
	REFUSES(rconnect(fd, (struct sockaddr *)&at, sizeof(at)), EINPROGRESS);
	CHECK(polled(fd, POLLOUT, 120000) == POLLOUT);
	REFUSES(rconnect(fd, (struct sockaddr *)&at, sizeof(at)), EISCONN);
	CHECK(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0);
	CHECK(polled(l, POLLIN, 120000) & POLLIN);
	b = raccept(l, NULL, NULL);
	CHECK(b >= 0 && !(rfcntl(b, F_GETFL) & O_NONBLOCK));
	REFUSES(rrecv(fd, &byte, 1, 0), EAGAIN);
	REFUSES(rrecv(b, &byte, 1, MSG_DONTWAIT), EAGAIN);
	CHECK(polled(b, POLLIN | POLLOUT, 0) == POLLOUT);
	CHECK(rsend(fd, "x", 1, 0) == 1 && polled(b, POLLIN, 120000) == POLLIN);
	CHECK(rrecv(b, &byte, 1, 0) == 1 && byte == 'x' && polled(b, POLLIN, 0) == 0);
	CHECK(rclose(fd) == 0 && rclose(b) == 0 && rclose(l) == 0);
}

/* Connections beyond the backlog wait, and are accepted when there is room. */
void case_backlog(void)
{
	int l = listener_of(2), fds[5], got[5];

	for (int i = 0; i < 5; i++) {
		fds[i] = stream_socket();
		CHECK(rfcntl(fds[i], F_SETFL, O_NONBLOCK) == 0);
		REFUSES(rconnect(fds[i], (struct sockaddr *)&at, sizeof(at)), EINPROGRESS);
		polled(fds[i], POLLOUT, 50);
	}
	for (int i = 0; i < 5; i++) {
		struct pollfd p[6] = { { .fd = l, .events = POLLIN } };

		do { /* the connection proceeds when its socket is polled */
			for (int j = 0; j < 5; j++)
				p[j + 1] = (struct pollfd){ .fd = fds[j], .events = 0 };
			CHECK(rpoll(p, 6, 20) >= 0);
		} while (!(p[0].revents & POLLIN));
		got[i] = raccept(l, NULL, NULL);
		CHECK(got[i] >= 0);
	}
	for (int i = 0; i < 5; i++)
		CHECK(polled(fds[i], POLLOUT, 120000) == POLLOUT);
	for (int i = 0; i < 5; i++) /* got[i] may belong to another connection */
		CHECK(rclose(fds[i]) == 0 && rclose(got[i]) == 0);
	CHECK(rclose(l) == 0);
}

/* A listen that failed for lack of a descriptor is completed when there is one. */
void case_listens_later(void)
{
	struct sockaddr_in name = place(0);
	int l = stream_socket(), a, free_one = dup(0);
	struct rlimit before, none;
	socklen_t length = sizeof(at);

	CHECK(rbind(l, (struct sockaddr *)&name, sizeof(name)) == 0);
	CHECK(free_one >= 0 && close(free_one) == 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
	none = (struct rlimit){ (rlim_t)free_one, before.rlim_max };
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	REFUSES(rlisten(l, 1), EMFILE);
	REFUSES(rlisten(l, 1), EMFILE);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	CHECK(rlisten(l, 1) == 0 && rlisten(l, 2) == 0);
	CHECK(rgetsockname(l, (struct sockaddr *)&at, &length) == 0);
	a = stream_socket();
	CHECK(rconnect(a, (struct sockaddr *)&at, sizeof(at)) == 0);
	CHECK(rclose(a) == 0 && rclose(l) == 0);
}

enum { BY_CONNECT, BY_SEND, BY_RECEIVE, BY_NAME, WAYS };

/* Returns whether the connection is established, using one kind of call. */
static bool is_there(int fd, int way)
{
	struct sockaddr_in name;
	socklen_t length = sizeof(name);
	char byte;

	switch (way) {
	case BY_CONNECT:
		return rconnect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 || errno == EISCONN;
	case BY_SEND:
		return rsend(fd, "x", 1, 0) == 1;
	case BY_RECEIVE:
		CHECK(rrecv(fd, &byte, 1, 0) == -1 && errno == EAGAIN);
		/* fall through */
	default:
		return rgetpeername(fd, (struct sockaddr *)&name, &length) == 0;
	}
}

/* A non-blocking socket connects while the program makes other calls than rpoll; made blocking again, it
 * waits in rsend. */
void case_connects_in_calls(void)
{
	int fd, l = listener_of(WAYS + 1);
	char byte;

	for (int way = 0; way < WAYS; way++) {
		fd = stream_socket();
		CHECK(rfcntl(fd, F_SETFL, O_NONBLOCK) == 0);
		REFUSES(rconnect(fd, (struct sockaddr *)&at, sizeof(at)), EINPROGRESS);
		while (!is_there(fd, way))
			usleep(1000);
		CHECK(rclose(fd) == 0);
	}
	fd = stream_socket();
	CHECK(rfcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	REFUSES(rconnect(fd, (struct sockaddr *)&at, sizeof(at)), EINPROGRESS);
	CHECK(rfcntl(fd, F_SETFL, 0) == 0 && rsend(fd, "y", 1, 0) == 1);
	CHECK(rclose(fd) == 0);
	for (int way = 0; way <= WAYS; way++) {
		CHECK((fd = raccept(l, NULL, NULL)) >= 0);
		if (way == BY_SEND || way == WAYS)
			CHECK(rrecv(fd, &byte, 1, 0) == 1);
		CHECK(rclose(fd) == 0);
	}
	CHECK(rclose(l) == 0);
	fd = stream_socket();
	CHECK(rfcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	REFUSES(rconnect(fd, (struct sockaddr *)&at, sizeof(at)), EINPROGRESS);
	while (rconnect(fd, (struct sockaddr *)&at, sizeof(at)) == -1 && errno == EALREADY)
		usleep(1000);
	CHECK(errno == ECONNREFUSED); /* and another attempt begins */
	REFUSES(rconnect(fd, (struct sockaddr *)&at, sizeof(at)), EINPROGRESS);
	CHECK(rclose(fd) == 0);
}
