/* datagrams.h - what the cases of rsockets of type SOCK_DGRAM share. Within one
 * urdmad nothing is lost that there is room for. */
#ifndef DATAGRAMS_H
#define DATAGRAMS_H

#include <arpa/inet.h>
#include <rdma/rsocket.h>
#include <stdbool.h>
#include <stdint.h>

#include "../check.h"

#define LONGEST 65527 /* message: over IPv4, 20 bytes less */

/* An address and a port number, of the family that the run is about. */
union place {
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
};

extern const char *address, *loopback, *wildcard; /* of that family */
extern int family;                                /* of sockets */
extern uint8_t sent[LONGEST + 1], got[LONGEST + 1];

size_t longest(void); /* message */

socklen_t size_of(const union place *p);
union place place(const char *host, in_port_t port_be);
bool same(const union place *a, const union place *b);
bool same_host(const union place *a, const union place *b);

int datagram_socket(int flags);
union place name_of(int fd);
/* Bound to a port number of urdmad's choice. */
int bound(const char *host, union place *name);
void send_to(int fd, const union place *to, size_t n);
/* Whom the next message is from, which must be n bytes of sent. */
union place receive(int fd, size_t n);
short polled(int fd, short events, int timeout);

#define CASES(X)                                                                                                 \
	X(served_later) X(echo) X(any) X(connected) X(vectors) X(poll) X(refused) X(arguments) X(close) X(close_wakes) \
	X(flood) X(taken_over) X(stranger) X(bound_elsewhere) X(families) X(scope)

#define DECLARE(name) void case_##name(void);
CASES(DECLARE)

#endif
