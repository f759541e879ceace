/*
 * connect.c - connect(2) to the IPv4 address of a port of this machine's urdmads reaches the local host if the kernel
 * does not have that address, as with loopback and memif ports. Programs such as perftest without -R exchange
 * their queue pairs' numbers over a TCP connection to the address that the user gives for the device.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../session/session.h"
#include "interpose.h"

/* Only a process that has looked for devices knows their addresses: no other one asks urdmad for them. */
static bool is_port(const struct sockaddr *to)
{
	struct urdma_client *client = urdma_client_current();

	for (uint32_t i = 0; client && i < urdma_client_devices(client); i++)
		if (urdma_same_address(to, urdma_device_info(client, i)))
			return true;
	return false;
}

/* Reports whether URDMA_LOCAL_ADDRESSES has the address: that of a urdmad of this machine that is not the process's
 * own. The addresses are separated by commas. */
static bool is_other_port(const struct sockaddr *to)
{
	const char *at = getenv("URDMA_LOCAL_ADDRESSES");
	char address[INET_ADDRSTRLEN];
	size_t length;

	if (!at || !inet_ntop(AF_INET, &((const struct sockaddr_in *)to)->sin_addr, address, sizeof(address)))
		return false;
	for (; *at; at += length + (at[length] == ',')) {
		length = strcspn(at, ",");
		if (length == strlen(address) && memcmp(at, address, length) == 0)
			return true;
	}
	return false;
}

/* Asks the kernel itself: a library behind this one, such as librspreload, may have given the descriptor another
 * meaning. */
static bool is_tcp(int fd)
{
	int before = errno, type = 0;
	socklen_t length = sizeof(type);

	syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &length);
	errno = before;
	return type == SOCK_STREAM;
}

/* Tries to bind a socket to the address. */
static bool kernel_has(struct sockaddr_in address)
{
	int before = errno, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool has;

	address.sin_port = 0; /* any */
	has = fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	urdma_close(fd);
	errno = before;
	return has;
}

EXPORT int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t length)
{
	struct sockaddr_in local;

	if (!to.__sockaddr__ || length != sizeof(local) || to.__sockaddr__->sa_family != AF_INET ||
	    !(is_port(to.__sockaddr__) || is_other_port(to.__sockaddr__)) || !is_tcp(fd))
		return REAL(connect)(fd, to, length);
	memcpy(&local, to.__sockaddr__, sizeof(local));
	if (!kernel_has(local))
		local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return REAL(connect)(fd, (struct sockaddr *)&local, length);
}
