/* Queries of the process's memory mappings. */
#ifndef URDMA_PAGES_KERNEL_H
#define URDMA_PAGES_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

#define PAGE UINT64_C(4096)

/* A mapping as the kernel reports it. */
struct vma {
	uint64_t start, end, offset, inode;
	uint32_t major, minor;
	int prot;
	bool shared;
};

struct maps {
	int fd;
	bool text;       /* PROCMAP_QUERY is not available: parse lines of text */
	size_t at, have; /* the unread part of buffer */
	struct vma last; /* text: the line parsed last */
	char buffer[4096]; /* the maximum that one read(2) of the file returns */
};

int maps_open(struct maps *m);
void maps_close(struct maps *m);
int maps_find(struct maps *m, uint64_t addr, struct vma *v);

#pragma GCC visibility pop
#endif
