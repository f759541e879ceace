/* real.c - finds the functions that this library replaces. */
#include "interpose.h"

void *urdma_real(void **found, const char *name)
{
	void *function = __atomic_load_n(found, __ATOMIC_RELAXED);

	if (!function) {
		function = dlsym(RTLD_NEXT, name);
		__atomic_store_n(found, function, __ATOMIC_RELAXED);
	}
	return function;
}
