/*
 * echo.c - echo s|c ADDRESS PORT BYTES: a program with ordinary sockets, for librspreload. The server
 * sends back what a client sends; the client compares.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

static void serve(int listener, const struct sockaddr_in *at)
{
	char text[5000];
	ssize_t n, done, more;
	int fd, yes = 1;

	CHECK(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0);
	CHECK(bind(listener, (const struct sockaddr *)at, sizeof(*at)) == 0 && listen(listener, 5) == 0);
	puts("listening");
	fflush(stdout);
	fd = accept(listener, NULL, NULL);
	CHECK(fd >= 0);
	while ((n = read(fd, text, sizeof(text))) > 0)
		for (done = 0; done < n; done += more) {
			more = write(fd, text + done, (size_t)(n - done));
			CHECK(more > 0);
		}
	CHECK(n == 0 && close(fd) == 0 && close(listener) == 0);
}

/* Sends and receives at once, with poll. */
static void ask(int fd, const struct sockaddr_in *at, size_t total)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLOUT };
	size_t sent = 0, got = 0;
	char text[7000];
	ssize_t n;
	int yes = 1;

	CHECK(connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0);
	CHECK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) == 0);
	while (got < total) {
		CHECK(poll(&p, 1, 120000) == 1);
		if (sent < total && (p.revents & POLLOUT)) {
			size_t most = total - sent < sizeof(text) ? total - sent : sizeof(text);

			for (size_t i = 0; i < most; i++)
				text[i] = (char)((sent + i) * 2654435761u >> 13);
			n = send(fd, text, most, MSG_DONTWAIT);
			CHECK(n > 0 || errno == EAGAIN);
			sent += n > 0 ? (size_t)n : 0;
			p.events = sent < total ? POLLIN | POLLOUT : POLLIN;
		}
		if (!(p.revents & POLLIN))
			continue;
		n = recv(fd, text, sizeof(text), 0);
		CHECK(n > 0);
		for (ssize_t i = 0; i < n; i++)
			CHECK(text[i] == (char)((got + (size_t)i) * 2654435761u >> 13));
		got += (size_t)n;
	}
	CHECK(shutdown(fd, SHUT_WR) == 0 && read(fd, text, 1) == 0 && close(fd) == 0);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(fd >= 0 && argc == 5 && inet_pton(AF_INET, argv[2], &at.sin_addr) == 1);
	at.sin_port = htons((uint16_t)atoi(argv[3]));
	if (argv[1][0] == 's')
		serve(fd, &at);
	else
		ask(fd, &at, strtoul(argv[4], NULL, 0));
	return 0;
}
