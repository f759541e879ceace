//go:build c_only
/*
 * Pages that the kernel holds on to by themselves (FOLL_LONGTERM) keep being
 * read and written by it when another page takes their place: io_uring's
 * registered buffers, for one. The kernel tells how much of a process is pinned
 * and not where, so while any is, no page changes hands.
 *
 * Not counted there, and so not seen: AF_XDP's and vfio's memory, and direct I/O
 * that is under way into a page at the very moment.
 */
#include <fcntl.h>

#include "internal.h"
#include "sys.h"

static const char *find(const char *text, const char *key)
{
	for (; *text; text++) {
		const char *a = text, *b = key;
		while (*b && *a == *b)
			a++, b++;
		if (!*b)
			return a;
	}
	return NULL;
}

bool pages_pinned(void)
{
	char text[4096]; /* the field is in the first kilobyte or so */
	long fd = sys_open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	if (sys_failed(fd))
		return false;
	long n = sys_read((int)fd, text, sizeof text - 1);
	sys_close((int)fd);
	if (sys_failed(n))
		return false;
	text[n] = '\0';
	const char *at = find(text, "\nVmPin:");
	while (at && (*at == ' ' || *at == '\t'))
		at++;
	return at && *at >= '1' && *at <= '9';
}
