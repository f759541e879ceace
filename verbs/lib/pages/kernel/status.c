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

struct memory_status status_of_memory(void)
{
	struct memory_status none = { .locked = true };
	char text[4096]; /* the fields are in the first kilobyte or so */
	struct stat st;
	long fd = proc_open(PROC_STATUS, &st);
	if (sys_failed(fd))
		return none;
	long n = sys_pread((int)fd, (uint64_t)text, sizeof text - 1, 0);
	proc_close(PROC_STATUS, (int)fd);
	if (sys_failed(n))
		return none;
	text[n] = '\0';
	const char *locked = find(text, "\nVmLck:");
	return (struct memory_status){ .pinned = any(find(text, "\nVmPin:")),
		                       .locked = !locked || any(locked) };
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
