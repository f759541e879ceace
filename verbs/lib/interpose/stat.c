/* stat.c - stat, access and similar calls on the paths of the kernel's RDMA devices. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "interpose.h"

/* The mode that udev gives them: everybody may use RDMA. */
#define NODE_MODE (S_IFCHR | 0666)

/* Defines a stat function that reports a character device for our device files. */
#define STAT(dir, name, parameters, arguments)                                   \
	int name parameters;                                                     \
	EXPORT int name parameters                                               \
	{                                                                        \
		struct urdma_place place;                                        \
		int status;                                                      \
                                                                                 \
		urdma_place(&place, dir, path);                                  \
		status = REAL(name) arguments;                                   \
		if (status == 0 && place.major) {                                \
			st->st_mode = NODE_MODE;                                 \
			st->st_rdev = makedev(place.major, place.minor);         \
			st->st_size = 0;                                         \
		}                                                                \
		return status;                                                   \
	}

STAT(AT_FDCWD, stat, (const char *path, struct stat *st), (place.path, st))
STAT(AT_FDCWD, stat64, (const char *path, struct stat64 *st), (place.path, st))
STAT(AT_FDCWD, lstat, (const char *path, struct stat *st), (place.path, st))
STAT(AT_FDCWD, lstat64, (const char *path, struct stat64 *st), (place.path, st))
STAT(dir, fstatat, (int dir, const char *path, struct stat *st, int flags), (dir, place.path, st, flags))
STAT(dir, fstatat64, (int dir, const char *path, struct stat64 *st, int flags), (dir, place.path, st, flags))

/* Programs built with glibc before 2.33 call these functions. */
STAT(AT_FDCWD, __xstat, (int version, const char *path, struct stat *st), (version, place.path, st))
STAT(AT_FDCWD, __xstat64, (int version, const char *path, struct stat64 *st), (version, place.path, st))
STAT(AT_FDCWD, __lxstat, (int version, const char *path, struct stat *st), (version, place.path, st))
STAT(AT_FDCWD, __lxstat64, (int version, const char *path, struct stat64 *st), (version, place.path, st))
STAT(dir, __fxstatat, (int version, int dir, const char *path, struct stat *st, int flags),
     (version, dir, place.path, st, flags))
STAT(dir, __fxstatat64, (int version, int dir, const char *path, struct stat64 *st, int flags),
     (version, dir, place.path, st, flags))

EXPORT int statx(int dir, const char *path, int flags, unsigned mask, struct statx *st)
{
	struct urdma_place place;
	int status;

	urdma_place(&place, dir, path);
	status = REAL(statx)(dir, place.path, flags, mask, st);
	if (status == 0 && place.major) {
		st->stx_mode = NODE_MODE;
		st->stx_rdev_major = place.major;
		st->stx_rdev_minor = place.minor;
		st->stx_size = 0;
	}
	return status;
}

/* access(2) of a device file: it exists, and nobody may execute it. */
static int asked_of_node(struct urdma_place *place, int *mode)
{
	if (!place->major)
		return 0;
	if (*mode & X_OK && REAL(access)(place->path, F_OK) == 0) {
		errno = EACCES;
		return -1;
	}
	*mode = F_OK;
	return 0;
}

#define ACCESS(dir, name, parameters, arguments)      \
	EXPORT int name parameters                    \
	{                                             \
		struct urdma_place place;             \
                                                      \
		urdma_place(&place, dir, path);       \
		if (asked_of_node(&place, &mode))     \
			return -1;                    \
		return REAL(name) arguments;          \
	}

ACCESS(AT_FDCWD, access, (const char *path, int mode), (place.path, mode))
ACCESS(AT_FDCWD, euidaccess, (const char *path, int mode), (place.path, mode))
ACCESS(AT_FDCWD, eaccess, (const char *path, int mode), (place.path, mode))
ACCESS(dir, faccessat, (int dir, const char *path, int mode, int flags), (dir, place.path, mode, flags))

/* ls -l asks for them. */
WITH_PLACE(ssize_t, getxattr, (const char *path, const char *name, void *value, size_t size),
	(place.path, name, value, size))
WITH_PLACE(ssize_t, lgetxattr, (const char *path, const char *name, void *value, size_t size),
	(place.path, name, value, size))
WITH_PLACE(ssize_t, listxattr, (const char *path, char *list, size_t size), (place.path, list, size))
WITH_PLACE(ssize_t, llistxattr, (const char *path, char *list, size_t size), (place.path, list, size))

WITH_PLACE(ssize_t, readlink, (const char *path, char *buffer, size_t size), (place.path, buffer, size))
WITH_PLACE_AT(dir, ssize_t, readlinkat, (int dir, const char *path, char *buffer, size_t size),
	(dir, place.path, buffer, size))

/* With _FORTIFY_SOURCE, calls with a size that the compiler does not know become these. */
WITH_PLACE(ssize_t, __readlink_chk, (const char *path, char *buffer, size_t size, size_t room),
	(place.path, buffer, size, room))
WITH_PLACE_AT(dir, ssize_t, __readlinkat_chk, (int dir, const char *path, char *buffer, size_t size, size_t room),
	(dir, place.path, buffer, size, room))

/* The path of a device file has no symbolic links to resolve. */
static const char *to_resolve(const struct urdma_place *place, const char *path)
{
	return place->kind == URDMA_SYSFS ? place->path : path;
}

#define RESOLVE(name, parameters, arguments)                      \
	char *name parameters;                                    \
	EXPORT char *name parameters                              \
	{                                                         \
		struct urdma_place place;                         \
		char *result;                                     \
                                                                  \
		urdma_place(&place, AT_FDCWD, path);              \
		result = REAL(name) arguments;                    \
		if (result)                                       \
			urdma_place_shown(&place, result);        \
		return result;                                    \
	}

RESOLVE(realpath, (const char *path, char *resolved), (to_resolve(&place, path), resolved))
RESOLVE(__realpath_chk, (const char *path, char *resolved, size_t size), (to_resolve(&place, path), resolved, size))

EXPORT char *canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}
