/* The process's mappings: PROCMAP_QUERY (Linux 6.11) answers for one address,
 * before that /proc/self/maps is read forward as text. */
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

static char text[16 * 1024]; /* one reader at a time: under the table lock */

/* From the first line: the descriptor may have been read before. */
static void read_text(struct maps *m)
{
	m->text = true;
	maps_rewind(m);
}

int maps_open(struct maps *m)
{
	struct stat st;
	long fd = proc_open(PROC_MAPS, &st);
	*m = (struct maps){ .fd = (int)fd };
#ifdef URDMA_PAGES_PARSE_TEXT
	read_text(m); /* the tests' way to run the older kernels' branch */
#endif
	return sys_failed(fd) ? (int)fd : 0;
}

void maps_close(struct maps *m)
{
	proc_close(PROC_MAPS, m->fd);
	m->fd = -1;
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
		.huge = q.vma_page_size != PAGE,
		.prot = (q.vma_flags & Q_READ ? PROT_READ : 0) |
		        (q.vma_flags & Q_WRITE ? PROT_WRITE : 0) |
		        (q.vma_flags & Q_EXEC ? PROT_EXEC : 0),
	};
	return 0;
}

static int next_char(struct maps *m)
{
	if (m->at == m->have) {
		long n = sys_read(m->fd, text, sizeof text);
		m->at = 0;
		m->have = sys_failed(n) ? 0 : (size_t)n;
		if (m->have == 0)
			return -1;
	}
	return (unsigned char)text[m->at++];
}

static unsigned digit(int c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)c - '0';
	return c >= 'a' && c <= 'f' ? (unsigned)c - 'a' + 10 : 99;
}

/* A number up to the first character that isn't a digit, which is consumed. */
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

/* The rest of the line; whether it names the kernel's huge anonymous file. */
static bool name_is_huge(struct maps *m)
{
	static const char huge[] = "/anon_hugepage";
	size_t i = 0, matched = 0;
	int c = next_char(m);
	while (c == ' ')
		c = next_char(m);
	for (; c >= 0 && c != '\n'; c = next_char(m), i++)
		if (matched == i && i < sizeof huge - 1 && c == huge[i])
			matched++;
	return matched == sizeof huge - 1;
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
	m->at--; /* an unnamed line's newline may be what ended the inode */
	v->huge = name_is_huge(m);
	return true;
}

/* Forget what was read: mappings have changed. */
void maps_rewind(struct maps *m)
{
	if (m->text)
		sys6(SYS_lseek, m->fd, 0, 0 /* SEEK_SET */, 0, 0, 0);
	m->at = m->have = 0;
	m->seen_count = 0;
}

static void remember(struct maps *m, const struct vma *v)
{
	if (m->seen_count == MAPS_SEEN) {
		m->seen_count--;
		for (unsigned i = 0; i < m->seen_count; i++)
			m->seen[i] = m->seen[i + 1];
	}
	m->seen[m->seen_count++] = *v;
}

/* The answer among the lines seen. The first of them answers only for its own
 * addresses: what lay before it is forgotten. */
static bool recall(const struct maps *m, uint64_t addr, struct vma *v)
{
	for (unsigned i = 0; i < m->seen_count; i++) {
		if (addr >= m->seen[i].end)
			continue;
		*v = m->seen[i];
		return i > 0 || addr >= v->start;
	}
	return false;
}

static int scan(struct maps *m, uint64_t addr, struct vma *v)
{
	if (recall(m, addr, v))
		return 0;
	if (m->seen_count && addr < m->seen[0].start)
		maps_rewind(m);
	while (parse_line(m, v)) {
		remember(m, v);
		if (addr < v->end)
			return 0;
	}
	maps_rewind(m);
	return -ENOENT;
}

/*
 * The mapping that covers addr or the next one above. An answer may be a copy
 * of what was: text is read once and remembered, for it costs a walk over all
 * mappings. A caller that asks again about an address whose mapping has changed calls
 * maps_rewind first.
 */
int maps_find(struct maps *m, uint64_t addr, struct vma *v)
{
	if (!m->text) {
		int r = ask(m, addr, v);
		if (r != -ENOTTY && r != -EINVAL && r != -ENOSYS) /* the last: emulators */
			return r;
		read_text(m);
	}
	return scan(m, addr, v);
}
