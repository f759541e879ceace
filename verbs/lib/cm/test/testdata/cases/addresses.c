/* addresses.c - binding, resolving, converting and looking up addresses. */
#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>

#include "cases.h"

void test_addresses(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(7471) };
	struct sockaddr_in to = address("10.0.0.2", 1);
	struct sockaddr_storage odd = { .ss_family = AF_UNIX };
	struct rdma_cm_id *id;
	int yes = 1;

	CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
	REFUSES(rdma_bind_addr(id, NULL), EINVAL);
	REFUSES(rdma_bind_addr(id, (struct sockaddr *)&odd), EAFNOSUPPORT);
	REFUSES(rdma_resolve_addr(id, NULL, NULL, 1), EINVAL);
	REFUSES(rdma_resolve_addr(id, (struct sockaddr *)&odd, (struct sockaddr *)&to, 1), EAFNOSUPPORT);
	CHECK(rdma_get_src_port(id) == 0);
	CHECK(rdma_bind_addr(id, (struct sockaddr *)&six) == 0);
	CHECK(rdma_get_local_addr(id)->sa_family == AF_INET6 && rdma_get_src_port(id) == htons(7471));
	CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &yes, sizeof(yes)) == 0);
	CHECK(rdma_bind_addr(id, (struct sockaddr *)&six) == 0);
	CHECK(fake_ids[handle_of(id)].local.family == AF_INET6); /* the option has its effect in urdmad */
	finish(id);
	CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(inet_pton(AF_INET6, "::ffff:10.0.0.1", &six.sin6_addr) == 1);
	CHECK(rdma_bind_addr(id, (struct sockaddr *)&six) == 0);
	CHECK(!memcmp(rdma_get_local_addr(id), &six, sizeof(six)) && id->verbs);
	CHECK(fake_ids[handle_of(id)].local.family == AF_INET);
	CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&six, 1) == 0);
	expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(!memcmp(rdma_get_peer_addr(id), &six, sizeof(six)));
	CHECK(rdma_get_local_addr(id)->sa_family == AF_INET6);
	finish(id);
	to = address("127.0.0.1", 1);
	CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(id, (struct sockaddr *)&to) == 0);
	CHECK(!id->verbs && !memcmp(rdma_get_local_addr(id), &to, sizeof(to)));
	six.sin6_addr = in6addr_loopback;
	CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&six, 1) == 0);
	expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	finish(id);
	CHECK(inet_pton(AF_INET6, "fe80::1", &six.sin6_addr) == 1);
	six.sin6_scope_id = 3;
	CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(id, (struct sockaddr *)&six) == 0);
	CHECK(fake_ids[handle_of(id)].local.family == AF_INET6 && fake_ids[handle_of(id)].local.scope_id == 3);
	CHECK(!memcmp(fake_ids[handle_of(id)].local.addr, &six.sin6_addr, 16));
	CHECK(!memcmp(rdma_get_local_addr(id), &six, sizeof(six)));
	finish(id);
	rdma_destroy_event_channel(channel);
}

void test_written_addresses(void)
{
	struct urdma_abi_addr four = { .family = AF_INET, .port_be = htons(1), .addr = { 10, 0, 0, 2 } };
	struct urdma_abi_addr six = { .family = AF_INET6, .port_be = htons(2), .scope_id = 3, .addr = { [15] = 1 } };
	struct sockaddr_in want = address("10.0.0.2", 1);
	struct sockaddr_storage got = { 0 };
	const struct sockaddr_in6 *in6 = (const void *)&got;

	cm_address_write(&four, (struct sockaddr *)&got);
	CHECK(memcmp(&got, &want, sizeof(want)) == 0);
	cm_address_write(&six, (struct sockaddr *)&got);
	CHECK(in6->sin6_family == AF_INET6 && in6->sin6_port == htons(2) && in6->sin6_scope_id == 3);
	CHECK(IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr));
}

