//go:build c_only
/*
 * The child's side of a fork. It owns no registration and none of its parent's
 * files. Pages that it inherited shared become its own copies here; where that
 * can't be done a hole takes their place, for nothing that a child writes may
 * reach registered memory.
 */
#include <errno.h>
#include <sys/mman.h>

#include "internal.h"
#include "kernel/sys.h"

static void copy_words(uint64_t to, uint64_t from, uint64_t len)
{
	for (uint64_t i = 0; i < len; i += 8)
		*(uint64_t *)(to + i) = *(const uint64_t *)(from + i);
}

/* Without the memfd, whose descriptor the program closed: from the mapping. */
static long copy_from_mapping(const struct run *r, int prot)
{
	const int rw = PROT_READ | PROT_WRITE;
	long fresh = sys_mmap(0, r->len, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(fresh))
		return fresh;
	long err = prot & PROT_READ ? 0 : sys_mprotect(r->addr, r->len, PROT_READ);
	if (!sys_failed(err)) {
		copy_words((uint64_t)fresh, r->addr, r->len);
		err = sys_mprotect((uint64_t)fresh, r->len, prot);
	}
	if (!sys_failed(err))
		err = sys_mremap((uint64_t)fresh, r->len, r->len,
		                 MREMAP_MAYMOVE | MREMAP_FIXED, r->addr);
	if (sys_failed(err))
		sys_munmap((uint64_t)fresh, r->len);
	return sys_failed(err) ? err : 0;
}

/* Fails also where the program had asked, before it registered the memory,
 * that no child inherits it: then the mapping set aside isn't there. The pages
 * beside it are the child's all the same. */
static void copy_run(struct walk *k, struct block *b, unsigned from,
                     unsigned to, const struct vma *v)
{
	const struct window alone = { .kind = WINDOW_ALONE, .uffd = -1 };
	struct run r = run_of(b, from, to);
	bool shadowed = b->page[from] & P_SHADOW;
	long err = r.fd < 0 ? copy_from_mapping(&r, v->prot)
	                    : swap_out(&alone, &r, v->prot, shadowed, NULL);
	if (err && to - from > 1) {
		copy_run(k, b, from, from + (to - from) / 2, v);
		copy_run(k, b, from + (to - from) / 2, to, v);
		return;
	}
	if (err) {
		sys_munmap(r.addr, r.len);
		return;
	}
	for (unsigned i = from; shadowed && r.fd >= 0 && i < to; i++)
		entry_set(b, i, b->page[i] & ~P_SHADOW);
}

static void drop_run(struct block *b, unsigned from, unsigned to, void *arg)
{
	const uint32_t mask = P_PRESENT | P_NOFORK;
	(void)arg;
	for (unsigned end; block_run(b, &from, &end, to, mask, P_PRESENT);
	     from = end)
		sys_munmap(block_addr(b, from), (end - from) * PAGE);
}

static void copy_all(void)
{
	struct maps m;
	struct walk k = { .maps = &m, .mask = P_PRESENT | P_NOFORK,
		          .want = P_PRESENT, .mapped = copy_run,
		          .other = fork_leave_alone };
	int err = pages_open_maps(&m);
	if (err) {
		memfd_close_all(); /* frees a descriptor; the mappings will do */
		err = pages_open_maps(&m);
	}
	if (err) {
		table_each(0, URDMA_PAGES_FILE_SIZE, drop_run, NULL);
		return;
	}
	table_each(0, URDMA_PAGES_FILE_SIZE, walk_block, &k);
	pages_close_maps(&m);
}

static void drop_shadows(struct block *b, unsigned from, unsigned to, void *arg)
{
	(void)arg;
	for (unsigned end; block_run(b, &from, &end, to, P_SHADOW, P_SHADOW);
	     from = end)
		sys_munmap(shadow(block_addr(b, from)), (end - from) * PAGE);
}

void pages_fork_child(void)
{
	struct state *s = &urdma_pages_state;
	fork_close_child_done(0); /* a descriptor is free now, whatever the limit */
	proc_close_all();
	if (fork_child_copies())
		copy_all();
	table_each(0, URDMA_PAGES_FILE_SIZE, drop_shadows, NULL);
	table_each(0, URDMA_PAGES_FILE_SIZE, fork_drop_snapshot, NULL);
	table_reset();
	keep_reset();
	arena_inherit();
	memfd_forget_all();
	fork_release();
	fork_close_child_done(1);
	pthread_mutex_init(&s->table, NULL);
	pthread_mutex_init(&s->registry, NULL);
	__atomic_store_n(&s->forking, false, __ATOMIC_RELEASE);
}
