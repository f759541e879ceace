/*
 * transport.c - the transport that URDMA_TRANSPORT requests for the devices shown. The wire protocol is
 * the same; node type, link layer, LID and GIDs differ, and come from urdmad.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

static const char *const names[] = {
	[URDMA_ABI_TRANSPORT_IWARP] = "iwarp",
	[URDMA_ABI_TRANSPORT_IB] = "ib",
	[URDMA_ABI_TRANSPORT_ROCE] = "roce",
};

uint32_t urdma_transport_wish(void)
{
	const char *wish = getenv("URDMA_TRANSPORT");

	if (!wish || !*wish)
		return URDMA_ABI_TRANSPORT_DEFAULT;
	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(wish, names[i]) == 0)
			return i;
	urdma_complain("URDMA_TRANSPORT is \"%s\"; expected iwarp, ib or roce", wish);
	return URDMA_ABI_TRANSPORT_DEFAULT;
}

void urdma_transport_sysfs(char *path, size_t size, const char *root)
{
	const char *wish = getenv("URDMA_TRANSPORT");

	snprintf(path, size, "%.200s", root);
	for (uint32_t i = 0; wish && *root && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(wish, names[i]) == 0)
			snprintf(path, size, "%.200s/transport/%s", root, names[i]);
}
