/* inject.c - urdma_inject, by which a program injects errors into its own objects; see docs/fault-tests.md. */
#include "internal.h"

int64_t urdma_inject(const char *statements);

/* Programs call it by urdma_inject.h, which looks it up with dlsym(3) and describes it. */
URDMA_EXPORT int64_t urdma_inject(const char *statements)
{
	int before = errno, status = EINVAL;
	struct urdma_client *client;
	int64_t said = 0;

	if (statements) {
		client = urdma_client_get();
		status = client ? urdma_inject_own(client, statements, &said) : errno;
	}
	errno = before;
	return status ? -status : said;
}
