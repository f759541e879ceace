/* inject.c - URDMA_INJECT and URDMA_STRICT: faults and strict behaviour that this process requests (urdma
 * inject, urdma exec --strict). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

/* Rules for refused posts are kept on this side, because urdmad sees a post only after the call. */
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

/* Joins the values of both variables; returns false if they are too long. */
static bool statements(char *text, size_t size)
{
	const char *strict = getenv("URDMA_STRICT"), *inject = getenv("URDMA_INJECT");
	bool wanted = strict && *strict && strcmp(strict, "0") != 0;
	int n = snprintf(text, size, "%s%s%s%s", wanted ? "strict " : "", wanted ? strict : "", wanted && inject ? "; " : "",
		inject ? inject : "");

	return n >= 0 && (size_t)n < size;
}

int urdma_inject(struct urdma_client *client)
{
	struct urdma_abi_inject request = { .flags = URDMA_ABI_INJECT_OWN };
	struct urdma_abi_inject_response answer;
	int status;

	if (!statements(request.text, sizeof(request.text))) {
		urdma_complain("the errors to inject and strict's behaviours are longer than %zu bytes", sizeof(request.text) - 1);
		return EINVAL;
	}
	if (!*request.text)
		return 0;
	status = urdma_call(client, URDMA_ABI_INJECT, &request, sizeof(request), &answer, sizeof(answer));
	if (status) {
		urdma_complain("urdmad refuses to inject \"%s\": %s; its log says why", request.text, strerror(status));
		return status;
	}
	urdma_log("faults are injected: %s", request.text);
	client->strict = answer.strict;
	client->strict_seed = answer.strict_seed;
	return keep_posts(client, &answer);
}
