/*
 * file.c - the file that a program maps shared, as a descriptor that urdmad can map.
 *
 * One that the program has open is lent as it is: to close any descriptor of a file would
 * release the program's locks of it (fcntl(2)). A program that has none open has no locks;
 * then the file is opened where the kernel allows it, or by its path.
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

/* urdmad takes no other: a page of it makes nobody wait. */
static bool in_memory(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC_NUMBER || (uint32_t)fs.f_type == HUGETLBFS_MAGIC_NUMBER);
}

enum found { NONE, WRONG_MODE, GOOD };

/* Among the descriptors of the process. */
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

/* The kernel's link to what is mapped, which few may follow. */
static int open_mapped(const char *link, const struct urdma_shared *file)
{
	int fd = open(link, O_RDWR | O_CLOEXEC);

	if (fd >= 0 && is(fd, file))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* What lies at the path may be another file now: it is looked at before it is opened. */
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

/* What urdmad maps the program could map, too; so it does for a moment, and has all pages of
 * it exist that can. A dma-buf's length is not in st_size before Linux 5.19. */
int urdma_file_lend(int fd, uint64_t offset, uint64_t length, bool writes, struct urdma_shared *file)
{
	struct stat st;
	uint64_t skip;
	void *memory;

	if (fstat(fd, &st))
		return errno;
	skip = offset & ((uint64_t)(st.st_blksize > 4096 ? st.st_blksize : 4096) - 1); /* huge pages are mapped whole */
	if (!st.st_size)
		st.st_size = lseek(fd, 0, SEEK_END);
	if (st.st_size < 0 || offset > (uint64_t)st.st_size || length > (uint64_t)st.st_size - offset)
		return EINVAL;
	memory = mmap(NULL, length + skip, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(offset - skip));
	if (memory == MAP_FAILED)
		return EOPNOTSUPP;
	syscall(SYS_madvise, memory, length + skip, writes ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	munmap(memory, length + skip);
	*file = (struct urdma_shared){ .inode = st.st_ino, .major = major(st.st_dev), .minor = minor(st.st_dev), .offset = offset };
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
