/* Allocation of memory that is shared with urdmad from the start. Programs look these functions up with
 * dlsym(3). */
#ifndef URDMA_PAGES_ALLOC_H
#define URDMA_PAGES_ALLOC_H

#include <stddef.h>

/* Returns zeroed memory of whole pages, all allocated; NULL with errno ENOMEM on failure. */
void *urdma_alloc(size_t bytes);
void urdma_free(void *p);

#endif
