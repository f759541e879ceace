/* stat.c - what programs ask about the kernel's paths of RDMA devices without
 * opening them. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "interpose.h"

/* As udev makes them: everybody may use RDMA. */
#define NODE_MODE (S_IFCHR | 0666)

/* Makes what stands for a device node look like one. */
#define AS_NODE(place, status, st)                                                        \
	do {                                                                              \
		if ((status) == 0 && (place)->major) {                                    \
			(st)->st_mode = NODE_MODE;                                        \
			(st)->st_rdev = makedev((place)->major, (place)->minor);          \
			(st)->st_size = 0;                                                \
		}                                                                         \
	} while (0)

#define STAT(name, type)                                       \
	EXPORT int name(const char *path, struct type *st)     \
	{                                                      \
		struct urdma_place place;                      \
		int status;                                    \
                                                               \
		urdma_place(&place, path);                     \
		status = REAL(name)(place.path, st);           \
		AS_NODE(&place, status, st);                   \
		return status;                                 \
	}

#define STATAT(name, type)                                                       \
	EXPORT int name(int dir, const char *path, struct type *st, int flags)   \
	{                                                                        \
		struct urdma_place place;                                        \
		int status;                                                      \
                                                                                 \
		urdma_place(&place, path);                                       \
		status = REAL(name)(dir, place.path, st, flags);                 \
		AS_NODE(&place, status, st);                                     \
		return status;                                                   \
	}

/* The functions of programs that were built with a glibc before 2.33. */
#define XSTAT(name, type)                                                \
	int name(int version, const char *path, struct type *st);        \
	EXPORT int name(int version, const char *path, struct type *st)  \
	{                                                                \
		struct urdma_place place;                                \
		int status;                                              \
                                                                         \
		urdma_place(&place, path);                               \
		status = REAL(name)(version, place.path, st);            \
		AS_NODE(&place, status, st);                             \
		return status;                                           \
	}

#define XSTATAT(name, type)                                                                \
	int name(int version, int dir, const char *path, struct type *st, int flags);      \
	EXPORT int name(int version, int dir, const char *path, struct type *st, int flags) \
	{                                                                                  \
		struct urdma_place place;                                                  \
		int status;                                                                \
                                                                                           \
		urdma_place(&place, path);                                                 \
		status = REAL(name)(version, dir, place.path, st, flags);                  \
		AS_NODE(&place, status, st);                                               \
		return status;                                                             \
	}

STAT(stat, stat)
STAT(stat64, stat64)
STAT(lstat, stat)
STAT(lstat64, stat64)
STATAT(fstatat, stat)
STATAT(fstatat64, stat64)
XSTAT(__xstat, stat)
XSTAT(__xstat64, stat64)
XSTAT(__lxstat, stat)
XSTAT(__lxstat64, stat64)
XSTATAT(__fxstatat, stat)
XSTATAT(__fxstatat64, stat64)

EXPORT int statx(int dir, const char *path, int flags, unsigned mask, struct statx *st)
{
	struct urdma_place place;
	int status;

	urdma_place(&place, path);
	status = REAL(statx)(dir, place.path, flags, mask, st);
	if (status == 0 && place.major) {
		st->stx_mode = NODE_MODE;
		st->stx_rdev_major = place.major;
		st->stx_rdev_minor = place.minor;
		st->stx_size = 0;
	}
	return status;
}

/* Of a device node: whether it is there, and nobody may execute it. */
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

#define ACCESS(name)                                         \
	EXPORT int name(const char *path, int mode)          \
	{                                                    \
		struct urdma_place place;                    \
                                                             \
		urdma_place(&place, path);                   \
		if (asked_of_node(&place, &mode))            \
			return -1;                           \
		return REAL(name)(place.path, mode);         \
	}

ACCESS(access)
ACCESS(euidaccess)
ACCESS(eaccess)

EXPORT int faccessat(int dir, const char *path, int mode, int flags)
{
	struct urdma_place place;

	urdma_place(&place, path);
	if (asked_of_node(&place, &mode))
		return -1;
	return REAL(faccessat)(dir, place.path, mode, flags);
}

/* ls -l asks for them. */
EXPORT ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
	struct urdma_place place;

	urdma_place(&place, path);
	return REAL(getxattr)(place.path, name, value, size);
}

EXPORT ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
{
	struct urdma_place place;

	urdma_place(&place, path);
	return REAL(lgetxattr)(place.path, name, value, size);
}

EXPORT ssize_t listxattr(const char *path, char *list, size_t size)
{
	struct urdma_place place;

	urdma_place(&place, path);
	return REAL(listxattr)(place.path, list, size);
}

EXPORT ssize_t llistxattr(const char *path, char *list, size_t size)
{
	struct urdma_place place;

	urdma_place(&place, path);
	return REAL(llistxattr)(place.path, list, size);
}

EXPORT ssize_t readlink(const char *path, char *buffer, size_t size)
{
	struct urdma_place place;

	urdma_place(&place, path);
	return REAL(readlink)(place.path, buffer, size);
}

EXPORT ssize_t readlinkat(int dir, const char *path, char *buffer, size_t size)
{
	struct urdma_place place;

	urdma_place(&place, path);
	return REAL(readlinkat)(dir, place.path, buffer, size);
}

/* A device node's own path is already real. */
EXPORT char *realpath(const char *path, char *resolved)
{
	struct urdma_place place;

	urdma_place(&place, path);
	return REAL(realpath)(place.kind == URDMA_SYSFS ? place.path : path, resolved);
}

char *__realpath_chk(const char *path, char *resolved, size_t size);

EXPORT char *__realpath_chk(const char *path, char *resolved, size_t size)
{
	struct urdma_place place;

	urdma_place(&place, path);
	return REAL(__realpath_chk)(place.kind == URDMA_SYSFS ? place.path : path, resolved, size);
}

EXPORT char *canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}
