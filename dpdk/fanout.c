#include <errno.h>
#include <linux/if_packet.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* DPDK's af_packet driver calls this instead of the C library's function. The driver puts each socket into
 * a fanout group with the id pid ^ interface index. Two processes in one network namespace can have the
 * same id, and the kernel refuses the second. Our ports have one queue (oneQueue in vdev.go) and need no
 * group, so the option is ignored. */
int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	if (level == SOL_PACKET && name == PACKET_FANOUT)
		return 0;
	return (int)syscall(SYS_setsockopt, fd, level, name, value, len);
}
