/* main.c - datagrams CASE ADDRESS: runs one case, on a urdmad with one port that has the address (IPv4,
 * IPv6 or mapped); without arguments lists the cases. */
#include <poll.h>
#include <unistd.h>

#include "datagrams.h"

const char *address, *loopback = "127.0.0.1", *wildcard = "0.0.0.0";
int family = AF_INET;
uint8_t sent[LONGEST + 1], got[LONGEST + 1];

static bool is_mapped(void)
{
	return !strncmp(address, "::ffff:", 7);
}

size_t longest(void)
{
	return family == AF_INET6 && !is_mapped() ? LONGEST - 12 : LONGEST;
}

socklen_t size_of(const union place *p)
{
	return p->any.sa_family == AF_INET6 ? sizeof(p->six) : sizeof(p->four);
}

union place place(const char *host, in_port_t port_be)
{
	union place p = { .six = { .sin6_family = AF_INET6, .sin6_port = port_be } };

	if (inet_pton(AF_INET6, host, &p.six.sin6_addr) == 1)
		return p;
	p = (union place){ .four = { .sin_family = AF_INET, .sin_port = port_be } };
	CHECK(inet_pton(AF_INET, host, &p.four.sin_addr) == 1);
	return p;
}

bool same_host(const union place *a, const union place *b)
{
	if (a->any.sa_family != b->any.sa_family)
		return false;
	if (a->any.sa_family == AF_INET)
		return a->four.sin_addr.s_addr == b->four.sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&a->six.sin6_addr, &b->six.sin6_addr) && a->six.sin6_scope_id == b->six.sin6_scope_id;
}

bool same(const union place *a, const union place *b)
{
	return a->four.sin_port == b->four.sin_port && same_host(a, b);
}

int datagram_socket(int flags)
{
	int fd = rsocket(family, SOCK_DGRAM | flags, 0);

	CHECK(fd >= 0);
	return fd;
}

union place name_of(int fd)
{
	union place name;
	socklen_t length = sizeof(name);

	CHECK(rgetsockname(fd, &name.any, &length) == 0 && length == size_of(&name) && name.any.sa_family == family);
	return name;
}

int bound(const char *host, union place *name)
{
	union place any = place(host, 0);
	int fd = datagram_socket(0);

	CHECK(rbind(fd, &any.any, size_of(&any)) == 0);
	*name = name_of(fd);
	CHECK(name->four.sin_port);
	return fd;
}

void send_to(int fd, const union place *to, size_t n)
{
	CHECK(rsendto(fd, sent, n, 0, &to->any, size_of(to)) == (ssize_t)n);
}

union place receive(int fd, size_t n)
{
	union place from;
	socklen_t length = sizeof(from);

	memset(got, 0, n);
	CHECK(rrecvfrom(fd, got, sizeof(got), 0, &from.any, &length) == (ssize_t)n && length == size_of(&from));
	CHECK(!memcmp(got, sent, n) && from.any.sa_family == family);
	return from;
}

short polled(int fd, short events, int timeout)
{
	struct pollfd p = { .fd = fd, .events = events };

	CHECK(rpoll(&p, 1, timeout) >= 0);
	return p.revents;
}

#define ENTRY(name) { #name, case_##name },

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = { CASES(ENTRY) };

static void choose(const char *of)
{
	address = of;
	if (!strchr(of, ':'))
		return;
	family = AF_INET6;
	loopback = "::1";
	wildcard = "::";
}

int main(int argc, char **argv)
{
	alarm(240);
	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (uint8_t)(i * 7 + (i >> 8));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc < 3)
			puts(cases[i].name);
		else if (!strcmp(argv[1], cases[i].name)) {
			choose(argv[2]);
			return cases[i].run(), 0;
		}
	}
	return argc < 3 ? 0 : 2;
}
