//go:build c_only
/*
 * Functions of libc that are defined again for the program and its libraries: those
 * that mean something else for memory of the arena, which is shared, and those that
 * make processes without the handlers of pthread_atfork. All that is not about the
 * arena goes to the function that would have been called, so that whoever has hooked
 * into it hears of it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"
#include "kernel/sys.h"

#define EXPORT __attribute__((visibility("default")))

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24 /* Linux 5.18 */
#endif

typedef int (*madvise_fn)(void *, size_t, int);
typedef int (*setstack_fn)(pthread_attr_t *, void *, size_t);
typedef int (*clone_fn)(int (*)(void *), void *, int, void *, ...);
typedef pid_t (*fork_fn)(void);

static struct {
	madvise_fn madvise;
	setstack_fn setstack;
	clone_fn clone;
	fork_fn fork;
} next;

/* Before it, nobody can have hooked into anything. */
__attribute__((constructor)) static void find_next(void)
{
	next.madvise = (madvise_fn)dlsym(RTLD_NEXT, "madvise");
	next.setstack = (setstack_fn)dlsym(RTLD_NEXT, "pthread_attr_setstack");
	next.clone = (clone_fn)dlsym(RTLD_NEXT, "clone");
	next.fork = (fork_fn)dlsym(RTLD_NEXT, "_Fork");
}

static int answer(long r)
{
	if (!sys_failed(r))
		return (int)r;
	errno = (int)-r;
	return -1;
}

static int call_madvise(void *addr, size_t len, int advice)
{
	if (next.madvise)
		return next.madvise(addr, len, advice);
	return answer(sys_madvise((uint64_t)addr, len, advice));
}

/* What is dropped of private memory reads as zeros afterwards; of shared memory it
 * would be there again. MADV_FREE is refused for it: to drop at once is one of the
 * things that it may do. */
EXPORT int madvise(void *addr, size_t len, int advice)
{
	uint64_t start = (uint64_t)addr;
	bool drops = advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_DONTNEED_LOCKED;
	if (!arena_owns(start, start + page_up(len)))
		return call_madvise(addr, len, advice);
	if (advice == MADV_DOFORK)
		return 0; /* children get their copy: see fork.c */
	int r = call_madvise(addr, len, advice == MADV_FREE ? MADV_DONTNEED : advice);
	if (r == 0 && drops)
		r = answer(arena_zero(start, page_up(len)));
	return r;
}

/* A fork works on the stacks of all threads before its handlers run in the child. */
EXPORT int pthread_attr_setstack(pthread_attr_t *attr, void *stack, size_t size)
{
	struct held held;
	uint64_t from = (uint64_t)stack & ~(PAGE - 1), to = page_up((uint64_t)stack + size);
	if (arena_owns(from, to)) {
		arena_lock(&held);
		arena_make_private(from, to);
		arena_unlock(&held);
	}
	return next.setstack(attr, stack, size);
}

EXPORT pid_t _Fork(void)
{
	fork_prepare();
	pid_t pid = next.fork();
	if (pid == 0) {
		fork_child();
	} else {
		int saved = errno;
		fork_parent();
		errno = saved;
	}
	return pid;
}

struct entry {
	int (*fn)(void *);
	void *arg;
};

static int enter_clone(void *entry)
{
	struct entry e = *(struct entry *)entry;
	fork_child();
	return e.fn(e.arg);
}

/* With CLONE_VM it is a thread or a vfork: nothing is copied. With CLONE_FILES what the
 * child closed would be closed for its parent. */
EXPORT int clone(int (*fn)(void *), void *stack, int flags, void *arg, ...)
{
	struct entry e = { fn, arg };
	va_list args;
	va_start(args, arg);
	pid_t *parent_tid = va_arg(args, pid_t *);
	void *tls = va_arg(args, void *);
	pid_t *child_tid = va_arg(args, pid_t *);
	va_end(args);
	if (flags & (CLONE_VM | CLONE_FILES))
		return next.clone(fn, stack, flags, arg, parent_tid, tls, child_tid);
	fork_prepare();
	int pid = next.clone(enter_clone, stack, flags, &e, parent_tid, tls, child_tid);
	int saved = errno;
	fork_parent();
	errno = saved;
	return pid;
}
