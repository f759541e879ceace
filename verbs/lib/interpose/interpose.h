/*
 * interpose.h - functions of libc and symbols of libibverbs that this library defines again, so that the
 * program and its libraries find urdmad's devices.
 */
#ifndef URDMA_INTERPOSE_H
#define URDMA_INTERPOSE_H

#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* real.c: returns the next definition of the function, and keeps it in *found. NULL if libc has none. */
void *urdma_real(void **found, const char *name);

/* The next definition of a function, as an expression. */
#define REAL(name)                                                    \
	({                                                            \
		static void *found_;                                  \
		(__typeof__(&name))urdma_real(&found_, #name);        \
	})

/* ifaddrs.c: reports whether the address is that of a port. */
struct sockaddr;
struct urdma_abi_device;
bool urdma_same_address(const struct sockaddr *a, const struct urdma_abi_device *port);

/* ---- paths.c: paths of the kernel's RDMA devices ------------------------------ */

enum urdma_place_kind {
	URDMA_ELSEWHERE, /* not a path of an RDMA device */
	URDMA_SYSFS,     /* /sys/class/infiniband or a similar folder */
	URDMA_NODES,     /* /dev/infiniband, or a file in it */
};

/* The place to which a path leads. */
struct urdma_place {
	enum urdma_place_kind kind;
	const char *path; /* the path to use: the program's own, or buffer */
	uint32_t major, minor; /* of a character device; both 0 for a directory */
	bool umad, issm; /* which kind of device file for management datagrams (umad.h) */
	uint32_t device; /* number of its device */
	char buffer[512]; /* small, because stacks may be; a longer path is not ours */
};

/* A relative path begins at the directory of a descriptor or, for AT_FDCWD, at the current directory. The result
 * is ELSEWHERE, too, if urdmad does not run. */
void urdma_place(struct urdma_place *place, int dir, const char *path);

/* Makes a resolved path in urdmad's tree one in /sys again, if the place is of kind SYSFS. */
void urdma_place_shown(const struct urdma_place *place, char *path);

/* Defines a function with a parameter path, relative to dir, that calls the real one with the given arguments,
 * in which place.path replaces the path. */
#define WITH_PLACE_AT(dir, type, name, parameters, arguments) \
	type name parameters;                         \
	EXPORT type name parameters                   \
	{                                             \
		struct urdma_place place;             \
                                                      \
		urdma_place(&place, dir, path);       \
		return REAL(name) arguments;          \
	}

#define WITH_PLACE(type, name, parameters, arguments) WITH_PLACE_AT(AT_FDCWD, type, name, parameters, arguments)

#endif /* URDMA_INTERPOSE_H */
