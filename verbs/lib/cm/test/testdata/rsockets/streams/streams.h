/* streams.h - functions shared by the cases for rsockets of type SOCK_STREAM. */
#ifndef STREAMS_H
#define STREAMS_H

#include <netinet/in.h>
#include <rdma/rsocket.h>
#include <stdbool.h>

#include "../check.h"

extern struct sockaddr_in at; /* address of the last listener from listener_of */

/* Returns the address under test with a port number. */
struct sockaddr_in place(uint16_t port);
int stream_socket(void);
int listener_of(int backlog);
/* Makes both ends of a connection. One thread can do that because connecting does not wait for raccept. */
void connected(int *a, int *b);
short polled(int fd, short events, int timeout);
void set(int fd, int level, int name, int value);
/* Waits until the thread that stores its number there, atomically, sleeps. */
void until_asleep(pid_t *thread);

#define CASES(X)                                                                                               \
	X(refused_arguments) X(nobody_listens) X(nonblocking) X(connects_in_calls) X(cancelled) X(names) X(options) \
	X(half_close) X(flow_control) \
	X(poll_mixed) X(close_wakes) X(backlog) X(iomap) X(fork) X(raw_child) X(closed_descriptors) X(threads) \
	X(listens_later) X(handler_sends) X(handler_leaves) X(handler_waits) \
	X(closed_both_ways) X(wire_words) X(wire_swapped) X(wire_refused) X(wire_wrong) X(wire_credits) \
	X(wire_early) X(wire_shutdown) X(wire_iomap) X(wire_random)

#define DECLARE(name) void case_##name(void);
CASES(DECLARE)

#endif
