/*
 * open.c - opens the paths of the kernel's RDMA devices and lists their folders. A character device is
 * opened as /dev/null: a program that talks to the kernel's driver through it gets ENOTTY. The files for
 * management datagrams are opened by umad.c.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "interpose.h"
#include "umad.h"

/* Returns the path to open instead. */
static const char *to_open(const struct urdma_place *place)
{
	return place->major && access(place->path, F_OK) == 0 ? "/dev/null" : place->path;
}

/* A mode argument exists only with these flags (open(2)). */
static bool has_mode(int flags)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

static bool is_umad(const struct urdma_place *place)
{
	return (place->umad || place->issm) && access(place->path, F_OK) == 0;
}

#define OPEN(dir, name, parameters, arguments)            \
	EXPORT int name parameters                       \
	{                                                \
		struct urdma_place place;                \
		mode_t mode = 0;                         \
		va_list rest;                            \
                                                         \
		va_start(rest, flags);                   \
		if (has_mode(flags))                     \
			mode = va_arg(rest, mode_t);     \
		va_end(rest);                            \
		urdma_place(&place, dir, path);          \
		if (is_umad(&place))                     \
			return urdma_umad_open(place.device, place.issm, flags); \
		return REAL(name) arguments;             \
	}

OPEN(AT_FDCWD, open, (const char *path, int flags, ...), (to_open(&place), flags, mode))
OPEN(AT_FDCWD, open64, (const char *path, int flags, ...), (to_open(&place), flags, mode))
OPEN(dir, openat, (int dir, const char *path, int flags, ...), (dir, to_open(&place), flags, mode))
OPEN(dir, openat64, (int dir, const char *path, int flags, ...), (dir, to_open(&place), flags, mode))

/* With _FORTIFY_SOURCE, calls of open without a mode become __open_2. */
WITH_PLACE(int, __open_2, (const char *path, int flags), (to_open(&place), flags))
WITH_PLACE(int, __open64_2, (const char *path, int flags), (to_open(&place), flags))
WITH_PLACE_AT(dir, int, __openat_2, (int dir, const char *path, int flags), (dir, to_open(&place), flags))
WITH_PLACE_AT(dir, int, __openat64_2, (int dir, const char *path, int flags), (dir, to_open(&place), flags))

WITH_PLACE(FILE *, fopen, (const char *path, const char *mode), (to_open(&place), mode))
WITH_PLACE(FILE *, fopen64, (const char *path, const char *mode), (to_open(&place), mode))
WITH_PLACE(DIR *, opendir, (const char *path), (place.path))
WITH_PLACE(int, chdir, (const char *path), (place.path))
WITH_PLACE(int, scandir, (const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
			  int (*compare)(const struct dirent **, const struct dirent **)),
	   (place.path, list, filter, compare))
WITH_PLACE(int, scandir64, (const char *path, struct dirent64 ***list, int (*filter)(const struct dirent64 *),
			    int (*compare)(const struct dirent64 **, const struct dirent64 **)),
	   (place.path, list, filter, compare))
