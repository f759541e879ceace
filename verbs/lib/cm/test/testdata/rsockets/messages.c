/*
 * messages.c - messages s|c ADDRESS PORT COUNT: a program with ordinary SOCK_DGRAM sockets, for
 * librspreload. The server sends back what a client sends, until an empty message; the client compares.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

#define MOST 2000

static struct sockaddr_storage at;
static socklen_t at_length;

static void serve(int fd)
{
	static char text[MOST];
	struct sockaddr_storage from;
	socklen_t length = sizeof(from);
	ssize_t n;

	CHECK(bind(fd, (struct sockaddr *)&at, at_length) == 0);
	puts("bound");
	fflush(stdout);
	do {
		n = recvfrom(fd, text, sizeof(text), 0, (struct sockaddr *)&from, &length);
		CHECK(n >= 0 && length == at_length && from.ss_family == at.ss_family);
		CHECK(sendto(fd, text, (size_t)n, 0, (struct sockaddr *)&from, length) == n);
	} while (n);
}

static void ask(int fd, const char *text, size_t n)
{
	static char answer[MOST];
	struct pollfd p = { .fd = fd, .events = POLLIN };

	CHECK(send(fd, text, n, 0) == (ssize_t)n && poll(&p, 1, -1) == 1 && p.revents == POLLIN);
	CHECK(recv(fd, answer, sizeof(answer), 0) == (ssize_t)n && !memcmp(answer, text, n));
}

static void ask_all(int fd, int count)
{
	static char text[MOST];

	CHECK(connect(fd, (struct sockaddr *)&at, at_length) == 0);
	for (int i = 0; i < count; i++) {
		memset(text, 'a' + i, sizeof(text));
		ask(fd, text, (size_t)(i * 7919 % MOST) + 1);
	}
	ask(fd, text, 0);
}

int main(int argc, char **argv)
{
	struct sockaddr_in6 *six = (void *)&at;
	struct sockaddr_in *four = (void *)&at;
	int fd;

	alarm(240);
	CHECK(argc == 5);
	six->sin6_port = htons((uint16_t)atoi(argv[3])); /* IPv4's port number is at the same offset */
	at.ss_family = strchr(argv[2], ':') ? AF_INET6 : AF_INET;
	at_length = at.ss_family == AF_INET6 ? sizeof(*six) : sizeof(*four);
	CHECK(inet_pton(at.ss_family, argv[2],
		at.ss_family == AF_INET6 ? (void *)&six->sin6_addr : (void *)&four->sin_addr) == 1);
	fd = socket(at.ss_family, SOCK_DGRAM, 0);
	CHECK(fd >= 0);
	if (argv[1][0] == 's')
		serve(fd);
	else
		ask_all(fd, atoi(argv[4]));
	CHECK(close(fd) == 0);
	return 0;
}
