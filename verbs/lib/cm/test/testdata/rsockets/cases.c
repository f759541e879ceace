/* cases.c - one named case of rsockets a run, on a urdmad with one port whose
 * address is the second argument. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static const char *address;

static struct sockaddr_in place(uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	CHECK(inet_pton(AF_INET, address, &in.sin_addr) == 1);
	return in;
}

static int stream_socket(void)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	CHECK(fd >= 0);
	return fd;
}

static struct sockaddr_in at;

static int listener_of(int backlog)
{
	struct sockaddr_in name = place(0);
	socklen_t length = sizeof(at);
	int fd = stream_socket();

	CHECK(rbind(fd, (struct sockaddr *)&name, sizeof(name)) == 0 && rlisten(fd, backlog) == 0);
	CHECK(rgetsockname(fd, (struct sockaddr *)&at, &length) == 0 && at.sin_port);
	return fd;
}

/* Both ends of a connection. That connecting does not wait for raccept lets one
 * thread make them. */
static void connected(int *a, int *b)
{
	int l = listener_of(1);

	*a = stream_socket();
	CHECK(rconnect(*a, (struct sockaddr *)&at, sizeof(at)) == 0);
	*b = raccept(l, NULL, NULL);
	CHECK(*b >= 0 && rclose(l) == 0);
}

static short polled(int fd, short events, int timeout)
{
	struct pollfd p = { .fd = fd, .events = events };

	return rpoll(&p, 1, timeout) == 1 ? p.revents : 0;
}

static void case_refused_arguments(void)
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

static void case_nobody_listens(void)
{
	struct sockaddr_in name = place(1);
	int fd = stream_socket(), error = 0;
	socklen_t length = sizeof(error);

	REFUSES(rconnect(fd, (struct sockaddr *)&name, sizeof(name)), ECONNREFUSED);
	REFUSES(rconnect(fd, (struct sockaddr *)&name, sizeof(name)), ECONNREFUSED); /* it may try again */
	CHECK(rclose(fd) == 0);
	fd = stream_socket();
	CHECK(rfcntl(fd, F_SETFL, O_NONBLOCK) == 0 && rfcntl(fd, F_GETFL) & O_NONBLOCK);
	REFUSES(rconnect(fd, (struct sockaddr *)&name, sizeof(name)), EINPROGRESS);
	CHECK(polled(fd, POLLOUT, 10000) & POLLOUT);
	CHECK(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == ECONNREFUSED);
	CHECK(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0);
	CHECK(rclose(fd) == 0);
}

static void case_nonblocking(void)
{
	int l = listener_of(4), fd = stream_socket(), b, error = 1;
	socklen_t length = sizeof(error);
	char byte;

	CHECK(rfcntl(l, F_SETFL, O_NONBLOCK) == 0 && rfcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	REFUSES(raccept(l, NULL, NULL), EAGAIN);
	CHECK(polled(l, POLLIN, 0) == 0);
	REFUSES(rconnect(fd, (struct sockaddr *)&at, sizeof(at)), EINPROGRESS);
	CHECK(polled(fd, POLLOUT, 10000) == POLLOUT);
	REFUSES(rconnect(fd, (struct sockaddr *)&at, sizeof(at)), EISCONN);
	CHECK(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0);
	CHECK(polled(l, POLLIN, 10000) & POLLIN);
	b = raccept(l, NULL, NULL);
	CHECK(b >= 0 && !(rfcntl(b, F_GETFL) & O_NONBLOCK));
	REFUSES(rrecv(fd, &byte, 1, 0), EAGAIN);
	REFUSES(rrecv(b, &byte, 1, MSG_DONTWAIT), EAGAIN);
	CHECK(polled(b, POLLIN | POLLOUT, 0) == POLLOUT);
	CHECK(rsend(fd, "x", 1, 0) == 1 && polled(b, POLLIN, 10000) == POLLIN);
	CHECK(rrecv(b, &byte, 1, 0) == 1 && byte == 'x' && polled(b, POLLIN, 0) == 0);
	CHECK(rclose(fd) == 0 && rclose(b) == 0 && rclose(l) == 0);
}

static void case_names(void)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = 0 }, name6;
	struct sockaddr_in a, b;
	socklen_t length = sizeof(six);
	int x, y, l, c;

	connected(&x, &y);
	CHECK(rgetsockname(x, (struct sockaddr *)&a, &(socklen_t){ sizeof(a) }) == 0);
	CHECK(rgetpeername(y, (struct sockaddr *)&b, &(socklen_t){ sizeof(b) }) == 0);
	CHECK(memcmp(&a, &b, 8) == 0 && a.sin_family == AF_INET && a.sin_port);
	CHECK(rgetpeername(x, (struct sockaddr *)&b, &(socklen_t){ sizeof(b) }) == 0 && memcmp(&b, &at, 8) == 0);
	CHECK(rclose(x) == 0 && rclose(y) == 0);
	/* A dual wildcard hears IPv4, and its sockets have names of IPv6. */
	l = rsocket(AF_INET6, SOCK_STREAM, 0);
	CHECK(l >= 0 && rbind(l, (struct sockaddr *)&six, sizeof(six)) == 0 && rlisten(l, 2) == 0);
	CHECK(rgetsockname(l, (struct sockaddr *)&six, &length) == 0 && length == sizeof(six) && six.sin6_port);
	a = place(ntohs(six.sin6_port));
	x = stream_socket();
	CHECK(rconnect(x, (struct sockaddr *)&a, sizeof(a)) == 0);
	c = raccept(l, (struct sockaddr *)&name6, &length);
	CHECK(c >= 0 && name6.sin6_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&name6.sin6_addr));
	CHECK(memcmp(&name6.sin6_addr.s6_addr[12], &a.sin_addr, 4) == 0);
	CHECK(rclose(x) == 0 && rclose(c) == 0);
	/* And a mapped address is connected to. */
	memcpy(&six.sin6_addr, &name6.sin6_addr, 16);
	x = rsocket(AF_INET6, SOCK_STREAM, 0);
	CHECK(rconnect(x, (struct sockaddr *)&six, sizeof(six)) == 0);
	CHECK(rgetpeername(x, (struct sockaddr *)&name6, &length) == 0 && memcmp(&six, &name6, sizeof(six)) == 0);
	CHECK(rclose(x) == 0 && rclose(l) == 0);
}

