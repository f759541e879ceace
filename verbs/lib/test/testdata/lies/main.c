/*
 * main.c - lies CASE: uses what the library makes of urdmad's messages, on a urdmad that may not tell the truth. Ends
 * with 0, or with 1 at the first call that fails; with 2 if that call gives no errno value. Without arguments lists
 * the cases. Descriptor 3 is a socket of the test's, URDMAD urdmad's own address.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <rdma/ib_user_mad.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BYTES 4096

#define SESSIONS 4 /* as many as a case has, at most */

static uint8_t sent[BYTES], got[BYTES];
static struct rdma_event_channel *channel;
static int group_context;

/* The end of a program whose urdmad has lied: it says which call failed. */
static void done(int line, const char *call)
{
	printf("line %d: %s: errno %d\n", line, call, errno);
	exit(errno > 0 && errno < 4096 ? 1 : 2);
}

#define NEED(condition)                           \
	do {                                      \
		errno = 0;                        \
		if (!(condition))                 \
			done(__LINE__, #condition); \
	} while (0)

/* A call is right, but does not say what it should: that is no failure of the library's. */
#define EXPECT(condition)       \
	do {                    \
		if (!(condition)) \
			exit(1);  \
	} while (0)

static struct sockaddr *place(struct sockaddr_in *at, const char *host, in_port_t port_be)
{
	*at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = port_be };
	inet_pton(AF_INET, host, &at->sin_addr);
	return (struct sockaddr *)at;
}

#define ADDRESS "198.18.0.1"

/* ---- ids with events -------------------------------------------------------------- */

static void touch(const void *data, size_t length)
{
	static uint8_t copy[UINT8_MAX];

	if (length)
		memcpy(copy, data, length);
}

/* Takes the next event, which must be of this type, and returns its id. */
static struct rdma_cm_id *event(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	NEED(rdma_get_cm_event(channel, &e) == 0);
	EXPECT(rdma_event_str(e->event) && e->id && (e->event != RDMA_CM_EVENT_CONNECT_REQUEST || e->listen_id));
	id = e->id;
	EXPECT(e->event == type);
	EXPECT(e->status == 0 || type == RDMA_CM_EVENT_REJECTED);
	if (type == RDMA_CM_EVENT_MULTICAST_JOIN)
		EXPECT(*(const int *)e->param.ud.private_data == 7);
	else if (id->ps == RDMA_PS_UDP)
		touch(e->param.ud.private_data, e->param.ud.private_data_len);
	else
		touch(e->param.conn.private_data, e->param.conn.private_data_len);
	if (type != RDMA_CM_EVENT_CONNECT_REQUEST && type != RDMA_CM_EVENT_DISCONNECTED) /* as programs rely on it */
		EXPECT(id->verbs->device->name[0]);
	NEED(rdma_ack_cm_event(e) == 0);
	return id;
}

static void queues(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = { .qp_type = id->qp_type, .sq_sig_all = 1, .cap = { 4, 4, 1, 1, 0 } };

	EXPECT(id->verbs);
	NEED(rdma_create_qp(id, NULL, &attr) == 0);
}

static struct rdma_cm_id *listener(enum rdma_port_space ps)
{
	struct sockaddr_in at;
	struct rdma_cm_id *id;
	int yes = 1;

	NEED(channel = rdma_create_event_channel());
	NEED(rdma_create_id(channel, &id, NULL, ps) == 0);
	NEED(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes)) == 0);
	NEED(rdma_bind_addr(id, place(&at, ADDRESS, 0)) == 0);
	NEED(rdma_listen(id, 4) == 0);
	return id;
}

/* An id whose route to the listener is resolved. */
static struct rdma_cm_id *resolved(struct rdma_cm_id *to)
{
	struct sockaddr_in at;
	struct rdma_cm_id *id;

