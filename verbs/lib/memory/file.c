/*
 * file.c - finds a descriptor for a file that the program maps shared, so that urdmad can map it.
 *
 * If the program has the file open, its own descriptor is used and not closed: closing any descriptor of a
 * file releases the process's locks on it (fcntl(2)). If it has none open it holds no locks, and the file
 * is opened through /proc/self/map_files or by its path.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "../session/session.h"
#include "memory.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif
#define TMPFS_MAGIC_NUMBER 0x01021994
#define HUGETLBFS_MAGIC_NUMBER 0x958458f6

static bool is(int fd, const struct urdma_shared *file)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_ino == file->inode && major(st.st_dev) == file->major &&
	       minor(st.st_dev) == file->minor;
}

/* urdmad accepts only files on these file systems, because access to their pages never waits for a device. */
static bool in_memory(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC_NUMBER || (uint32_t)fs.f_type == HUGETLBFS_MAGIC_NUMBER);
}

enum found { NONE, WRONG_MODE, GOOD };

/* Searches the descriptors of this process. */
static enum found find_open(const struct urdma_shared *file, int *fd)
{
	DIR *all = opendir("/proc/self/fd");
	enum found found = all ? NONE : WRONG_MODE;
	struct dirent *entry;

	while (all && found != GOOD && (entry = readdir(all))) {
		*fd = atoi(entry->d_name);
		if (entry->d_name[0] == '.' || *fd == dirfd(all) || !is(*fd, file))
			continue;
		found = (fcntl(*fd, F_GETFL) & O_ACCMODE) == O_RDWR && in_memory(*fd) ? GOOD : WRONG_MODE;
	}
	if (all)
		closedir(all);
	return found;
}

/* Opens the kernel's link to the mapped file, for which few processes have permission. */
static int open_mapped(const char *link, const struct urdma_shared *file)
{
	int fd = open(link, O_RDWR | O_CLOEXEC);

	if (fd >= 0 && is(fd, file))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* The path may lead to another file by now, so the file is checked before it is opened for reading. */
static int open_path(const char *link, const struct urdma_shared *file)
{
	char path[4096], again[64];
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	int fd = -1, at;

	if (n <= 0)
		return -1;
	path[n] = '\0';
	at = open(path, O_PATH | O_CLOEXEC);
	if (at < 0)
		return -1;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", at);
	if (is(at, file) && in_memory(at))
		fd = open(again, O_RDWR | O_CLOEXEC);
	close(at);
	return fd;
}

int urdma_file_find(const struct urdma_shared *file, bool *opened)
{
	char link[96];
	int fd = -1;
	enum found found = find_open(file, &fd);

	*opened = found == NONE;
	if (found != NONE)
		return found == GOOD ? fd : -1;
	snprintf(link, sizeof(link), "/proc/self/map_files/%llx-%llx", (unsigned long long)file->start,
		 (unsigned long long)file->end);
	fd = open_path(link, file);
	return fd >= 0 ? fd : open_mapped(link, file);
}

/* Maps the range for a moment, to check that it can be mapped, and populates all pages that exist. A
 * dma-buf's length is not in st_size before Linux 5.19. */
int urdma_file_lend(int fd, uint64_t offset, uint64_t length, bool writes, struct urdma_shared *file)
{
	struct stat st;
	uint64_t skip;
	void *memory;

	if (fstat(fd, &st))
		return errno;
	/* huge pages can only be mapped whole */
	skip = offset & ((uint64_t)(st.st_blksize > 4096 ? st.st_blksize : 4096) - 1);
	if (!st.st_size)
		st.st_size = lseek(fd, 0, SEEK_END);
	if (!length || st.st_size < 0 || offset > (uint64_t)st.st_size || length > (uint64_t)st.st_size - offset)
		return EINVAL;
	memory = mmap(NULL, length + skip, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(offset - skip));
	if (memory == MAP_FAILED)
		return EOPNOTSUPP;
	syscall(SYS_madvise, memory, length + skip, writes ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	munmap(memory, length + skip);
	*file = (struct urdma_shared){ .inode = st.st_ino, .major = major(st.st_dev), .minor = minor(st.st_dev),
					.offset = offset };
	return 0;
}

bool urdma_file_fill(const struct urdma_region *region, bool writes)
{
	uint64_t first = region->addr & ~UINT64_C(4095), last = (region->addr + region->length + 4095) & ~UINT64_C(4095);
	int before = errno, advice = writes ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
	bool filled = syscall(SYS_madvise, first, last - first, advice) == 0 || errno == EINVAL; /* Linux before 5.14 */

	errno = before;
	return filled;
}
