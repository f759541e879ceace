/* inject.c - URDMA_INJECT: what is to go wrong in this process on purpose (urdma inject). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

/* Posts that are to be refused are this side's: urdmad hears of a post when it is done. */
static int keep_posts(struct urdma_client *client, const struct urdma_abi_inject_response *answer)
{
	uint32_t n = answer->posts < URDMA_ABI_INJECT_POSTS ? answer->posts : URDMA_ABI_INJECT_POSTS;

	if (!n)
		return 0;
	client->posts = calloc(n, sizeof(*client->posts));
	if (!client->posts)
		return ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		client->posts[i].fault = answer->post[i];
	client->num_posts = n;
	return 0;
}

int urdma_inject(struct urdma_client *client)
{
	struct urdma_abi_inject request = { .flags = URDMA_ABI_INJECT_OWN };
	struct urdma_abi_inject_response answer;
	const char *text = getenv("URDMA_INJECT");
	int status;

	if (!text || !*text)
		return 0;
	if (strlen(text) >= sizeof(request.text)) {
		urdma_complain("URDMA_INJECT has %zu bytes, expected %zu at most", strlen(text), sizeof(request.text) - 1);
		return EINVAL;
	}
	strcpy(request.text, text);
	status = urdma_call(client, URDMA_ABI_INJECT, &request, sizeof(request), &answer, sizeof(answer));
	if (status) {
		urdma_complain("URDMA_INJECT: urdmad refuses it: %s; its log says why", strerror(status));
		return status;
	}
	urdma_log("faults are injected: %s", text);
	return keep_posts(client, &answer);
}