	NEED(rdma_create_id(channel, &id, NULL, to->ps) == 0);
	NEED(rdma_resolve_addr(id, NULL, place(&at, ADDRESS, rdma_get_src_port(to)), 2000) == 0);
	event(RDMA_CM_EVENT_ADDR_RESOLVED);
	NEED(rdma_resolve_route(id, 2000) == 0);
	event(RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

/* Sends some bytes from one id to the other, and waits for both completions. */
static void transfer(struct rdma_cm_id *from, struct rdma_cm_id *to)
{
	struct ibv_mr *out, *in;
	struct ibv_wc wc;

	NEED(out = rdma_reg_msgs(from, sent, sizeof(sent)));
	NEED(in = rdma_reg_msgs(to, got, sizeof(got)));
	NEED(rdma_post_recv(to, NULL, got, sizeof(got), in) == 0);
	NEED(rdma_post_send(from, NULL, sent, sizeof(sent), out, 0) == 0);
	NEED(rdma_get_send_comp(from, &wc) == 1);
	NEED(rdma_get_recv_comp(to, &wc) == 1);
	NEED(rdma_dereg_mr(out) == 0 && rdma_dereg_mr(in) == 0);
}

static void end(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	NEED(rdma_destroy_id(id) == 0);
}

static void case_connections(void)
{
	struct rdma_conn_param param = {
		.private_data = sent, .private_data_len = 40, .retry_count = 7, .rnr_retry_count = 7,
	};
	struct rdma_cm_id *l = listener(RDMA_PS_TCP), *a = resolved(l), *b;

	queues(a);
	NEED(rdma_connect(a, &param) == 0);
	b = event(RDMA_CM_EVENT_CONNECT_REQUEST);
	queues(b);
	NEED(rdma_accept(b, &param) == 0);
	event(RDMA_CM_EVENT_ESTABLISHED);
	event(RDMA_CM_EVENT_ESTABLISHED);
	transfer(a, b);
	NEED(rdma_disconnect(a) == 0);
	event(RDMA_CM_EVENT_DISCONNECTED);
	event(RDMA_CM_EVENT_DISCONNECTED);
	end(a);
	end(b);
	NEED(rdma_destroy_id(l) == 0);
	rdma_destroy_event_channel(channel);
}

static void case_refusals(void)
{
	struct rdma_conn_param param = { .private_data = sent, .private_data_len = 40 };
	struct rdma_cm_id *l = listener(RDMA_PS_TCP), *a = resolved(l), *b;
	struct rdma_event_channel *other;

	NEED(other = rdma_create_event_channel());
	queues(a);
	NEED(rdma_connect(a, &param) == 0);
	b = event(RDMA_CM_EVENT_CONNECT_REQUEST);
	NEED(rdma_migrate_id(b, other) == 0);
	NEED(rdma_reject(b, sent, 100) == 0);
	event(RDMA_CM_EVENT_REJECTED);
	end(a);
	NEED(rdma_destroy_id(b) == 0 && rdma_destroy_id(l) == 0);
	rdma_destroy_event_channel(other);
	rdma_destroy_event_channel(channel);
}

static void case_lookups(void)
{
	struct rdma_conn_param param = { .private_data = sent, .private_data_len = 40 };
	struct rdma_cm_id *l = listener(RDMA_PS_UDP), *a = resolved(l), *b;
	struct sockaddr_in group;

	queues(a);
	NEED(rdma_connect(a, &param) == 0);
	b = event(RDMA_CM_EVENT_CONNECT_REQUEST);
	queues(b);
	param.qp_num = b->qp->qp_num;
	NEED(rdma_accept(b, &param) == 0);
	event(RDMA_CM_EVENT_ESTABLISHED);
	group_context = 7;
	NEED(rdma_join_multicast(a, place(&group, "239.1.2.3", 0), &group_context) == 0);
	event(RDMA_CM_EVENT_MULTICAST_JOIN);
	NEED(rdma_leave_multicast(a, (struct sockaddr *)&group) == 0);
	end(a);
	end(b);
	NEED(rdma_destroy_id(l) == 0);
	rdma_destroy_event_channel(channel);
}

/* ---- ids without -------------------------------------------------------------------- */

static in_port_t served;

static struct rdma_cm_id *endpoint(int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags | RAI_NUMERICHOST, .ai_port_space = RDMA_PS_TCP }, *found;
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .sq_sig_all = 1, .cap = { 4, 4, 1, 1, 0 } };
	struct rdma_cm_id *id;
	char port[8];

