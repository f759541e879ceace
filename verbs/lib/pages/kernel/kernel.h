/*
 * What the kernel says of this process: its mappings, how many threads it has,
 * whether memory of it is pinned or locked. One thread at a time may ask.
 */
#ifndef URDMA_PAGES_KERNEL_H
#define URDMA_PAGES_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#pragma GCC visibility push(hidden)

#define PAGE UINT64_C(4096)

/* Our descriptors' numbers: beyond those that a program counts on getting. */
#define LOWEST_FD 200

/* kept.c */
enum proc_file { PROC_MAPS, PROC_TASK, PROC_STATUS, PROC_PAGEMAP, PROC_OVERCOMMIT, PROC_FILES };
long proc_open(enum proc_file which, struct stat *st);
void proc_close(enum proc_file which, int fd);
void proc_close_all(void);

/* maps.c */
/* A mapping as the kernel tells it. */
struct vma {
	uint64_t start, end, offset, inode;
	uint32_t major, minor;
	int prot;
	bool shared, huge;
};

#define MAPS_SEEN 8

struct maps {
	int fd;
	bool text;       /* no PROCMAP_QUERY: we parse lines */
	size_t at, have; /* the text buffer's unread part */
	/* Text: the last lines parsed, neighbours in the file, oldest first. */
	struct vma seen[MAPS_SEEN];
	unsigned seen_count;
};

int maps_open(struct maps *m);
void maps_close(struct maps *m);
void maps_rewind(struct maps *m);
int maps_find(struct maps *m, uint64_t addr, struct vma *v);

/* status.c */
struct memory_status {
	bool pinned, locked; /* some page is; locked also where nothing is known */
};
struct memory_status status_of_memory(void);
bool threads_alone(void);

/* pagemap.c */
int pagemap_open(void);
void pagemap_close(int fd);
bool pagemap_read(int fd, uint64_t addr, unsigned pages, uint64_t *entry);
/* Nothing is there, not in swap either: anonymous memory that reads as zero. */
static inline bool pagemap_is_empty(uint64_t entry)
{
	const uint64_t soft_dirty = UINT64_C(1) << 55; /* of the whole mapping, too */
	return (entry & ~soft_dirty) == 0;
}

#pragma GCC visibility pop
#endif
