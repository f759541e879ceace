/*
 * transport.c - what URDMA_TRANSPORT wishes devices to be shown as. The wire is
 * the same under each transport; node type, link layer, LID and GIDs differ, and
 * come from urdmad.
 */
#include <stdlib.h>
#include <string.h>

#include "client.h"

uint32_t urdma_transport_wish(void)
{
	const char *wish = getenv("URDMA_TRANSPORT");

	if (!wish || !*wish)
		return URDMA_ABI_TRANSPORT_DEFAULT;
	if (strcmp(wish, "iwarp") == 0)
		return URDMA_ABI_TRANSPORT_IWARP;
	if (strcmp(wish, "ib") == 0)
		return URDMA_ABI_TRANSPORT_IB;
	if (strcmp(wish, "roce") == 0)
		return URDMA_ABI_TRANSPORT_ROCE;
	urdma_complain("URDMA_TRANSPORT is \"%s\"; expected iwarp, ib or roce", wish);
	return URDMA_ABI_TRANSPORT_DEFAULT;
}