static int option(int fd, int level, int name)
{
	socklen_t length = sizeof(int);
	int value = -1;

	CHECK(rgetsockopt(fd, level, name, &value, &length) == 0 && length == sizeof(value));
	return value;
}

static void set(int fd, int level, int name, int value)
{
	CHECK(rsetsockopt(fd, level, name, &value, sizeof(value)) == 0);
}

static void case_options(void)
{
	static const int ones[][2] = { { SOL_SOCKET, SO_REUSEADDR }, { SOL_SOCKET, SO_KEEPALIVE }, { SOL_SOCKET, SO_OOBINLINE },
				       { IPPROTO_TCP, TCP_NODELAY }, { IPPROTO_IPV6, IPV6_V6ONLY },
				       { SOL_RDMA, RDMA_SQSIZE }, { SOL_RDMA, RDMA_RQSIZE }, { SOL_RDMA, RDMA_INLINE },
				       { SOL_RDMA, RDMA_IOMAPSIZE } };
	struct linger linger = { 1, 3 }, got;
	int fd = stream_socket(), x, y;
	char route[24] = "route", back[24];

	for (unsigned i = 0; i < sizeof(ones) / sizeof(ones[0]); i++) {
		int value = ones[i][0] == SOL_RDMA ? 40 : 1;

		set(fd, ones[i][0], ones[i][1], value);
		CHECK(option(fd, ones[i][0], ones[i][1]) == value);
	}
	set(fd, SOL_SOCKET, SO_SNDBUF, 50000);
	set(fd, SOL_SOCKET, SO_RCVBUF, 60000);
	CHECK(option(fd, SOL_SOCKET, SO_SNDBUF) == 100000 && option(fd, SOL_SOCKET, SO_RCVBUF) == 120000);
	CHECK(rsetsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) == 0);
	CHECK(rgetsockopt(fd, SOL_SOCKET, SO_LINGER, &got, &(socklen_t){ sizeof(got) }) == 0 && got.l_linger == 3);
	CHECK(option(fd, SOL_SOCKET, SO_TYPE) == SOCK_STREAM && option(fd, SOL_SOCKET, SO_ACCEPTCONN) == 0);
	REFUSES(rgetsockopt(fd, SOL_RDMA, RDMA_ROUTE, back, &(socklen_t){ sizeof(back) }), ENODATA);
	CHECK(rsetsockopt(fd, SOL_RDMA, RDMA_ROUTE, route, sizeof(route)) == 0);
	CHECK(rgetsockopt(fd, SOL_RDMA, RDMA_ROUTE, back, &(socklen_t){ sizeof(back) }) == 0 && !memcmp(route, back, 24));
	REFUSES(rsetsockopt(fd, SOL_SOCKET, SO_BROADCAST, &x, sizeof(x)), ENOPROTOOPT);
	REFUSES(rsetsockopt(fd, 99, 1, &x, sizeof(x)), ENOPROTOOPT);
	REFUSES(rsetsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &x, 1), EINVAL);
	CHECK(rclose(fd) == 0);
	connected(&x, &y);
	REFUSES(rsetsockopt(x, SOL_RDMA, RDMA_SQSIZE, &(int){ 4 }, sizeof(int)), EINVAL);
	CHECK(option(x, IPPROTO_TCP, TCP_MAXSEG) >= 256);
	CHECK(rclose(x) == 0 && rclose(y) == 0);
}

