/* mark.c - a bookmark of the program's in traces; see docs/debugging.md. */
#include <string.h>

#include "internal.h"

int urdma_mark(const char *text);

/* For programs, which look it up by dlsym(3) and so run without the library too: 0 or an errno value. */
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
