/* sysfs.c - the sysfs path for programs that read sysfs themselves: a small tree that urdmad maintains
 * next to its socket. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "../session/client.h"
#include "device.h"

URDMA_EXPORT const char *ibv_get_sysfs_path(void);
URDMA_EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

/* Never /sys: the devices there are the kernel's. */
const char *ibv_get_sysfs_path(void)
{
	struct urdma_client *client = urdma_client_get();

	return client && client->sysfs_path[0] ? client->sysfs_path : "/nonexistent/urdma";
}

/* Returns the number of bytes read, or -1. The text is NUL-terminated and one trailing newline is removed. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[512];
	ssize_t n;
	int fd;

	if (size == 0 || (size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path))
		return urdma_fail(EINVAL);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, buf, size);
	urdma_close(fd);
	if (n < 0)
		return -1;
	if (n > 0 && buf[n - 1] == '\n')
		n--;
	if ((size_t)n == size)
		n--;
	buf[n] = '\0';
	return (int)n;
}