/* One direction ends, the other goes on; then both do. */
static void case_half_close(void)
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
	CHECK(rsend(a, "data", 4, 0) == 4 && rclose(a) == 0); /* what was sent arrives */
	CHECK(polled(b, 0, 10000) & POLLHUP);
	CHECK((polled(b, POLLIN, 0) & (POLLIN | POLLHUP)) == POLLIN); /* first what is to be read */
	CHECK(rrecv(b, text, 8, MSG_WAITALL) == 4 && rrecv(b, text, 8, 0) == 0);
	CHECK(polled(b, POLLIN, 0) & POLLHUP);
	CHECK(rshutdown(b, SHUT_RD) == 0 && rclose(b) == 0);
}

/* A sender stops when the receiver has no room, and goes on when it has. */
static void case_flow_control(void)
{
	static char block[5000];
	size_t sent = 0, got = 0;
	ssize_t n;
	int a, b;

	connected(&a, &b);
	while ((n = rsend(a, block, sizeof(block), MSG_DONTWAIT)) > 0 || polled(a, POLLOUT, 200))
		sent += n > 0 ? (size_t)n : 0;
	CHECK(errno == EAGAIN && sent >= 100000 && sent <= 1 << 18);
	while (got < sent) {
		n = rrecv(b, block, sizeof(block), 0);
		CHECK(n > 0);
		got += (size_t)n;
	}
	CHECK(polled(a, POLLOUT, 10000) == POLLOUT);
	for (int i = 0; i < 2000; i++) /* more messages than there are receives, and nobody reads meanwhile */
		if (rsend(a, "x", 1, MSG_DONTWAIT) < 0)
			break;
	CHECK(errno == EAGAIN && rrecv(b, block, 384, MSG_WAITALL) == 384);
	CHECK(polled(a, POLLOUT, 10000) == POLLOUT && rclose(a) == 0 && rclose(b) == 0);
}

static void *write_later(void *pipe)
{
	usleep(100000);
	CHECK(write(((int *)pipe)[1], "p", 1) == 1);
	return NULL;
}

static void *send_later(void *socket)
{
	usleep(100000);
	CHECK(rsend(*(int *)socket, "s", 1, 0) == 1);
	return NULL;
}

/* rsockets and a pipe in one call; either wakes it. */
static void case_poll_mixed(void)
{
	struct pollfd p[3];
	struct timeval nothing = { 0, 1000 };
	fd_set reads;
	pthread_t thread;
	int ends[2], a, b;

	connected(&a, &b);
	CHECK(pipe(ends) == 0);
	p[0] = (struct pollfd){ .fd = b, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	p[2] = (struct pollfd){ .fd = -1 };
	CHECK(rpoll(p, 3, 0) == 0 && rpoll(p, 3, 20) == 0 && rpoll(p + 1, 1, 0) == 0);
	CHECK(pthread_create(&thread, NULL, write_later, ends) == 0);
	CHECK(rpoll(p, 3, 10000) == 1 && p[0].revents == 0 && p[1].revents == POLLIN);
	CHECK(pthread_join(thread, NULL) == 0 && pthread_create(&thread, NULL, send_later, &a) == 0);
	CHECK(read(ends[0], &(char){ 0 }, 1) == 1);
	CHECK(rpoll(p, 3, 10000) == 1 && p[0].revents == POLLIN && p[1].revents == 0);
	CHECK(pthread_join(thread, NULL) == 0 && write(ends[1], "p", 1) == 1 && rpoll(p, 3, 10000) == 2);
	FD_ZERO(&reads);
	FD_SET(b, &reads);
	FD_SET(ends[0], &reads);
	CHECK(rselect((b > ends[0] ? b : ends[0]) + 1, &reads, NULL, NULL, NULL) == 2);
	CHECK(rrecv(b, &(char){ 0 }, 1, 0) == 1 && read(ends[0], &(char){ 0 }, 1) == 1);
	CHECK(rselect((b > ends[0] ? b : ends[0]) + 1, &reads, NULL, NULL, &nothing) == 0 && !FD_ISSET(b, &reads));
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

static void *close_later(void *socket)
{
	usleep(100000);
	CHECK(rclose(*(int *)socket) == 0);
	return NULL;
}

/* Threads asleep in a socket wake up when another closes it. */
static void case_close_wakes(void)
{
	pthread_t thread;
	char byte;
	int a, b, l = listener_of(1);

	CHECK(pthread_create(&thread, NULL, close_later, &l) == 0);
	REFUSES(raccept(l, NULL, NULL), EBADF);
	CHECK(pthread_join(thread, NULL) == 0);
	connected(&a, &b);
	CHECK(pthread_create(&thread, NULL, close_later, &a) == 0);
	REFUSES(rrecv(a, &byte, 1, 0), EBADF);
	CHECK(pthread_join(thread, NULL) == 0 && rrecv(b, &byte, 1, 0) == 0 && rclose(b) == 0);
}

/* Connections past the backlog wait, and are accepted when there is room. */
static void case_backlog(void)
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

		do { /* a connection goes on as its socket is looked at */
			for (int j = 0; j < 5; j++)
				p[j + 1] = (struct pollfd){ .fd = fds[j], .events = 0 };
			CHECK(rpoll(p, 6, 20) >= 0);
		} while (!(p[0].revents & POLLIN));
		got[i] = raccept(l, NULL, NULL);
		CHECK(got[i] >= 0);
	}
	for (int i = 0; i < 5; i++)
		CHECK(polled(fds[i], POLLOUT, 10000) == POLLOUT && rclose(fds[i]) == 0 && rclose(got[i]) == 0);
	CHECK(rclose(l) == 0);
}

