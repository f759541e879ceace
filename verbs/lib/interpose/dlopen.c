/*
 * dlopen.c - dlopen(3) of libibverbs and librdmacm, with any path, returns this library. Preloading alone
 * affects only symbols that the dynamic linker binds by name; programs that load the libraries at run time
 * (NCCL, Python's ctypes) look symbols up in the handle.
 *
 * The real dlopen uses its return address to find whose RPATH and RUNPATH apply to a name without a slash.
 * So it must be jumped to, not called: both calls below are in tail position, and a test checks that the
 * compiler makes jumps of them.
 */
#include <string.h>

#include "interpose.h"

/* Matches libibverbs.so, libibverbs.so.1, libibverbs.so.1.14.44.0, and the same for librdmacm. */
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

/* Returns the file from which this library was loaded, which the dynamic linker recognises as loaded. */
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
