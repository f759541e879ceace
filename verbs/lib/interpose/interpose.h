/*
 * interpose.h - functions of libc and symbols of libibverbs that are defined again
 * here for the program and its libraries, so that what they look up finds urdmad's
 * devices.
 */
#ifndef URDMA_INTERPOSE_H
#define URDMA_INTERPOSE_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* real.c: the function that would have been called; found holds it from the first
 * call on. NULL where libc has none. */
void *urdma_real(void **found, const char *name);

/* The real function of that name, as an expression. */
#define REAL(name)                                                    \
	({                                                            \
		static void *found_;                                  \
		(__typeof__(&name))urdma_real(&found_, #name);        \
	})

/* ---- paths.c: the kernel's paths of RDMA devices ------------------------------ */

enum urdma_place_kind {
	URDMA_ELSEWHERE, /* none of ours */
	URDMA_SYSFS,     /* below /sys/class/infiniband and its kin */
	URDMA_NODES,     /* /dev/infiniband, or below it */
};

/* Where a path of the program's leads to. */
struct urdma_place {
	enum urdma_place_kind kind;
	const char *path; /* the program's own, or buffer */
	uint32_t major, minor; /* of a character device; 0 for a directory */
	bool umad, issm; /* it is one of those (umad.h) */
	uint32_t device; /* and whose */
	char buffer[512]; /* it lies on stacks of any size; what is longer is none of ours */
};

/* Also ELSEWHERE when there is no urdmad, and for a path relative to a directory. */
void urdma_place(struct urdma_place *place, const char *path);

/* Defines a function with the parameter path: what the real one does, called with
 * arguments that say place.path in its stead. */
#define WITH_PLACE(type, name, parameters, arguments) \
	type name parameters;                         \
	EXPORT type name parameters                   \
	{                                             \
		struct urdma_place place;             \
                                                      \
		urdma_place(&place, path);            \
		return REAL(name) arguments;          \
	}

#endif /* URDMA_INTERPOSE_H */
