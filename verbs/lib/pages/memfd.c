//go:build c_only
/* The memfd: sparse, as long as the address space, and sealed so that it can't be shrunk while urdmad maps
 * it. It is created when the arena is first used. */
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "internal.h"
#include "kernel/sys.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3; a sysctl may require it */
#endif
#define LOWEST_FD 200 /* above the numbers that programs expect to get */

static struct {
	int fd;
	uint64_t inode; /* 0: there is no memfd */
	uint32_t major, minor;
} file = { .fd = -1 };

/* With a file size limit, extending the file would raise SIGXFSZ. */
static bool size_limited(void)
{
	struct rlimit l = { 0, 0 };
	long r = sys6(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&l, 0, 0);
	return sys_failed(r) || l.rlim_cur < URDMA_PAGES_FILE_SIZE;
}

static int move_up(int fd)
{
	long up = sys6(SYS_fcntl, fd, F_DUPFD_CLOEXEC, LOWEST_FD, 0, 0, 0);
	if (sys_failed(up))
		return fd;
	sys_close(fd);
	return (int)up;
}

static int create(void)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	long fd = sys6(SYS_memfd_create, (long)"urdma", flags | MFD_NOEXEC_SEAL,
	               0, 0, 0, 0);
	if (fd == -EINVAL)
		fd = sys6(SYS_memfd_create, (long)"urdma", flags, 0, 0, 0, 0);
	if (sys_failed(fd))
		return (int)fd;
	fd = move_up((int)fd);
	long r = sys6(SYS_ftruncate, fd, (long)URDMA_PAGES_FILE_SIZE, 0, 0, 0, 0);
	if (!sys_failed(r))
		r = sys6(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK, 0, 0, 0);
	if (!sys_failed(r))
		return (int)fd;
	sys_close((int)fd);
	return (int)r;
}

bool memfd_is(uint64_t inode, uint32_t maj, uint32_t min)
{
	return inode && inode == __atomic_load_n(&file.inode, __ATOMIC_ACQUIRE) &&
	       maj == file.major && min == file.minor;
}

/* Returns the descriptor, unless the program has closed it (closefrom) and perhaps reused its number. */
int memfd_get(void)
{
	struct stat st;
	if (file.fd >= 0 && !sys_failed(sys_fstat(file.fd, &st)) &&
	    memfd_is(st.st_ino, major(st.st_dev), minor(st.st_dev)))
		return file.fd;
	return -EBADF;
}

int memfd_ready(void)
{
	struct stat st;
	if (file.inode)
		return memfd_get();
	if (size_limited())
		return -EFBIG;
	int fd = create();
	if (fd < 0 || sys_failed(sys_fstat(fd, &st)))
		return fd < 0 ? fd : -EIO;
	file.fd = fd;
	file.major = major(st.st_dev);
	file.minor = minor(st.st_dev);
	__atomic_store_n(&file.inode, st.st_ino, __ATOMIC_RELEASE);
	return fd;
}

/* Called in a child: the file is the parent's. */
void memfd_leave(void)
{
	int fd = memfd_get();
	if (fd >= 0)
		sys_close(fd);
	file.fd = -1;
	__atomic_store_n(&file.inode, 0, __ATOMIC_RELEASE);
}
