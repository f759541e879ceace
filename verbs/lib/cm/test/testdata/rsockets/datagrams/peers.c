/* peers.c - peers to which a socket sends, and from which it receives. */
#include <poll.h>

#include "datagrams.h"

/* Sends to and from any address of the host, loopback addresses included. */
void case_any(void)
{
	const char *hosts[] = { address, loopback };
	union place server, from;
	int a, b = bound(wildcard, &server);

	for (int i = 0; i < 2; i++) {
		server = place(hosts[i], server.four.sin_port);
		a = datagram_socket(0);
		CHECK(rconnect(a, &server.any, size_of(&server)) == 0);
		CHECK(rsend(a, sent, 100, 0) == 100);
		from = receive(b, 100);
		send_to(b, &from, 50);
		from = receive(a, 50);
		CHECK(same(&from, &server));
		CHECK(rclose(a) == 0);
	}
	CHECK(rclose(b) == 0);
}

/* A connected socket receives only from its peer, until the association is dissolved. */
void case_connected(void)
{
	union place server, other, own, from;
	int a = datagram_socket(0), b = bound(address, &server), c = bound(address, &other);
	socklen_t length = sizeof(from);

	REFUSES(rsend(a, sent, 1, 0), EDESTADDRREQ);
	REFUSES(rgetpeername(a, &from.any, &length), ENOTCONN);
	CHECK(rconnect(a, &server.any, size_of(&server)) == 0);
	CHECK(rgetpeername(a, &from.any, &length) == 0 && same(&from, &server));
	CHECK(rsend(a, sent, 10, 0) == 10);
	own = receive(b, 10);
	from = name_of(a);
	CHECK(same(&from, &own));
	send_to(c, &own, 20);
	send_to(b, &own, 30);
	receive(a, 30);
	REFUSES(rrecv(a, got, 1, MSG_DONTWAIT), EAGAIN);
	send_to(a, &other, 40);
	receive(c, 40);
	from.any.sa_family = AF_UNSPEC;
	CHECK(rconnect(a, &from.any, size_of(&from)) == 0);
	send_to(c, &own, 20);
	receive(a, 20);
	CHECK(rclose(a) == 0 && rclose(b) == 0 && rclose(c) == 0);
}

/* If nobody has the port number, a connected socket gets an error, once. */
void case_refused(void)
{
	union place gone;
	int a = datagram_socket(0), b = bound(address, &gone), value = 0;
	socklen_t length = sizeof(value);

	CHECK(rclose(b) == 0);
	CHECK(rconnect(a, &gone.any, size_of(&gone)) == 0);
	REFUSES(rrecv(a, got, 1, 0), ECONNREFUSED);
	CHECK(rsend(a, sent, 1, 0) == 1);
	CHECK(polled(a, POLLIN, 120000) & POLLERR);
	CHECK(rgetsockopt(a, SOL_SOCKET, SO_ERROR, &value, &length) == 0 && value == ECONNREFUSED);
	REFUSES(rrecv(a, got, 1, MSG_DONTWAIT), EAGAIN);
	CHECK(rclose(a) == 0);
}

/* A port number that another socket has taken over is resolved again. */
void case_taken_over(void)
{
	union place server, from;
	int a = datagram_socket(0), b = bound(address, &server);

	send_to(a, &server, 10);
	from = receive(b, 10);
	CHECK(rclose(b) == 0);
	b = datagram_socket(0);
	CHECK(rbind(b, &server.any, size_of(&server)) == 0);
	from = place(address, from.four.sin_port);
	send_to(b, &from, 20); /* so a learns of the new queue pair */
	receive(a, 20);
	send_to(a, &server, 30);
	while (!polled(b, POLLIN, 500))
		send_to(a, &server, 30); /* the first may have been sent to the old one */
	receive(b, 30);
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

/* Sockets of both families can communicate on an IPv4 port. */
static void meet_ipv4(void)
{
	union place server, four, from;
	int a, b = bound("::", &server);

	family = AF_INET;
	four = place(address + strlen("::ffff:"), server.four.sin_port);
	a = datagram_socket(0);
	send_to(a, &four, 100);
	family = AF_INET6;
	from = receive(b, 100);
	CHECK(IN6_IS_ADDR_V4MAPPED(&from.six.sin6_addr));
	send_to(b, &from, 200);
	family = AF_INET;
	from = receive(a, 200);
	CHECK(same(&from, &four));
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

/* Addresses to which a socket of a family can't send. */
void case_families(void)
{
	union place six = place("fd01::1", htons(9)), mapped = place("::ffff:10.77.0.1", htons(9));
	int a = datagram_socket(0), b, yes = 1;

	if (family == AF_INET) {
		REFUSES(rsendto(a, sent, 1, 0, &six.any, sizeof(six.six)), EAFNOSUPPORT);
	} else {
		REFUSES(rsendto(a, sent, 1, 0, &six.any, sizeof(six.six)), ENETUNREACH);
		b = datagram_socket(0);
		CHECK(rsetsockopt(b, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes)) == 0);
		REFUSES(rsendto(b, sent, 1, 0, &mapped.any, sizeof(mapped.six)), ENETUNREACH);
		CHECK(rclose(b) == 0);
	}
	CHECK(rclose(a) == 0);
	if (!strncmp(address, "::ffff:", 7))
		meet_ipv4();
}
