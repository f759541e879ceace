/* Memory that is shared with urdmad from its first byte on; programs look these up by
 * dlsym. */
#ifndef URDMA_PAGES_ALLOC_H
#define URDMA_PAGES_ALLOC_H

#include <stddef.h>

/* Zeroed memory of whole pages, all of which exist; NULL with errno ENOMEM. */
void *urdma_alloc(size_t bytes);
void urdma_free(void *p);

#endif
