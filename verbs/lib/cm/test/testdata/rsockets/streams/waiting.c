/* waiting.c - several threads, descriptors and processes use a socket. */
#include <poll.h>
#include <pthread.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#include "streams.h"

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
void case_poll_mixed(void)
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
	CHECK(rpoll(p, 3, 60000) == 1 && p[0].revents == 0 && p[1].revents == POLLIN);
	CHECK(pthread_join(thread, NULL) == 0 && pthread_create(&thread, NULL, send_later, &a) == 0);
	CHECK(read(ends[0], &(char){ 0 }, 1) == 1);
	CHECK(rpoll(p, 3, 60000) == 1 && p[0].revents == POLLIN && p[1].revents == 0);
	CHECK(pthread_join(thread, NULL) == 0 && write(ends[1], "p", 1) == 1 && rpoll(p, 3, 60000) == 2);
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

/* Threads that sleep in a socket are woken when another thread closes it. rclose shuts the socket down first, so rrecv
 * may see that. */
void case_close_wakes(void)
{
	pthread_t thread;
	char byte;
	int a, b, l = listener_of(1);

	CHECK(pthread_create(&thread, NULL, close_later, &l) == 0);
	REFUSES(raccept(l, NULL, NULL), EBADF);
	CHECK(pthread_join(thread, NULL) == 0);
	connected(&a, &b);
	CHECK(pthread_create(&thread, NULL, close_later, &a) == 0);
	CHECK(rrecv(a, &byte, 1, 0) == 0 || errno == EBADF);
	CHECK(pthread_join(thread, NULL) == 0 && rrecv(b, &byte, 1, 0) == 0 && rclose(b) == 0);
}

/* A child has none of its parent's rsockets, can close them without harm, and can make its own. */
void case_fork(void)
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

/* The same in a child without fork handlers; its parent's listener continues to listen. */
void case_raw_child(void)
{
	struct sockaddr_in name = { .sin_family = AF_INET };
	socklen_t length = sizeof(name);
	int a, b, c, l = listener_of(1), status;
	char byte;
	pid_t pid;

	connected(&a, &b);
	pid = _Fork();
	if (pid == 0) {
		REFUSES(rsend(a, "x", 1, 0), EBADF);
		CHECK(rclose(a) == 0 && rclose(b) == 0 && rclose(l) == 0);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(rsend(a, "p", 1, 0) == 1 && rrecv(b, &byte, 1, 0) == 1 && byte == 'p');
	CHECK(rgetsockname(l, (struct sockaddr *)&name, &length) == 0);
	CHECK((c = rsocket(AF_INET, SOCK_STREAM, 0)) >= 0);
	CHECK(rconnect(c, (struct sockaddr *)&name, length) == 0);
	CHECK(rclose(a) == 0 && rclose(b) == 0 && rclose(c) == 0 && rclose(l) == 0);
}

#define FOREIGN 100

/* A program that closes all descriptors, including those of its rsockets, and opens others: these are not
 * touched, and new rsockets work. */
void case_closed_descriptors(void)
{
	int ends[FOREIGN][2], a, b, d, l = listener_of(1);
	struct sockaddr_in to = place(7);
	char text[32];

	connected(&a, &b);
	CHECK((d = rsocket(AF_INET, SOCK_DGRAM, 0)) >= 0);
	CHECK(rsendto(d, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)) == 1);
	CHECK(polled(b, POLLIN, 10) == 0); /* waits once */
	for (int fd = 3; fd < 2048; fd++)
		close(fd);
	for (int i = 0; i < FOREIGN; i++) {
		CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]) == 0);
		CHECK(write(ends[i][0], "program's", 9) == 9 && write(ends[i][1], "program's", 9) == 9);
	}
	rsend(a, "x", 1, 0);
	REFUSES(rrecv(b, text, sizeof(text), 0), ECONNRESET);
	CHECK(polled(a, POLLIN, 10) & POLLIN);
	CHECK(rclose(a) == 0 && rclose(b) == 0 && rclose(d) == 0 && rclose(l) == 0);
	connected(&a, &b);
	CHECK(rsend(a, "p", 1, 0) == 1 && rrecv(b, text, 1, 0) == 1 && text[0] == 'p');
	CHECK(polled(b, POLLIN, 10) == 0);
	CHECK(rclose(a) == 0 && rclose(b) == 0);
	for (int i = 0; i < FOREIGN * 2; i++) {
		CHECK(read(ends[i / 2][i % 2], text, sizeof(text)) == 9);
		CHECK(recv(ends[i / 2][i % 2], text, sizeof(text), MSG_DONTWAIT) == -1 && errno == EAGAIN);
	}
}

#define LANES 4
#define TURNS 200

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

void case_threads(void)
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
