/*
 * open.c - opening the kernel's paths of RDMA devices, and what lists them. A
 * character device opens as /dev/null does: it can be opened, and whoever speaks
 * to the kernel's driver through it gets ENOTTY.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "interpose.h"

/* What to open in place's stead. */
static const char *to_open(const struct urdma_place *place)
{
	return place->major && access(place->path, F_OK) == 0 ? "/dev/null" : place->path;
}

/* The mode is there only with these (open(2)). */
static bool has_mode(int flags)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

#define TAKE_MODE(mode, flags)                           \
	do {                                             \
		va_list arguments_;                      \
		va_start(arguments_, flags);             \
		if (has_mode(flags))                     \
			mode = va_arg(arguments_, mode_t); \
		va_end(arguments_);                      \
	} while (0)

#define OPEN(name)                                            \
	EXPORT int name(const char *path, int flags, ...)     \
	{                                                     \
		struct urdma_place place;                     \
		mode_t mode = 0;                              \
                                                              \
		TAKE_MODE(mode, flags);                       \
		urdma_place(&place, path);                    \
		return REAL(name)(to_open(&place), flags, mode); \
	}

#define OPENAT(name)                                                   \
	EXPORT int name(int dir, const char *path, int flags, ...)     \
	{                                                              \
		struct urdma_place place;                              \
		mode_t mode = 0;                                       \
                                                                       \
		TAKE_MODE(mode, flags);                                \
		urdma_place(&place, path);                             \
		return REAL(name)(dir, to_open(&place), flags, mode);  \
	}

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

/* What open becomes where _FORTIFY_SOURCE is set and no mode is given. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);

EXPORT int __open_2(const char *path, int flags)
{
	struct urdma_place place;

	urdma_place(&place, path);
	return REAL(__open_2)(to_open(&place), flags);
}

EXPORT int __open64_2(const char *path, int flags)
{
	struct urdma_place place;

	urdma_place(&place, path);
	return REAL(__open64_2)(to_open(&place), flags);
}

EXPORT int __openat_2(int dir, const char *path, int flags)
{
	struct urdma_place place;

	urdma_place(&place, path);
	return REAL(__openat_2)(dir, to_open(&place), flags);
}

EXPORT int __openat64_2(int dir, const char *path, int flags)
{
	struct urdma_place place;

	urdma_place(&place, path);
	return REAL(__openat64_2)(dir, to_open(&place), flags);
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
	struct urdma_place place;

	urdma_place(&place, path);
	return REAL(fopen)(to_open(&place), mode);
}

EXPORT FILE *fopen64(const char *path, const char *mode)
{
	struct urdma_place place;

	urdma_place(&place, path);
	return REAL(fopen64)(to_open(&place), mode);
}

EXPORT DIR *opendir(const char *path)
{
	struct urdma_place place;

	urdma_place(&place, path);
	return REAL(opendir)(place.path);
}

EXPORT int scandir(const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
		   int (*compare)(const struct dirent **, const struct dirent **))
{
	struct urdma_place place;

	urdma_place(&place, path);
	return REAL(scandir)(place.path, list, filter, compare);
}

EXPORT int scandir64(const char *path, struct dirent64 ***list, int (*filter)(const struct dirent64 *),
		     int (*compare)(const struct dirent64 **, const struct dirent64 **))
{
	struct urdma_place place;

	urdma_place(&place, path);
	return REAL(scandir64)(place.path, list, filter, compare);
}

EXPORT int chdir(const char *path)
{
	struct urdma_place place;

	urdma_place(&place, path);
	return REAL(chdir)(place.path);
}
