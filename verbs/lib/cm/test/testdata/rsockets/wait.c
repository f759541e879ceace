/* wait.c - wait s|c ADDRESS PORT: the server prints how its connection ended, while it sleeps in rpoll and
 * in rrecv; the client does nothing until it is killed. With a fourth argument both sockets have SO_KEEPALIVE: the
 * server's is set before it listens, the client's when it is connected. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <unistd.h>

#include "check.h"

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

static void keep_alive(int fd)
{
	CHECK(rsetsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){ 1 }, sizeof(int)) == 0);
	CHECK(rsetsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){ 1 }, sizeof(int)) == 0);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	int fd = rsocket(AF_INET, SOCK_STREAM, 0), listener = fd;
	struct pollfd p = { .events = POLLIN };
	char byte;

	CHECK(fd >= 0 && argc >= 4 && inet_pton(AF_INET, argv[2], &at.sin_addr) == 1);
	at.sin_port = htons((uint16_t)atoi(argv[3]));
	if (argv[1][0] == 'c') {
		CHECK(rconnect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && rsend(fd, "x", 1, 0) == 1);
		if (argc > 4)
			keep_alive(fd);
		pause();
	}
	if (argc > 4)
		keep_alive(listener);
	CHECK(rbind(listener, (struct sockaddr *)&at, sizeof(at)) == 0 && rlisten(listener, 1) == 0);
	say("listening");
	fd = raccept(listener, NULL, NULL);
	CHECK(fd >= 0 && rrecv(fd, &byte, 1, 0) == 1);
	say("connected");
	p.fd = fd;
	CHECK(rpoll(&p, 1, -1) == 1 && p.revents & POLLIN && p.revents & POLLHUP);
	REFUSES(rrecv(fd, &byte, 1, 0), ECONNRESET);
	CHECK(rrecv(fd, &byte, 1, 0) == 0);
	CHECK(rsend(fd, "x", 1, 0) == -1 && (errno == ECONNRESET || errno == EPIPE));
	CHECK(rclose(fd) == 0 && rclose(listener) == 0);
	say("ended");
	return 0;
}
