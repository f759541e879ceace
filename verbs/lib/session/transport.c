/*
 * transport.c - the profile or transport that URDMA_PROFILE or URDMA_TRANSPORT requests for the devices shown. The
 * wire protocol is the same; names, node type, link layer, LID and GIDs differ, and come from urdmad.
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

static uint32_t transport(void)
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

struct urdma_abi_shown urdma_shown_wish(void)
{
	const char *profile = getenv("URDMA_PROFILE");
	struct urdma_abi_shown wish = { .transport = URDMA_ABI_TRANSPORT_DEFAULT };

	if (profile && *profile)
		strncpy(wish.profile, profile, sizeof(wish.profile) - 1);
	else
		wish.transport = transport();
	return wish;
}

void urdma_shown_sysfs(struct urdma_client *client, const char *root)
{
	const char *profile = client->num_devices ? client->info->profile : "";
	uint32_t wish = *profile ? URDMA_ABI_TRANSPORT_DEFAULT : urdma_shown_wish().transport;
	const char *kind = "", *name = "";

	if (*root && *profile) {
		kind = "/profile/";
		name = profile;
	} else if (*root && wish != URDMA_ABI_TRANSPORT_DEFAULT) {
		kind = "/transport/";
		name = names[wish];
	}
	snprintf(client->sysfs_path, sizeof(client->sysfs_path), "%.200s%s%.16s", root, kind, name);
}
