/* transfer.c - data on a connection, and when it can't be sent. */
#include <poll.h>

#include "streams.h"

/* One direction is shut down, the other continues; then both are. */
void case_half_close(void)
{
	char text[8];
	int a, b;

	connected(&a, &b);
	CHECK(rsend(a, "last", 4, 0) == 4 && rshutdown(a, SHUT_WR) == 0);
	REFUSES(rsend(a, "x", 1, 0), EPIPE);
	CHECK(rrecv(b, text, sizeof(text), MSG_WAITALL) == 4 && !memcmp(text, "last", 4));
	CHECK(rrecv(b, text, 1, 0) == 0 && rrecv(b, text, 1, 0) == 0);
	CHECK((polled(b, POLLIN | POLLRDHUP, 0) & (POLLIN | POLLRDHUP | POLLHUP)) == (POLLIN | POLLRDHUP));
	CHECK(rsend(b, "answer", 6, 0) == 6 && rrecv(a, text, 6, MSG_WAITALL) == 6);
	CHECK(rshutdown(b, SHUT_WR) == 0 && rrecv(a, text, 1, 0) == 0);
	CHECK(polled(a, POLLIN, 0) & POLLHUP);
	CHECK(rclose(a) == 0 && rclose(b) == 0);
	connected(&a, &b);
	CHECK(rsend(a, "data", 4, 0) == 4 && rclose(a) == 0); /* sent data still arrives */
	CHECK(polled(b, 0, 120000) & POLLHUP);
	CHECK((polled(b, POLLIN, 0) & (POLLIN | POLLHUP)) == POLLIN); /* the data comes before the hang-up */
	CHECK(rrecv(b, text, 8, MSG_WAITALL) == 4 && rrecv(b, text, 8, 0) == 0);
	CHECK(polled(b, POLLIN, 0) & POLLHUP);
	CHECK(rshutdown(b, SHUT_RD) == 0 && rclose(b) == 0);
}

/* A sender stops when the receiver has no room, and continues when it has. */
void case_flow_control(void)
{
	static char block[5000];
	size_t sent = 0, got = 0;
	ssize_t n;
	int a, b;

	connected(&a, &b);
	while ((n = rsend(a, block, sizeof(block), MSG_DONTWAIT)) > 0 || polled(a, POLLOUT, 200))
		sent += n > 0 ? (size_t)n : 0;
	CHECK(errno == EAGAIN && sent >= 1 << 16 && sent <= 1 << 18);
	while (got < sent) {
		n = rrecv(b, block, sizeof(block), 0);
		CHECK(n > 0);
		got += (size_t)n;
	}
	CHECK(polled(a, POLLOUT, 120000) == POLLOUT);
	for (int i = 0; i < 2000; i++) /* more messages than there are receives, and none is read meanwhile */
		if (rsend(a, "x", 1, MSG_DONTWAIT) < 0)
			break;
	CHECK(errno == EAGAIN && rrecv(b, block, 380, MSG_WAITALL) == 380); /* on iWARP four credits are spare */
	CHECK(polled(a, POLLOUT, 120000) == POLLOUT && rclose(a) == 0 && rclose(b) == 0);
}

void case_iomap(void)
{
	static char memory[8192] __attribute__((aligned(4096)));
	int a, b, l = listener_of(1);
	char byte;

	set(l, SOL_RDMA, RDMA_IOMAPSIZE, 2);
	a = stream_socket();
	CHECK(rconnect(a, (struct sockaddr *)&at, sizeof(at)) == 0);
	b = raccept(l, NULL, NULL);
	CHECK(b >= 0);
	REFUSES(riomap(b, memory, 4096, PROT_WRITE, 0, 0), ENOMEM); /* a's table has no entries */
	CHECK(riomap(a, memory, 4096, PROT_WRITE, 0, 1000) == 1000);
	CHECK(riomap(a, memory + 4096, 4096, PROT_WRITE, 0, 9000) == 9000);
	REFUSES(riomap(a, memory, 10, PROT_WRITE, 0, 3), ENOMEM);
	CHECK(riomap(a, memory, 10, PROT_NONE, 0, 3) == 3);
	CHECK(rsend(a, "m", 1, 0) == 1 && rrecv(b, &byte, 1, 0) == 1);
	CHECK(riowrite(b, "hello", 5, 1010, 0) == 5 && riowrite(b, "there", 5, 9000, 0) == 5);
	CHECK(riowrite(b, "over the end", 12, 1000 + 4090, 0) == 6);
	REFUSES((ssize_t)riowrite(b, "x", 1, 100, 0), EINVAL);
	CHECK(rsend(b, "d", 1, 0) == 1 && rrecv(a, &byte, 1, 0) == 1 && byte == 'd');
	CHECK(!memcmp(memory + 10, "hello", 5) && !memcmp(memory + 4096, "there", 5) && !memcmp(memory + 4090, "over t", 6));
	CHECK(riounmap(a, memory, 4096) == 0);
	REFUSES(riounmap(a, memory, 4096), EINVAL);
	CHECK(rsend(a, "u", 1, 0) == 1 && rrecv(b, &byte, 1, 0) == 1);
	REFUSES((ssize_t)riowrite(b, "x", 1, 1010, 0), EINVAL);
	CHECK(rclose(a) == 0 && rclose(b) == 0 && rclose(l) == 0);
}

/* Once a socket is shut down both ways its peer reads what was sent before, and its sends fail: they don't wait. */
void case_closed_both_ways(void)
{
	static char text[1 << 16];
	int a, b;

	connected(&a, &b);
	CHECK(rsend(a, "x", 1, 0) == 1 && rshutdown(a, SHUT_RDWR) == 0);
	while (rsend(b, text, sizeof(text), 0) > 0)
		;
	CHECK(errno == EPIPE);
	CHECK(rrecv(b, text, 2, MSG_WAITALL) == 1 && rrecv(b, text, 1, 0) == 0);
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}
