/*
 * stream.c - stream s|c ADDRESS PORT SEED BYTES: one end of a connection. Both ends send so many bytes at
 * once, and every byte is checked. Sizes, calls, flags, blocking or not, and buffer sizes are random, from
 * the seed.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "check.h"

#define MOST 300000

static int fd;
static uint64_t total, out_seed, in_seed;

static uint64_t next(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* Returns the byte at a position of a stream. */
static uint8_t byte_at(uint64_t seed, uint64_t at)
{
	uint64_t state = seed + at / 8;

	return (uint8_t)(next(&state) >> at % 8 * 8);
}

/* Mostly small, sometimes larger than any buffer. */
static size_t draw_size(uint64_t *state, uint64_t left)
{
	uint64_t n = 1 + next(state) % (next(state) % 4 ? 200 : next(state) % 3 ? 8000 : MOST);

	return n < left ? n : left;
}

static void wait_for(short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	CHECK(rpoll(&p, 1, 120000) == 1);
	CHECK(p.revents & (events | POLLHUP | POLLERR));
}

static ssize_t send_some(const uint8_t *from, size_t n, uint64_t *state)
{
	struct iovec iov[3];
	struct msghdr message = { .msg_iov = iov, .msg_iovlen = 3 };
	int flags = next(state) % 4 ? 0 : MSG_DONTWAIT;
	size_t a = next(state) % (n + 1), b = next(state) % (n - a + 1);

	iov[0] = (struct iovec){ (void *)(uintptr_t)from, a };
	iov[1] = (struct iovec){ (void *)(uintptr_t)(from + a), b };
	iov[2] = (struct iovec){ (void *)(uintptr_t)(from + a + b), n - a - b };
	switch (next(state) % 4) {
	case 0:
		return rwrite(fd, from, n);
	case 1:
		return rwritev(fd, iov, 3);
	case 2:
		return rsendmsg(fd, &message, flags);
	default:
		return rsend(fd, from, n, flags);
	}
}

static void *sender(void *argument)
{
	static uint8_t buffer[MOST];
	uint64_t state = out_seed * 3, sent = 0;
	size_t n, done;
	ssize_t got;

	while (sent < total) {
		n = draw_size(&state, total - sent);
		for (size_t i = 0; i < n; i++)
			buffer[i] = byte_at(out_seed, sent + i);
		for (done = 0; done < n; done += (size_t)got) {
			got = send_some(buffer + done, n - done, &state);
			if (got < 0 && errno == EAGAIN) {
				got = 0;
				wait_for(POLLOUT);
			}
			CHECK(got >= 0);
		}
		memset(buffer, 0xee, n); /* the library must not read sent memory again */
		sent += n;
	}
	CHECK(rshutdown(fd, SHUT_WR) == 0);
	REFUSES(rsend(fd, buffer, 1, 0), EPIPE);
	return argument;
}

static void verify(const uint8_t *buffer, size_t n, uint64_t at)
{
	for (size_t i = 0; i < n; i++)
		if (buffer[i] != byte_at(in_seed, at + i)) {
			fprintf(stderr, "byte %llu of %llu is wrong\n", (unsigned long long)(at + i), (unsigned long long)total);
			exit(1);
		}
}

static void receiver(void)
{
	static uint8_t buffer[MOST];
	static const int kinds[] = { 0, 0, MSG_DONTWAIT, MSG_PEEK, MSG_WAITALL };
	uint64_t state = in_seed * 5 + 1, at = 0;
	int flags;
	size_t n;
	ssize_t got;

	for (;;) {
		flags = kinds[next(&state) % 5];
		n = draw_size(&state, MOST);
		if (next(&state) % 16 == 0)
			usleep((useconds_t)(next(&state) % 3000));
		got = rrecv(fd, buffer, n, flags);
		if (got < 0 && errno == EAGAIN) {
			wait_for(POLLIN);
			continue;
		}
		CHECK(got >= 0 && (size_t)got <= n);
		if (got == 0)
			break;
		verify(buffer, (size_t)got, at);
		if (flags == MSG_WAITALL && !(rfcntl(fd, F_GETFL) & O_NONBLOCK))
			CHECK((size_t)got == n || at + (uint64_t)got == total);
		if (flags != MSG_PEEK)
			at += (uint64_t)got;
	}
	CHECK(at == total);
}

static void set(int socket, int level, int name, int value)
{
	CHECK(rsetsockopt(socket, level, name, &value, sizeof(value)) == 0);
}

static void draw_options(int socket, uint64_t *state)
{
	if (next(state) % 2)
		set(socket, SOL_SOCKET, SO_SNDBUF, (int)(2048 + next(state) % 100000));
	if (next(state) % 2)
		set(socket, SOL_SOCKET, SO_RCVBUF, (int)(2048 + next(state) % 100000));
	if (next(state) % 2)
		set(socket, SOL_RDMA, RDMA_SQSIZE, (int)(2 + next(state) % 50));
	if (next(state) % 2)
		set(socket, SOL_RDMA, RDMA_RQSIZE, (int)(2 + next(state) % 50));
	if (next(state) % 2)
		set(socket, SOL_RDMA, RDMA_INLINE, (int)(next(state) % 300));
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	uint64_t state;
	pthread_t thread;
	int listener;

	CHECK(argc == 6 && inet_pton(AF_INET, argv[2], &at.sin_addr) == 1);
	at.sin_port = htons((uint16_t)atoi(argv[3]));
	state = strtoull(argv[4], NULL, 0) * 2 + (argv[1][0] == 's');
	out_seed = state * 1000003;
	in_seed = (state ^ 1) * 1000003;
	total = strtoull(argv[5], NULL, 0);
	fd = rsocket(AF_INET, SOCK_STREAM, 0);
	CHECK(fd >= 0);
	draw_options(fd, &state);
	if (argv[1][0] == 's') {
		listener = fd;
		CHECK(rbind(listener, (struct sockaddr *)&at, sizeof(at)) == 0 && rlisten(listener, 1) == 0);
		puts("listening");
		fflush(stdout);
		fd = raccept(listener, NULL, NULL);
		CHECK(fd >= 0 && rclose(listener) == 0);
	} else {
		CHECK(rconnect(fd, (struct sockaddr *)&at, sizeof(at)) == 0);
	}
	if (next(&state) % 2)
		CHECK(rfcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	CHECK(pthread_create(&thread, NULL, sender, NULL) == 0);
	receiver();
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(rclose(fd) == 0);
	return 0;
}
