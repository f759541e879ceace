/* tracer.c - a library that stands before an allocator, or behind it, and counts what it is asked
 * for; it says at the end whether it was. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned long frees;

void free(void *p)
{
	static void (*next)(void *);

	if (!next)
		next = (void (*)(void *))dlsym(RTLD_NEXT, "free");
	frees++;
	next(p);
}

__attribute__((destructor)) static void end(void)
{
	if (frees < 10)
		_exit(9);
}
