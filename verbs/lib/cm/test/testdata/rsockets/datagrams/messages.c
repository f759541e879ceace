/* messages.c - messages of all sizes: sent, truncated, waited for, lost. */
#include <poll.h>
#include <sys/uio.h>

#include "datagrams.h"

/* Messages of all lengths, and answers to their senders. */
void case_echo(void)
{
	const size_t sizes[] = { 0, 1, 1000, 1008, 1009, longest() };
	union place server, from;
	int a = datagram_socket(0), b = bound(address, &server);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		send_to(a, &server, sizes[i]);
		from = receive(b, sizes[i]);
		CHECK(from.four.sin_port == name_of(a).four.sin_port);
		send_to(b, &from, sizes[i]);
		from = receive(a, sizes[i]);
		CHECK(same(&from, &server));
	}
	REFUSES(rsendto(a, sent, longest() + 1, 0, &server.any, size_of(&server)), EMSGSIZE);
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

/* Truncated messages, vectors, and MSG_PEEK. */
void case_vectors(void)
{
	union place server;
	int a = datagram_socket(0), b = bound(address, &server);
	struct iovec out[3] = { { sent, 3 }, { NULL, 0 }, { sent + 3, 7 } }, in[2] = { { got, 2 }, { got + 2, 4 } };
	struct msghdr to = { .msg_name = &server, .msg_namelen = sizeof(server), .msg_iov = out, .msg_iovlen = 3 };
	union place name;
	struct msghdr from = { .msg_name = &name, .msg_namelen = sizeof(name), .msg_iov = in, .msg_iovlen = 2 };

	CHECK(rsendmsg(a, &to, 0) == 10);
	CHECK(rrecv(b, got, 4, MSG_PEEK) == 4 && rrecv(b, got, 4, MSG_PEEK | MSG_TRUNC) == 10);
	CHECK(rrecvmsg(b, &from, 0) == 6 && (from.msg_flags & MSG_TRUNC) && name.four.sin_port == name_of(a).four.sin_port);
	CHECK(!memcmp(got, sent, 6));
	CHECK(rconnect(a, &server.any, size_of(&server)) == 0 && rwritev(a, out, 3) == 10);
	CHECK(rreadv(b, in, 2) == 6);
	REFUSES(rrecv(b, got, 4, MSG_DONTWAIT), EAGAIN);
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

void case_poll(void)
{
	union place server;
	int a = datagram_socket(SOCK_NONBLOCK), b = bound(address, &server);

	CHECK(polled(b, POLLIN | POLLOUT, 0) == POLLOUT);
	CHECK(polled(b, POLLIN, 50) == 0);
	send_to(a, &server, 100);
	CHECK(polled(b, POLLIN, 120000) == POLLIN);
	receive(b, 100);
	CHECK(polled(b, POLLIN, 0) == 0 && polled(a, POLLOUT, 120000) == POLLOUT);
	REFUSES(rrecv(a, got, 1, 0), EAGAIN);
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

/* Returns whether a message of n bytes is among the received ones, which must be complete. */
static bool heard(int fd, ssize_t n)
{
	ssize_t size;

	while (polled(fd, POLLIN, 300)) {
		size = rrecv(fd, got, sizeof(got), 0);
		CHECK(size > 0 && size <= n && !memcmp(got, sent, (size_t)size));
		if (size == n)
			return true;
	}
	return false;
}

/* More messages than a socket has room for: received ones are complete, and the socket continues to work. */
void case_flood(void)
{
	union place server;
	int a = datagram_socket(0), b = bound(address, &server);

	for (int i = 0; i < 300; i++)
		send_to(a, &server, 1 + (size_t)i * 5);
	CHECK(polled(b, POLLIN, -1) == POLLIN);
	do
		send_to(a, &server, 2000); /* may be lost, too, while there is no room */
	while (!heard(b, 2000));
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}