static void case_iomap(void)
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

/* A child has none of its parent's rsockets, closes them without harm, and makes
 * its own. */
static void case_fork(void)
{
	int a, b, status;
	char byte;
	pid_t pid;

	connected(&a, &b);
	pid = fork();
	if (pid == 0) {
		int x, y;

		REFUSES(rsend(a, "x", 1, 0), EBADF);
		CHECK(rclose(a) == 0 && rclose(b) == 0);
		connected(&x, &y);
		CHECK(rsend(x, "c", 1, 0) == 1 && rrecv(y, &byte, 1, 0) == 1 && byte == 'c');
		exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(rsend(a, "p", 1, 0) == 1 && rrecv(b, &byte, 1, 0) == 1 && byte == 'p');
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

#define LANES 4
#define TURNS 500

static int lane_fds[2][LANES];

static void *echo(void *argument)
{
	int fd = *(int *)argument;
	char text[64];
	ssize_t n;

	while ((n = rrecv(fd, text, sizeof(text), 0)) > 0)
		CHECK(rsend(fd, text, (size_t)n, 0) == n);
	CHECK(n == 0);
	return NULL;
}

static void *ask(void *argument)
{
	int fd = *(int *)argument;
	char text[64], back[64];

	for (int i = 0; i < TURNS; i++) {
		memset(text, i, sizeof(text));
		CHECK(rsend(fd, text, sizeof(text), 0) == sizeof(text));
		CHECK(rrecv(fd, back, sizeof(back), MSG_WAITALL) == sizeof(back) && !memcmp(text, back, sizeof(text)));
	}
	CHECK(rshutdown(fd, SHUT_WR) == 0);
	return NULL;
}

static void case_threads(void)
{
	pthread_t threads[2][LANES];

	for (int i = 0; i < LANES; i++)
		connected(&lane_fds[0][i], &lane_fds[1][i]);
	for (int i = 0; i < LANES; i++) {
		CHECK(pthread_create(&threads[0][i], NULL, ask, &lane_fds[0][i]) == 0);
		CHECK(pthread_create(&threads[1][i], NULL, echo, &lane_fds[1][i]) == 0);
	}
	for (int i = 0; i < 2 * LANES; i++)
		CHECK(pthread_join(threads[i % 2][i / 2], NULL) == 0);
	for (int i = 0; i < 2 * LANES; i++)
		CHECK(rclose(lane_fds[i % 2][i / 2]) == 0);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "refused_arguments", case_refused_arguments }, { "nobody_listens", case_nobody_listens },
	{ "nonblocking", case_nonblocking }, { "names", case_names }, { "options", case_options },
	{ "half_close", case_half_close }, { "flow_control", case_flow_control }, { "poll_mixed", case_poll_mixed },
	{ "close_wakes", case_close_wakes }, { "backlog", case_backlog }, { "iomap", case_iomap }, { "fork", case_fork },
	{ "threads", case_threads },
};

int main(int argc, char **argv)
{
	alarm(40);
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
