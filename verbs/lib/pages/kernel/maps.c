/* The process's mappings. PROCMAP_QUERY (Linux 6.11) returns the mapping at an address; on older kernels
 * the text of /proc/self/maps is read from the beginning. */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "kernel.h"
#include "sys.h"

struct query { /* struct procmap_query of linux/fs.h */
	uint64_t size, flags, addr;
	uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
	uint32_t major, minor, name_size, build_id_size;
	uint64_t name, build_id;
};
#define QUERY _IOWR('f', 17, struct query)
enum { Q_READ = 1, Q_WRITE = 2, Q_EXEC = 4, Q_SHARED = 8, Q_OR_NEXT = 16 };

int maps_open(struct maps *m)
{
	long fd = sys_open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	m->fd = (int)fd;
	m->text = false;
	m->at = m->have = 0;
	m->last = (struct vma){ 0 };
#ifdef URDMA_PAGES_PARSE_TEXT
	m->text = true; /* lets tests exercise the code for older kernels */
#endif
	return sys_failed(fd) ? (int)fd : 0;
}

void maps_close(struct maps *m)
{
	sys_close(m->fd);
}

static int ask(struct maps *m, uint64_t addr, struct vma *v)
{
	struct query q = { .size = sizeof q, .flags = Q_OR_NEXT, .addr = addr };
	long r = sys_ioctl(m->fd, QUERY, &q);
	if (sys_failed(r))
		return (int)r;
	*v = (struct vma){
		.start = q.vma_start, .end = q.vma_end, .offset = q.vma_offset,
		.inode = q.inode, .major = q.major, .minor = q.minor,
		.shared = q.vma_flags & Q_SHARED,
		.prot = (q.vma_flags & Q_READ ? PROT_READ : 0) |
		        (q.vma_flags & Q_WRITE ? PROT_WRITE : 0) |
		        (q.vma_flags & Q_EXEC ? PROT_EXEC : 0),
	};
	return 0;
}

static int next_char(struct maps *m)
{
	if (m->at == m->have) {
		long n = sys_read(m->fd, m->buffer, sizeof m->buffer);
		m->at = 0;
		m->have = sys_failed(n) ? 0 : (size_t)n;
		if (m->have == 0)
			return -1;
	}
	return (unsigned char)m->buffer[m->at++];
}

static unsigned digit(int c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)c - '0';
	return c >= 'a' && c <= 'f' ? (unsigned)c - 'a' + 10 : 99;
}

/* Parses a number up to the first character that isn't a digit, which is consumed. */
static bool number(struct maps *m, unsigned base, uint64_t *value)
{
	*value = 0;
	for (;;) {
		int c = next_char(m);
		if (c < 0)
			return false;
		if (digit(c) >= base)
			return true;
		*value = *value * base + digit(c);
	}
}

/* start-end rwxp offset major:minor inode   name */
static bool parse_line(struct maps *m, struct vma *v)
{
	uint64_t major, minor;
	*v = (struct vma){ 0 };
	if (!number(m, 16, &v->start) || !number(m, 16, &v->end))
		return false;
	v->prot = (next_char(m) == 'r' ? PROT_READ : 0);
	v->prot |= (next_char(m) == 'w' ? PROT_WRITE : 0);
	v->prot |= (next_char(m) == 'x' ? PROT_EXEC : 0);
	v->shared = next_char(m) == 's';
	next_char(m);
	if (!number(m, 16, &v->offset) || !number(m, 16, &major) ||
	    !number(m, 16, &minor) || !number(m, 10, &v->inode))
		return false;
	v->major = (uint32_t)major;
	v->minor = (uint32_t)minor;
	m->at--; /* the character consumed after the inode may be the newline of a line without a name */
	for (int c = 0; c >= 0 && c != '\n';)
		c = next_char(m);
	return true;
}

/*
 * Finds the mapping that covers addr or the next one above; -ENOENT if there is none. While the file is
 * open, addresses must be queried in ascending order: the text is read once, because generating it walks
 * all mappings.
 */
int maps_find(struct maps *m, uint64_t addr, struct vma *v)
{
	if (!m->text) {
		int r = ask(m, addr, v);
		if (r != -ENOTTY && r != -EINVAL && r != -ENOSYS) /* ENOSYS: from emulators */
			return r;
		m->text = true;
	}
	while (addr >= m->last.end)
		if (!parse_line(m, &m->last))
			return -ENOENT;
	*v = m->last;
	return 0;
}
