/* main.c - streams CASE ADDRESS: runs one case, on a urdmad with one port that has the address; without
 * arguments lists the cases. */
#include <arpa/inet.h>
#include <poll.h>
#include <unistd.h>

#include "streams.h"

static const char *address;
struct sockaddr_in at;

struct sockaddr_in place(uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	CHECK(inet_pton(AF_INET, address, &in.sin_addr) == 1);
	return in;
}

int stream_socket(void)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	CHECK(fd >= 0);
	return fd;
}

int listener_of(int backlog)
{
	struct sockaddr_in name = place(0);
	socklen_t length = sizeof(at);
	int fd = stream_socket();

	CHECK(rbind(fd, (struct sockaddr *)&name, sizeof(name)) == 0 && rlisten(fd, backlog) == 0);
	CHECK(rgetsockname(fd, (struct sockaddr *)&at, &length) == 0 && at.sin_port);
	return fd;
}

void connected(int *a, int *b)
{
	int l = listener_of(1);

	*a = stream_socket();
	CHECK(rconnect(*a, (struct sockaddr *)&at, sizeof(at)) == 0);
	*b = raccept(l, NULL, NULL);
	CHECK(*b >= 0 && rclose(l) == 0);
}

short polled(int fd, short events, int timeout)
{
	struct pollfd p = { .fd = fd, .events = events };

	return rpoll(&p, 1, timeout) == 1 ? p.revents : 0;
}

void set(int fd, int level, int name, int value)
{
	CHECK(rsetsockopt(fd, level, name, &value, sizeof(value)) == 0);
}

#define ENTRY(name) { #name, case_##name },

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = { CASES(ENTRY) };

int main(int argc, char **argv)
{
	alarm(240);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc < 3)
			puts(cases[i].name);
		else if (!strcmp(argv[1], cases[i].name)) {
			address = argv[2];
			return cases[i].run(), 0;
		}
	}
	return argc < 3 ? 0 : 2;
}