	snprintf(port, sizeof(port), "%u", ntohs(served));
	NEED(rdma_getaddrinfo(ADDRESS, port, &hints, &found) == 0);
	NEED(rdma_create_ep(&id, found, NULL, &attr) == 0);
	rdma_freeaddrinfo(found);
	return id;
}

static void *asks(void *unused)
{
	struct rdma_cm_id *id = endpoint(0);

	NEED(rdma_connect(id, NULL) == 0);
	NEED(rdma_disconnect(id) == 0);
	rdma_destroy_ep(id);
	return unused;
}

static void case_endpoints(void)
{
	struct rdma_cm_id *l = endpoint(RAI_PASSIVE), *id;
	pthread_t thread;

	NEED(rdma_listen(l, 4) == 0);
	served = rdma_get_src_port(l);
	NEED(pthread_create(&thread, NULL, asks, NULL) == 0);
	NEED(rdma_get_request(l, &id) == 0);
	NEED(rdma_accept(id, NULL) == 0);
	pthread_join(thread, NULL);
	NEED(rdma_disconnect(id) == 0);
	rdma_destroy_ep(id);
	rdma_destroy_ep(l);
}

/* ---- rsockets ------------------------------------------------------------------------- */

static int bound_socket(int type, struct sockaddr_in *at)
{
	socklen_t length = sizeof(*at);
	int fd;

	NEED((fd = rsocket(AF_INET, type, 0)) >= 0);
	NEED(rbind(fd, place(at, ADDRESS, 0), sizeof(*at)) == 0);
	NEED(type == SOCK_DGRAM || rlisten(fd, 4) == 0);
	NEED(rgetsockname(fd, (struct sockaddr *)at, &length) == 0);
	return fd;
}

static void case_streams(void)
{
	struct sockaddr_in at;
	int l = bound_socket(SOCK_STREAM, &at), a, b, iomaps = 2;
	off_t where;
	ssize_t n;

	NEED((a = rsocket(AF_INET, SOCK_STREAM, 0)) >= 0);
	NEED(rsetsockopt(a, SOL_RDMA, RDMA_IOMAPSIZE, &iomaps, sizeof(iomaps)) == 0);
	NEED(rconnect(a, (struct sockaddr *)&at, sizeof(at)) == 0);
	NEED((b = raccept(l, NULL, NULL)) >= 0);
	NEED((where = riomap(b, got, sizeof(got), PROT_WRITE, 0, 0)) >= 0);
	for (int i = 0; i < 100; i++) {
		NEED(rsend(a, sent, sizeof(sent), 0) == sizeof(sent));
		for (size_t left = sizeof(got); left; left -= (size_t)n)
			NEED((n = rrecv(b, got, left, 0)) > 0);
	}
	NEED(rsend(b, sent, 1, 0) == 1 && rrecv(a, got, 1, 0) == 1);
	NEED(riowrite(a, sent, 100, where, 0) == 100);
	NEED(rshutdown(a, SHUT_WR) == 0);
	NEED(rrecv(b, got, sizeof(got), 0) == 0);
	NEED(rclose(a) == 0 && rclose(b) == 0 && rclose(l) == 0);
}

static void case_datagrams(void)
{
	struct sockaddr_in first, second, from;
	int a = bound_socket(SOCK_DGRAM, &first), b = bound_socket(SOCK_DGRAM, &second);
	socklen_t length = sizeof(from);

	for (int i = 0; i < 20; i++) {
		NEED(rsendto(a, sent, 1000, 0, (struct sockaddr *)&second, sizeof(second)) == 1000);
		NEED(rrecvfrom(b, got, sizeof(got), 0, (struct sockaddr *)&from, &length) >= 0);
		NEED(rsendto(b, sent, 10, 0, (struct sockaddr *)&first, sizeof(first)) == 10);
		NEED(rrecv(a, got, sizeof(got), 0) >= 0);
	}
	NEED(rclose(a) == 0 && rclose(b) == 0);
}

