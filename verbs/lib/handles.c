/* handles.c - from the handle an event carries to the object it names. */
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

/* The link that points to the entry, or the chain's end. */
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
