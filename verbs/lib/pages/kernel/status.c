/*
 * Pages that the kernel holds on to by themselves (FOLL_LONGTERM) keep being
 * read and written by it when another page takes their place: io_uring's
 * registered buffers, for one. The kernel tells how much of a process is pinned
 * and not where, so while any is, no page changes hands.
 *
 * Not counted there, and so not seen: AF_XDP's and vfio's memory, and direct I/O
 * that is under way into a page at the very moment.
 */
#include "kernel.h"
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

/* The field is there and it isn't 0. */
static bool any(const char *at)
{
	while (at && (*at == ' ' || *at == '\t'))
		at++;
	return at && *at >= '1' && *at <= '9';
}

/* Reads on until both fields were there: the groups of a process come before them,
 * of which it may have 65,536. Pieces overlap by more than a field is long. */
static struct memory_status read_status(int fd)
{
	struct memory_status all = { .locked = true };
	const char *locked = NULL, *pinned = NULL;
	char text[4096];
	enum { OVERLAP = 64, VALUE = 40 };
	for (uint64_t at = 0; !pinned; at += sizeof text - 1 - OVERLAP) {
		long n = sys_pread(fd, (uint64_t)text, sizeof text - 1, at);
		if (n <= OVERLAP || sys_failed(n))
			break;
		text[n] = '\0';
		locked = find(text, "\nVmLck:");
		pinned = find(text, "\nVmPin:");
		if (locked)
			all.locked = any(locked);
		if (pinned && n == sizeof text - 1 && pinned > text + n - VALUE)
			pinned = NULL; /* perhaps cut: the next piece has it whole */
		all.pinned = any(pinned);
	}
	return all;
}

struct memory_status status_of_memory(void)
{
	struct stat st;
	long fd = proc_open(PROC_STATUS, &st);
	if (sys_failed(fd))
		return (struct memory_status){ .locked = true };
	struct memory_status now = read_status((int)fd);
	proc_close(PROC_STATUS, (int)fd);
	return now;
}

/* Link count of the task directory: 2 and one for each thread. */
bool threads_alone(void)
{
	struct stat st;
	long fd = proc_open(PROC_TASK, &st);
	if (sys_failed(fd) && stat("/proc/self/task", &st) != 0)
		return false;
	proc_close(PROC_TASK, (int)fd);
	return st.st_nlink == 3;
}
