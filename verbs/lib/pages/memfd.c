//go:build c_only
/* The sparse memfds: as long as the address space, sealed so that nobody can shrink them
 * under the daemon, made when the first page needs one. */
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "internal.h"
#include "kernel/sys.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3; a sysctl may demand it */
#endif
/* A file size limit would raise SIGXFSZ at our offsets. */
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

static bool is_ours(int fd, int file)
{
	const struct state *s = &urdma_pages_state;
	struct stat st;
	return fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == s->inode[file] &&
	       major(st.st_dev) == s->major && minor(st.st_dev) == s->minor;
}

/* The fd, unless the program closed it (closefrom) and reused its number.
 * Asked once for each time the table lock is held. */
int memfd_get(int file)
{
	struct state *s = &urdma_pages_state;
	if (s->checked[file])
		return s->fds[file];
	if (!is_ours(s->fds[file], file))
		return -EBADF;
	s->checked[file] = true;
	return s->fds[file];
}

/* Without a descriptor to look into /proc with, a process at its limit could
 * neither give registered memory back nor let a child have it. False: there is
 * none to spend. */
static bool spend_spare(void)
{
	struct state *s = &urdma_pages_state;
	int fd = s->spare;
	s->spare = -1;
	if (!is_ours(fd, 0))
		return false;
	sys_close(fd);
	return true;
}

static void make_spare(void)
{
	struct state *s = &urdma_pages_state;
	if (s->spare >= 0 || memfd_get(0) < 0)
		return;
	long fd = sys6(SYS_fcntl, s->fds[0], F_DUPFD_CLOEXEC, LOWEST_FD, 0, 0, 0);
	if (fd == -EINVAL) /* the limit is lower */
		fd = sys6(SYS_fcntl, s->fds[0], F_DUPFD_CLOEXEC, 0, 0, 0, 0);
	s->spare = sys_failed(fd) ? -1 : (int)fd;
}

int memfd_ready(int file, const char **why)
{
	struct state *s = &urdma_pages_state;
	struct stat st;
	if (size_limited()) {
		*why = "a file size limit (ulimit -f) is set";
		return -EFBIG;
	}
	if (s->inode[file]) {
		int fd = memfd_get(file);
		if (fd < 0)
			*why = "the program closed the memory file's descriptor";
		return fd;
	}
	int fd = create();
	if (fd < 0 || fstat(fd, &st) != 0) {
		*why = "memfd_create failed";
		return fd < 0 ? fd : -EIO;
	}
	s->fds[file] = fd;
	s->inode[file] = st.st_ino;
	s->major = major(st.st_dev);
	s->minor = minor(st.st_dev);
	make_spare();
	return fd;
}

int pages_open_maps(struct maps *m)
{
	int err = maps_open(m);
	if ((err == -EMFILE || err == -ENFILE) && spend_spare())
		err = maps_open(m);
	return err;
}

void pages_close_maps(struct maps *m)
{
	maps_close(m);
	make_spare();
}

/* In a child: the files are its parent's. Mappings of them are still known. */
void memfd_close_all(void)
{
	struct state *s = &urdma_pages_state;
	spend_spare();
	for (int i = 0; i < FILES; i++) {
		int fd = memfd_get(i);
		if (fd >= 0)
			sys_close(fd);
		s->fds[i] = -1;
		s->checked[i] = false;
	}
}

void memfd_forget_all(void)
{
	memfd_close_all();
	for (int i = 0; i < FILES; i++)
		urdma_pages_state.inode[i] = 0;
}
