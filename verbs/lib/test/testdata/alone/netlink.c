/*
 * netlink.c - a program with a socket of NETLINK_RDMA, as one of few descriptors or of many: the names that calls
 * return are netlink's, and fit into its buffers.
 */
#include <linux/netlink.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define UNTOUCHED 0xee
#define MANY 2000

#define EXPECT(condition)                                                            \
	do {                                                                         \
		if (!(condition)) {                                                  \
			printf("line %d: not so: %s (%m)\n", __LINE__, #condition); \
			failures++;                                                  \
		}                                                                    \
	} while (0)

static int failures;

static void expect_name(const unsigned char *name, size_t size, socklen_t room, socklen_t length)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	size_t copied = room < sizeof(kernel) ? room : sizeof(kernel);

	EXPECT(length == sizeof(kernel));
	EXPECT(memcmp(name, &kernel, copied) == 0);
	for (size_t i = room; i < size; i++)
		EXPECT(name[i] == UNTOUCHED);
}

static void use_socket(void)
{
	static const socklen_t rooms[] = { 0, 4, sizeof(struct sockaddr_nl), 32 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	struct sockaddr_nl own = { .nl_family = AF_NETLINK };

	EXPECT(fd >= 0 && bind(fd, (struct sockaddr *)&own, sizeof(own)) == 0);
	for (size_t i = 0; i < LENGTH(rooms); i++) {
		uint32_t message[4] = { 1000 }; /* a request that nobody knows */
		unsigned char name[32];
		struct iovec part = { message, sizeof(message) };
		struct msghdr m = { .msg_name = name, .msg_namelen = rooms[i], .msg_iov = &part, .msg_iovlen = 1 };
		socklen_t length = rooms[i];

		memset(name, UNTOUCHED, sizeof(name));
		EXPECT(send(fd, message, sizeof(message), 0) == sizeof(message));
		EXPECT(recvmsg(fd, &m, 0) == sizeof(message));
		expect_name(name, sizeof(name), rooms[i], m.msg_namelen);
		memset(name, UNTOUCHED, sizeof(name));
		EXPECT(getsockname(fd, (struct sockaddr *)name, &length) == 0);
		expect_name(name, sizeof(name), rooms[i], length);
	}
	close(fd);
}

static void open_many(void)
{
	struct rlimit most;

	getrlimit(RLIMIT_NOFILE, &most);
	most.rlim_cur = most.rlim_max;
	setrlimit(RLIMIT_NOFILE, &most);
	for (int fd = 0; fd >= 0 && fd < MANY;)
		fd = dup(STDERR_FILENO);
}

int main(void)
{
	use_socket();
	open_many();
	use_socket();
	return failures;
}