void test_getaddrinfo(void)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP };
	struct sockaddr_in from = address("10.0.0.9", 3);
	struct addrinfo *known;
	struct rdma_addrinfo *res;
	struct sockaddr_in *in;

	REFUSES(rdma_getaddrinfo(NULL, NULL, NULL, &res), EINVAL);
	CHECK(rdma_getaddrinfo("10.0.0.2", "7471", NULL, &res) == 0);
	in = (struct sockaddr_in *)res->ai_dst_addr;
	CHECK(res->ai_family == AF_INET && res->ai_dst_len == sizeof(*in) && !res->ai_src_len);
	CHECK(in->sin_port == htons(7471) && in->sin_addr.s_addr == htonl(0x0a000002));
	CHECK(res->ai_port_space == RDMA_PS_TCP && res->ai_qp_type == IBV_QPT_RC && !res->ai_next);
	rdma_freeaddrinfo(res);

	hints.ai_flags = RAI_PASSIVE;
	CHECK(rdma_getaddrinfo(NULL, "7471", &hints, &res) == 0);
	in = (struct sockaddr_in *)res->ai_src_addr;
	CHECK(res->ai_flags == RAI_PASSIVE && in->sin_addr.s_addr == 0 && !res->ai_dst_len);
	rdma_freeaddrinfo(res);

	hints.ai_flags = 0;
	if (getaddrinfo("localhost", NULL, NULL, &known) == 0) { /* there may be no /etc/hosts */
		freeaddrinfo(known);
		CHECK(rdma_getaddrinfo("localhost", NULL, &hints, &res) == 0);
		rdma_freeaddrinfo(res);
	}
	hints.ai_flags = RAI_NUMERICHOST;
	CHECK(rdma_getaddrinfo("localhost", "7471", &hints, &res) == EAI_NONAME);
	CHECK(rdma_getaddrinfo("fd00::2", "7471", &hints, &res) == 0);
	CHECK(res->ai_family == AF_INET6 && res->ai_dst_len == sizeof(struct sockaddr_in6));
	CHECK(((struct sockaddr_in6 *)res->ai_dst_addr)->sin6_addr.s6_addr[15] == 2);
	rdma_freeaddrinfo(res);
	CHECK(rdma_getaddrinfo("10.0.0.2", "no-such-service", &hints, &res) == EAI_SERVICE);
	hints.ai_flags = RAI_FAMILY;
	hints.ai_family = AF_INET6;
	CHECK(rdma_getaddrinfo("::1", "7471", &hints, &res) == 0 && res->ai_family == AF_INET6);
	rdma_freeaddrinfo(res);

	hints = (struct rdma_addrinfo){ .ai_port_space = RDMA_PS_UDP };
	CHECK(rdma_getaddrinfo("10.0.0.2", "7471", &hints, &res) == 0);
	CHECK(res->ai_qp_type == IBV_QPT_UD);
	rdma_freeaddrinfo(res);
	hints.ai_port_space = RDMA_PS_TCP;
	hints.ai_qp_type = IBV_QPT_UD;
	CHECK(rdma_getaddrinfo("10.0.0.2", "7471", &hints, &res) == EAI_SOCKTYPE);

	hints = (struct rdma_addrinfo){
		.ai_src_addr = (struct sockaddr *)&from, .ai_src_len = sizeof(from),
	};
	CHECK(rdma_getaddrinfo("10.0.0.2", "7471", &hints, &res) == 0);
	CHECK(((struct sockaddr_in *)res->ai_src_addr)->sin_port == htons(3));
	rdma_freeaddrinfo(res);
	hints.ai_dst_addr = (struct sockaddr *)&from;
	hints.ai_dst_len = sizeof(from);
	hints.ai_qp_type = IBV_QPT_RC;
	CHECK(rdma_getaddrinfo(NULL, NULL, &hints, &res) == 0);
	CHECK(res->ai_dst_len == sizeof(from) && res->ai_src_len && res->ai_qp_type == IBV_QPT_RC);
	rdma_freeaddrinfo(res);
}
