/* bytes: the speed of moving bytes without any protocol.
 *
 *   bytes frames SIZE MS            two threads: one copies frames of SIZE bytes from a block of
 *                                   64 KiB into a ring, the other from the ring into another block
 *   bytes send ADDRESS PORT         sends datagrams to the first that asks, until it is refused
 *   bytes receive ADDRESS PORT SIZE MS   asks for datagrams with SIZE bytes of payload until some come,
 *                                   then copies the received payloads to their place
 *
 * Each prints Gb/s; send prints nothing. The kernel splits large sends into datagrams and joins received datagrams
 * (UDP_SEGMENT, UDP_GRO: udp(7)). Neither side checks, counts or answers. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 65536u  /* bytes in a message */
#define BLOCKS 128u  /* outstanding messages, as in perftest */
#define BUFFERS 1024u
#define STRIDE 9216u  /* bytes in a buffer */
#define AT_ONCE 32u  /* frames between two checks of the other side's index */
#define HEADERS 48u  /* header bytes of a datagram, about as many as ours */
#define MOST_SENT 65000u
#define ASK_EVERY_MS 10
#define LONGEST_WAIT_NS 30000000000u

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int print_rate(uint64_t bytes, uint64_t ns)
{
	printf("%.3f\n", (double)bytes * 8 / (double)ns);
	return 0;
}

/* A ring with one producer and one consumer, each index in a cache line of its own. */
static struct {
	alignas(64) _Atomic uint32_t prod;
	alignas(64) _Atomic uint32_t cons;
	alignas(64) _Atomic int stop;
	uint32_t size;
	char *buffers;
} ring;

static char *buffer(uint32_t i)
{
	return ring.buffers + (size_t)(i % BUFFERS) * STRIDE;
}

static void *produce(void *block)
{
	uint32_t at = 0, prod = 0;

	while (!atomic_load_explicit(&ring.stop, memory_order_relaxed)) {
		if (prod + AT_ONCE - atomic_load_explicit(&ring.cons, memory_order_acquire) > BUFFERS) {
			sched_yield();
			continue;
		}
		for (uint32_t i = 0; i < AT_ONCE; i++, prod++) {
			memcpy(buffer(prod), (char *)block + at, ring.size);
			at = at + 2 * ring.size <= BLOCK ? at + ring.size : 0;
		}
		atomic_store_explicit(&ring.prod, prod, memory_order_release);
	}
	return NULL;
}

/* Copies out of the ring until the time is over; returns the number of bytes. */
static uint64_t consume(char *block, uint64_t until)
{
	uint64_t bytes = 0;
	uint32_t at = 0, cons = 0;

	while (now_ns() < until) {
		uint32_t prod = atomic_load_explicit(&ring.prod, memory_order_acquire);
		if (prod == cons)
			sched_yield();
		for (; cons != prod; cons++, bytes += ring.size) {
			memcpy(block + at, buffer(cons), ring.size);
			at = at + 2 * ring.size <= BLOCK ? at + ring.size : 0;
		}
		atomic_store_explicit(&ring.cons, cons, memory_order_release);
	}
	return bytes;
}

static int frames(uint32_t size, uint64_t ms)
{
	char *blocks = calloc(2, BLOCK);
	pthread_t producer;
	uint64_t begin, bytes;

	ring.buffers = calloc(BUFFERS, STRIDE);
	ring.size = size;
	if (!blocks || !ring.buffers || size == 0 || size > STRIDE || pthread_create(&producer, NULL, produce, blocks) != 0)
		return 1;
	begin = now_ns();
	bytes = consume(blocks + BLOCK, begin + ms * 1000000u);
	begin = now_ns() - begin;
	atomic_store(&ring.stop, 1);
	pthread_join(producer, NULL);
	free(ring.buffers);
	free(blocks);
	return print_rate(bytes, begin);
}

