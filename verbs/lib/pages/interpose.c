//go:build c_only
/*
 * Functions of libc that are defined again for the program and its libraries: functions that must behave
 * differently for memory of the arena, because it is shared, and functions that create processes without
 * running the handlers of pthread_atfork. Other calls go to the next definition of the function, so that
 * other libraries that hook it still see them.
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

/* Runs at load: no other library has hooked these functions before. */
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

/* Discarded private memory reads as zeros; shared memory would show its old contents again, so it is
 * discarded in the file. MADV_FREE allows discarding at once. */
EXPORT int madvise(void *addr, size_t len, int advice)
{
	uint64_t start = (uint64_t)addr;
	bool drops = advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_DONTNEED_LOCKED;
	if (!arena_owns(start, start + page_up(len)))
		return call_madvise(addr, len, advice);
	if (advice == MADV_DOFORK)
		return 0; /* children get a copy: see fork.c */
	int r = call_madvise(addr, len, advice == MADV_FREE ? MADV_DONTNEED : advice);
	if (r == 0 && drops)
		r = answer(arena_zero(start, page_up(len)));
	return r;
}

/* During a fork the stacks of all threads are used before the handlers run in the child, so no stack may
 * be in the arena. */
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

/* With CLONE_VM it is a thread or a vfork, which copies nothing. With CLONE_FILES a descriptor closed in
 * the child would be closed in the parent, too. */
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
