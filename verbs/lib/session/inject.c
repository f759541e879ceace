/* inject.c - URDMA_INJECT and URDMA_STRICT: faults and strict behaviour that this process requests (urdma
 * inject, urdma exec --strict). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

/* Returns the rule with a number, or NULL. */
static const struct urdma_post_rule *find(const struct urdma_client *client, uint32_t number)
{
	for (uint32_t i = 0; i < client->num_posts; i++)
		if (client->posts[i].fault.number == number)
			return &client->posts[i];
	return NULL;
}

/* Keeps the client's rules for posts, of which urdmad has sent the list; rules that go on keep their counts. */
static void keep_posts(struct urdma_client *client, const struct urdma_abi_inject_response *answer)
{
	uint32_t n = answer->posts < URDMA_ABI_INJECT_POSTS ? answer->posts : URDMA_ABI_INJECT_POSTS;
	struct urdma_post_rule now[URDMA_ABI_INJECT_POSTS];

	for (uint32_t i = 0; i < n; i++) {
		const struct urdma_post_rule *before = find(client, answer->post[i].number);

		now[i] = before ? *before : (struct urdma_post_rule){ .fault = answer->post[i] };
	}
	memcpy(client->posts, now, n * sizeof(*now));
	__atomic_store_n(&client->num_posts, n, __ATOMIC_RELAXED);
}

/* Sends statements. posts_lock is held from before the request, so that lists come in urdmad's order. */
static int tell(struct urdma_client *client, struct urdma_abi_inject *request, struct urdma_abi_inject_response *answer)
{
	const struct urdma_post_rule *rule;
	int status;

	pthread_mutex_lock(&client->posts_lock);
	status = urdma_call(client, URDMA_ABI_INJECT, request, sizeof(*request), answer, sizeof(*answer));
	if (!status) {
		keep_posts(client, answer);
		rule = find(client, answer->asked);
		if (rule)
			answer->hits += rule->hits;
	}
	pthread_mutex_unlock(&client->posts_lock);
	if (status)
		urdma_complain("urdmad refuses to inject \"%s\": %s; its log says why", request->text, strerror(status));
	return status;
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

int urdma_inject_start(struct urdma_client *client)
{
	struct urdma_abi_inject request = { .flags = URDMA_ABI_INJECT_START };
	struct urdma_abi_inject_response answer;
	int status;

	if (!statements(request.text, sizeof(request.text))) {
		urdma_complain("the errors to inject and strict's behaviours are longer than %zu bytes", sizeof(request.text) - 1);
		return EINVAL;
	}
	if (!*request.text)
		return 0;
	status = tell(client, &request, &answer);
	if (status)
		return status;
	urdma_log("faults are injected: %s", request.text);
	client->strict = answer.strict;
	client->strict_seed = answer.strict_seed;
	return 0;
}

int urdma_inject_own(struct urdma_client *client, const char *text, int64_t *said)
{
	struct urdma_abi_inject request = { .flags = URDMA_ABI_INJECT_OWN };
	struct urdma_abi_inject_response answer;
	size_t length = strlen(text);
	int status;

	if (length >= sizeof(request.text))
		return EINVAL;
	memcpy(request.text, text, length);
	status = tell(client, &request, &answer);
	if (!status)
		*said = answer.asked ? (int64_t)answer.hits : (int64_t)answer.number;
	return status;
}