static int bound_socket(const char *address, const char *port, struct sockaddr_in *sa)
{
	*sa = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
	if (inet_pton(AF_INET, address, &sa->sin_addr) != 1)
		return -1;
	return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

/* Sends blocks in turn to a connected socket, with as many whole datagrams per call as the kernel accepts. */
static int send_all(int fd, uint32_t size)
{
	char *blocks = calloc(BLOCKS, BLOCK);
	int segment = (int)size;
	size_t whole = MOST_SENT / size * size;

	if (!blocks || setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment) != 0)
		return 1;
	for (uint32_t i = 0;; i = (i + 1) % BLOCKS)
		if (send(fd, blocks + (size_t)i * BLOCK, whole, 0) < 0 && errno != ENOBUFS)
			break;
	free(blocks);
	return errno == ECONNREFUSED ? 0 : 1;
}

static int sender(const char *address, const char *port)
{
	struct sockaddr_in self, asks;
	socklen_t len = sizeof asks;
	uint32_t size;
	int fd = bound_socket(address, port, &self);

	if (fd < 0 || bind(fd, (struct sockaddr *)&self, sizeof self) != 0 ||
	    recvfrom(fd, &size, sizeof size, 0, (struct sockaddr *)&asks, &len) != sizeof size ||
	    size <= HEADERS || size > MOST_SENT ||
	    connect(fd, (struct sockaddr *)&asks, len) != 0)
		return 1;
	return send_all(fd, size);
}

/* Copies the payloads of joined datagrams to their place. */
static uint64_t place(char *to, const char *from, size_t n, size_t size)
{
	uint64_t bytes = 0;

	for (; n > HEADERS; from += size, n -= n < size ? n : size) {
		size_t one = (n < size ? n : size) - HEADERS;
		memcpy(to + bytes, from + HEADERS, one);
		bytes += one;
	}
	return bytes;
}

/* Asks until something can be received: the sender may not yet listen (ECONNREFUSED), and datagrams may be lost. */
static int ask(int fd, uint32_t size)
{
	uint64_t end = now_ns() + LONGEST_WAIT_NS;

	while (now_ns() < end) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		char first;
		if (send(fd, &size, sizeof size, 0) < 0 && errno != ECONNREFUSED && errno != ENOBUFS)
			return -1;
		poll(&p, 1, ASK_EVERY_MS);
		if (recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) >= 0)
			return 0;
		if (errno == ECONNREFUSED)  /* poll() returned at once */
			usleep(ASK_EVERY_MS * 1000);
	}
	errno = ETIMEDOUT;
	return -1;
}

static uint64_t receive_until(int fd, uint32_t size, uint64_t until)
{
	char *blocks = calloc(BLOCKS, BLOCK), *joined = calloc(1, BLOCK);
	uint64_t bytes = 0;

	for (uint32_t i = 0; blocks && joined && now_ns() < until; i = (i + 1) % BLOCKS) {
		ssize_t n = recv(fd, joined, BLOCK, 0);
		if (n > 0)
			bytes += place(blocks + (size_t)i * BLOCK, joined, (size_t)n, size);
	}
	free(joined);
	free(blocks);
	return bytes;
}

static int receiver(const char *address, const char *port, uint32_t size, uint64_t ms)
{
	struct sockaddr_in peer;
	int on = 1, room = 4 << 20, fd = bound_socket(address, port, &peer);
	struct timeval patience = { .tv_sec = 1 };
	uint64_t begin, bytes;

	if (fd < 0 || setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on) != 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room) != 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0 ||
	    connect(fd, (struct sockaddr *)&peer, sizeof peer) != 0 || ask(fd, size) != 0)
		return 1;
	begin = now_ns();
	bytes = receive_until(fd, size, begin + ms * 1000000u);
	begin = now_ns() - begin;
	close(fd);
	return print_rate(bytes, begin);
}

int main(int argc, char **argv)
{
	int failed = 2;

	if (argc == 4 && !strcmp(argv[1], "frames"))
		failed = frames((uint32_t)atoi(argv[2]), strtoull(argv[3], NULL, 10));
	else if (argc == 4 && !strcmp(argv[1], "send"))
		failed = sender(argv[2], argv[3]);
	else if (argc == 6 && !strcmp(argv[1], "receive"))
		failed = receiver(argv[2], argv[3], (uint32_t)atoi(argv[4]), strtoull(argv[5], NULL, 10));
	if (failed)
		fprintf(stderr, "bytes: %s\n", failed == 2 ?
			"frames SIZE MS | send ADDRESS PORT | receive ADDRESS PORT SIZE MS" : strerror(errno));
	return failed;
}
