/*
 * kept.h - descriptors that the library keeps between calls. Programs close all descriptors (closefrom(3),
 * as daemons and launchers do) and reuse their numbers. So before one is used, the library checks that it
 * still refers to the same file. Works for files with an inode of their own, such as sockets.
 */
#ifndef URDMA_KEPT_H
#define URDMA_KEPT_H

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct urdma_kept {
	int fd; /* -1: none */
	dev_t device;
	ino_t inode;
};

/* Does not change errno. */
static inline bool urdma_identify(int fd, struct urdma_kept *kept)
{
	int before = errno;
	struct stat st;
	bool open = fstat(fd, &st) == 0;

	if (open)
		*kept = (struct urdma_kept){ fd, st.st_dev, st.st_ino };
	errno = before;
	return open;
}

static inline void urdma_keep(struct urdma_kept *kept, int fd)
{
	kept->fd = -1;
	if (fd >= 0)
		urdma_identify(fd, kept);
}

static inline bool urdma_kept_is(const struct urdma_kept *kept)
{
	struct urdma_kept now;

	return kept->fd >= 0 && urdma_identify(kept->fd, &now) && now.device == kept->device && now.inode == kept->inode;
}

/* A raw system call: close(2) is a cancellation point, and locks may be held. */
static inline void urdma_kept_close(struct urdma_kept *kept)
{
	if (urdma_kept_is(kept))
		syscall(SYS_close, kept->fd);
	kept->fd = -1;
}

#endif /* URDMA_KEPT_H */
