/* refuse.c - posts that fail on purpose (urdma inject). Without such a rule no function here is called. */
#include "objects.h"

static bool hits(struct urdma_post_rule *rule)
{
	const struct urdma_abi_post_fault *f = &rule->fault;
	uint64_t n = ++rule->seen;

	if (n < f->nth || (f->chance && urdma_draw(f->seed, n) >= f->chance) || (f->count && rule->hits >= f->count))
		return false;
	rule->hits++;
	return true;
}

int urdma_refuse_post(struct urdma_client *client, uint32_t call)
{
	int error = 0;

	pthread_mutex_lock(&client->posts_lock);
	for (uint32_t i = 0; i < client->num_posts; i++)
		if (client->posts[i].fault.call == call && hits(&client->posts[i]) && !error)
			error = (int)client->posts[i].fault.error;
	pthread_mutex_unlock(&client->posts_lock);
	return error;
}
