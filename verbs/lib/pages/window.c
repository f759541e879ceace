//go:build c_only
/*
 * The window: while a range's pages are elsewhere, threads that touch it wait
 * in userfaultfd(2). Root and vm.unprivileged_userfaultfd=1 get the kind that
 * also holds back the kernel's own accesses (system calls of those threads);
 * so does /dev/userfaultfd for users whom its mode admits. Others get user-mode
 * faults only: a system call into the range fails with EFAULT meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

#include "internal.h"
#include "kernel/sys.h"

#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif

static long open_device(void)
{
	long dev = sys_open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	if (sys_failed(dev))
		return dev;
	long fd = sys_ioctl((int)dev, USERFAULTFD_IOC_NEW,
	                    (void *)(O_CLOEXEC | O_NONBLOCK));
	sys_close((int)dev);
	return fd;
}

static long open_any(enum window_kind *kind)
{
	*kind = WINDOW_FULL;
	long fd = sys6(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK, 0, 0, 0, 0, 0);
	if (fd == -EPERM)
		fd = open_device();
	if (!sys_failed(fd))
		return fd;
	*kind = WINDOW_USER_ONLY;
	return sys6(SYS_userfaultfd,
	            O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY, 0, 0, 0, 0, 0);
}

/* Pages of a memfd come back through minor faults, so a kernel without them
 * (before 5.14) converts nothing in a threaded process. */
void window_open(struct window *w)
{
	*w = (struct window){ .kind = WINDOW_ALONE, .uffd = -1 };
	if (threads_alone())
		return;
	long fd = open_any(&w->kind);
	struct uffdio_api api = { .api = UFFD_API,
	                          .features = UFFD_FEATURE_MINOR_SHMEM };
	if (!sys_failed(fd) && !sys_failed(sys_ioctl((int)fd, UFFDIO_API, &api))) {
		w->uffd = (int)fd;
		return;
	}
	if (!sys_failed(fd))
		sys_close((int)fd);
	w->kind = WINDOW_NONE;
}

void window_close(struct window *w)
{
	if (w->uffd >= 0)
		sys_close(w->uffd);
	w->uffd = -1;
}

/* From here on a page of the range that isn't mapped holds its reader back.
 * file: the range maps a memfd; its mapped pages are unmapped here. */
long window_shut(const struct window *w, uint64_t addr, uint64_t len, bool file)
{
	const int dontneed = 4; /* MADV_DONTNEED */
	if (w->uffd < 0)
		return 0;
	struct uffdio_register reg = {
		.range = { .start = addr, .len = len },
		.mode = UFFDIO_REGISTER_MODE_MISSING |
		        (file ? UFFDIO_REGISTER_MODE_MINOR : 0),
	};
	long r = sys_ioctl(w->uffd, UFFDIO_REGISTER, &reg);
	if (sys_failed(r) || !file)
		return r;
	r = sys_madvise(addr, len, dontneed);
	if (sys_failed(r))
		window_cancel(w, addr, len);
	return r;
}

/* Undoes window_shut where the mapping is still the one it was. */
void window_cancel(const struct window *w, uint64_t addr, uint64_t len)
{
	struct uffdio_range range = { .start = addr, .len = len };
	if (w->uffd < 0)
		return;
	sys_ioctl(w->uffd, UFFDIO_UNREGISTER, &range);
	window_wake(w, addr, len);
}

void window_wake(const struct window *w, uint64_t addr, uint64_t len)
{
	struct uffdio_range range = { .start = addr, .len = len };
	if (w->uffd >= 0)
		sys_ioctl(w->uffd, UFFDIO_WAKE, &range);
}
