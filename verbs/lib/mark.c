/* mark.c - urdma_mark, by which a program puts a mark in traces; see docs/debugging.md. */
#include <string.h>

#include "internal.h"

int urdma_mark(const char *text);

/* Programs look it up with dlsym(3), so that they also run without the library. Returns 0 or an errno
 * value. */
URDMA_EXPORT int urdma_mark(const char *text)
{
	struct urdma_abi_mark request = { 0 };
	struct urdma_client *client;
	int before = errno, status;

	if (!text || !*text)
		return EINVAL;
	client = urdma_client_get();
	if (client) {
		strncpy(request.text, text, sizeof(request.text) - 1);
		status = URDMA_TELL(client, URDMA_ABI_MARK, &request);
	} else {
		status = errno;
	}
	errno = before;
	return status;
}
