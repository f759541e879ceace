/*
 * dlopen.c - dlopen(3) of libibverbs and librdmacm, by any path or none, gives
 * this library: a preload alone answers only what is bound by name, and programs
 * that load the libraries while they run (NCCL, Python's ctypes) ask the handle.
 *
 * The real dlopen looks at its return address to know whose RPATH and RUNPATH
 * hold for a name without a slash. So it must be jumped to, not called: both calls
 * below are in tail position, and a test holds that the compiler makes jumps of them.
 */
#include <string.h>

#include "interpose.h"

/* libibverbs.so, libibverbs.so.1, libibverbs.so.1.14.44.0, and librdmacm's. */
static bool stands_for(const char *file)
{
	static const char *const names[] = { "libibverbs.so", "librdmacm.so" };
	const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t n = strlen(names[i]);

		if (strncmp(base, names[i], n) == 0 && (!base[n] || base[n] == '.'))
			return true;
	}
	return false;
}

/* The file this library was loaded from, which the linker knows as loaded. */
static const char *own_file(void)
{
	Dl_info info;

	return dladdr((void *)own_file, &info) ? info.dli_fname : NULL;
}

static const char *instead_of(const char *file)
{
	const char *own = file && stands_for(file) ? own_file() : NULL;

	return own ? own : file;
}

EXPORT void *dlopen(const char *file, int mode)
{
	void *(*real)(const char *, int) = REAL(dlopen);

	file = instead_of(file);
	return real(file, mode);
}
