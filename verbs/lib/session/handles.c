/* handles.c - finds the object for the handle in an event, and the queue pair for the name in a
 * completion. */
#include <errno.h>
#include <stdlib.h>

#include "client.h"

void urdma_handles_init(struct urdma_client *client)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&client->handles_lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

void urdma_handles_lock(struct urdma_client *client)
{
	pthread_mutex_lock(&client->handles_lock);
}

void urdma_handles_unlock(struct urdma_client *client)
{
	pthread_mutex_unlock(&client->handles_lock);
}

/* Returns the link that points to the entry, or the end of the chain. */
static struct urdma_handle **slot_of(struct urdma_client *client, enum urdma_kind kind, uint32_t handle)
{
	struct urdma_handle **at = &client->handles[(handle + 131u * kind) % URDMA_HANDLE_BUCKETS];

	while (*at && ((*at)->handle != handle || (*at)->kind != kind))
		at = &(*at)->next;
	return at;
}

int urdma_handles_add(struct urdma_client *client, enum urdma_kind kind, uint32_t handle, void *object)
{
	struct urdma_handle *entry = malloc(sizeof(*entry));
	struct urdma_handle **at;

	if (!entry)
		return ENOMEM;
	*entry = (struct urdma_handle){ .kind = kind, .handle = handle, .object = object };
	urdma_handles_lock(client);
	at = slot_of(client, kind, handle);
	entry->next = *at;
	*at = entry;
	urdma_handles_unlock(client);
	return 0;
}

void urdma_handles_remove(struct urdma_client *client, enum urdma_kind kind, uint32_t handle)
{
	struct urdma_handle **at, *entry;

	urdma_handles_lock(client);
	at = slot_of(client, kind, handle);
	entry = *at;
	if (entry)
		*at = entry->next;
	urdma_handles_unlock(client);
	free(entry);
}

void *urdma_handles_find(struct urdma_client *client, enum urdma_kind kind, uint32_t handle)
{
	struct urdma_handle *entry;

	urdma_handles_lock(client);
	entry = *slot_of(client, kind, handle);
	urdma_handles_unlock(client);
	return entry ? entry->object : NULL;
}

int urdma_handles_destroy(struct urdma_client *client, enum urdma_kind kind, enum urdma_abi_type request,
	uint32_t handle,
			  void *object)
{
	int status;

	urdma_handles_remove(client, kind, handle);
	status = urdma_call_destroy(client, request, handle);
	if (status)
		urdma_handles_add(client, kind, handle, object);
	return urdma_status(status);
}

int urdma_pairs_init(struct urdma_client *client)
{
	client->max_pairs = client->workers * URDMA_ABI_NUM_DOORBELLS;
	client->pairs = calloc(client->max_pairs, sizeof(*client->pairs));
	return client->pairs ? 0 : ENOMEM;
}

/* The lower half of a name is the index of the entry, the upper half a counter. */
int urdma_pairs_add(struct urdma_client *client, struct urdma_qp *qp, uint64_t *name)
{
	struct urdma_pair *pair;
	int status = ENOMEM;

	urdma_handles_lock(client);
	for (uint32_t i = 0; i < client->max_pairs && status; i++) {
		pair = &client->pairs[(client->pairs_made + i) % client->max_pairs];
		if (pair->qp)
			continue;
		*name = (uint64_t)(client->pairs_made + 1) << 32 | (uint32_t)(pair - client->pairs);
		__atomic_store_n(&pair->qp, qp, __ATOMIC_RELAXED);
		__atomic_store_n(&pair->name, *name, __ATOMIC_RELEASE);
		client->pairs_made++;
		status = 0;
	}
	urdma_handles_unlock(client);
	return status;
}

void urdma_pairs_hide(struct urdma_client *client, uint64_t name)
{
	__atomic_store_n(&client->pairs[(uint32_t)name].name, 0, __ATOMIC_RELEASE);
}

void urdma_pairs_forget(struct urdma_client *client, uint64_t name)
{
	urdma_handles_lock(client);
	__atomic_store_n(&client->pairs[(uint32_t)name].qp, NULL, __ATOMIC_RELAXED);
	urdma_handles_unlock(client);
}
