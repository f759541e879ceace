/* datagrams.h - functions shared by the cases for rsockets of type SOCK_DGRAM. Within one urdmad no
 * message is lost if there is room for it. */
#ifndef DATAGRAMS_H
#define DATAGRAMS_H

#include <arpa/inet.h>
#include <rdma/rsocket.h>
#include <stdbool.h>
#include <stdint.h>

#include "../check.h"

#define LONGEST 2032 /* bytes of a message over IPv4; over IPv6 12 less */

/* An address and a port number, of the family that is tested. */
union place {
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
};

extern const char *address, *loopback, *wildcard; /* in that family */
extern int family;                                /* AF_INET or AF_INET6 for sockets */
extern uint8_t sent[LONGEST + 1], got[LONGEST + 1];

size_t longest(void); /* bytes of the longest message */

socklen_t size_of(const union place *p);
union place place(const char *host, in_port_t port_be);
bool same(const union place *a, const union place *b);
bool same_host(const union place *a, const union place *b);

int datagram_socket(int flags);
union place name_of(int fd);
/* Returns a socket bound to a port number that urdmad chooses. */
int bound(const char *host, union place *name);
void send_to(int fd, const union place *to, size_t n);
/* Receives the next message, which must be n bytes of sent, and returns its sender. */
union place receive(int fd, size_t n);
short polled(int fd, short events, int timeout);

#define CASES(X)                                                                                                 \
	X(served_later) X(echo) X(any) X(connected) X(vectors) X(poll) X(refused) X(arguments) X(close) X(close_wakes) \
	X(flood) X(taken_over) X(stranger) X(stranger_random) X(kernel_first) X(kernel_later) \
	X(bound_elsewhere) X(families) X(scope)

#define DECLARE(name) void case_##name(void);
CASES(DECLARE)

#endif