/* ---- what libc's calls say ---------------------------------------------------------------- */

static void case_interfaces(void)
{
	struct ifaddrs *list;

	NEED(getifaddrs(&list) == 0);
	for (struct ifaddrs *i = list; i; i = i->ifa_next)
		EXPECT(i->ifa_name[0]);
	freeifaddrs(list);
	NEED(access("/sys/class/infiniband", R_OK) == 0);
	NEED(open("/dev/infiniband/uverbs0", O_RDWR) >= 0);
}

static void case_management(void)
{
	struct ib_user_mad_reg_req agent = { .mgmt_class = 0x81, .mgmt_class_version = 1 }; /* of directed routes */
	uint8_t request[64 + 256] = { 0 }, answer[64 + 256];
	struct ib_user_mad *mad = (struct ib_user_mad *)request;
	int fd;

	NEED((fd = open("/dev/infiniband/umad0", O_RDWR)) >= 0);
	NEED(ioctl(fd, IB_USER_MAD_ENABLE_PKEY) == 0);
	NEED(ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &agent) == 0);
	mad->hdr.id = agent.id;
	mad->hdr.timeout_ms = 100;
	memcpy(request + 64, "\1\x81\1\1", 4); /* Get(NodeInfo), of this node */
	request[64 + 17] = 0x11;
	memset(request + 64 + 32, 0xff, 4);
	NEED(write(fd, request, sizeof(request)) == sizeof(request));
	NEED(read(fd, answer, sizeof(answer)) > 0);
}

static void case_netlink(void)
{
	struct { struct nlmsghdr head; uint8_t rest[64]; } get = {
		.head = { .nlmsg_len = NLMSG_LENGTH(0), .nlmsg_type = 5 << 10 | 1, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP }
	};
	uint8_t answer[16384];
	int fd;

	NEED((fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA)) >= 0);
	NEED(send(fd, &get, get.head.nlmsg_len, 0) > 0);
	NEED(recv(fd, answer, sizeof(answer), 0) > 0);
}

#define CASES(X) X(connections) X(refusals) X(lookups) X(endpoints) X(streams) X(datagrams) X(interfaces) \
	X(management) X(netlink)
#define ENTRY(name) { #name, case_##name },

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = { CASES(ENTRY) };

/* Connects to urdmad, and hands the relay the sockets: urdmad asks the kernel who has connected. */
static void connect_relay(void)
{
	struct sockaddr_un urdmad = { .sun_family = AF_UNIX };
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(SESSIONS * sizeof(int))];
	} rights = { .head = { CMSG_LEN(SESSIONS * sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec part = { sent, 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &rights,
				  .msg_controllen = sizeof(rights) };
	int fds[SESSIONS];

	strncpy(urdmad.sun_path, getenv("URDMAD"), sizeof(urdmad.sun_path) - 1);
	for (int i = 0; i < SESSIONS; i++) {
		NEED((fds[i] = socket(AF_UNIX, SOCK_SEQPACKET, 0)) >= 0);
		NEED(connect(fds[i], (struct sockaddr *)&urdmad, sizeof(urdmad)) == 0);
	}
	memcpy(CMSG_DATA(&rights.head), fds, sizeof(fds));
	NEED(sendmsg(3, &message, 0) == 1);
	for (int i = 0; i < SESSIONS; i++)
		close(fds[i]);
	close(3);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		connect_relay();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc < 2)
			puts(cases[i].name);
		else if (!strcmp(argv[1], cases[i].name))
			return cases[i].run(), 0;
	}
	return argc < 2 ? 0 : 3;
}
