/*
 * unwind.c - the two functions of libgcc_s that cleanup handlers need (pthread_cleanup_push under -fexceptions). With
 * them here, this library does not need libgcc_s, which small container images lack. They run only when a thread is
 * cancelled or calls pthread_exit; then libc has already loaded libgcc_s, or ended the process for want of it. The
 * functions of another copy of libgcc would not do: how an unwinder keeps its state is private to each copy.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

/* Not from unwind.h, whose declarations are visible outside the library: those other libraries would find these. */
#define HIDDEN __attribute__((visibility("hidden")))
struct exception;
struct context;

static void *find(const char *name)
{
	void *libgcc = dlopen("libgcc_s.so.1", RTLD_NOW), *function = libgcc ? dlsym(libgcc, name) : NULL;

	if (!function)
		abort();
	return function;
}

HIDDEN void _Unwind_Resume(struct exception *exception)
{
	((__typeof__(&_Unwind_Resume))find("_Unwind_Resume"))(exception);
	abort(); /* it does not return */
}

HIDDEN int __gcc_personality_v0(int version, int actions, uint64_t class, struct exception *exception,
				struct context *context)
{
	return ((__typeof__(&__gcc_personality_v0))find("__gcc_personality_v0"))(version, actions, class, exception, context);
}
