/* options.c - names and options of sockets. */
#include <arpa/inet.h>
#include <netinet/tcp.h>

#include "streams.h"

void case_names(void)
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
	/* A socket bound to :: receives IPv4 connections, too, and their names are IPv6. */
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
	/* Connecting to a mapped address works. */
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

void case_options(void)
{
	static const int ones[][2] = { { SOL_SOCKET, SO_REUSEADDR }, { SOL_SOCKET, SO_KEEPALIVE },
		{ SOL_SOCKET, SO_OOBINLINE },
				       { IPPROTO_TCP, TCP_NODELAY }, { IPPROTO_IPV6, IPV6_V6ONLY },
				       { SOL_RDMA, RDMA_SQSIZE }, { SOL_RDMA, RDMA_RQSIZE }, { SOL_RDMA, RDMA_INLINE },
				       { SOL_RDMA, RDMA_IOMAPSIZE } };
	struct linger linger = { 1, 3 }, got;
	struct tcp_info info;
	socklen_t length = sizeof(info);
	int fd = stream_socket(), x, y;
	char route[24] = "route", back[24];

	for (unsigned i = 0; i < sizeof(ones) / sizeof(ones[0]); i++) {
		int value = ones[i][0] == SOL_RDMA ? 40 : 1;

		set(fd, ones[i][0], ones[i][1], value);
		CHECK(option(fd, ones[i][0], ones[i][1]) == value);
	}
	set(fd, IPPROTO_IP, IP_TOS, 16);
	CHECK(option(fd, IPPROTO_IP, IP_TOS) == 16);
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
	CHECK(rgetsockopt(x, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 && info.tcpi_state == TCP_ESTABLISHED);
	CHECK(rclose(x) == 0 && rclose(y) == 0);
}
