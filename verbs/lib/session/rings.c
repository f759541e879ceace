/*
 * rings.c - maps memory of queues: a file for one queue, or part of a file shared by many. urdmad gives a
 * shared file a number, and sends its descriptor with the first queue in it; both sides forget the file
 * after the last queue.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "client.h"
#include "rings.h"

struct urdma_rings {
	struct urdma_rings *next;
	uint32_t number;
	void *base;
	size_t bytes;
	unsigned users;
};

void urdma_rings_lock(struct urdma_client *client)
{
	pthread_mutex_lock(&client->rings_lock);
}

void urdma_rings_unlock(struct urdma_client *client)
{
	pthread_mutex_unlock(&client->rings_lock);
}

int urdma_rings_call(struct urdma_client *client, enum urdma_abi_type type, void *request, size_t request_length,
		     void *response, size_t response_length, int *fd)
{
	int got = 0, status = urdma_call_any_fds(client, type, request, request_length, response, response_length, -1, fd,
					     1, &got);

	if (!got)
		*fd = -1;
	return status;
}

int urdma_map_shared(int fd, size_t bytes, void **base)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || (uint64_t)st.st_size < bytes)
		return EPROTO;
	*base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return *base == MAP_FAILED ? errno : 0;
}

static int enter(struct urdma_client *client, uint32_t number, size_t bytes, int fd, void **base)
{
	struct urdma_rings *made = malloc(sizeof(*made));
	int status = made ? urdma_map_shared(fd, bytes, base) : ENOMEM;

	if (status) {
		free(made);
		return status;
	}
	*made = (struct urdma_rings){ .next = client->rings, .number = number, .base = *base, .bytes = bytes, .users = 1 };
	client->rings = made;
	return 0;
}

int urdma_rings_map(struct urdma_client *client, uint32_t number, size_t bytes, int fd, void **base)
{
	struct urdma_rings *known = client->rings;

	if (!number)
		return urdma_map_shared(fd, bytes, base);
	while (known && known->number != number)
		known = known->next;
	if (!known)
		return enter(client, number, bytes, fd, base);
	if (known->bytes != bytes)
		return EPROTO;
	known->users++;
	*base = known->base;
	return 0;
}

static void leave(struct urdma_client *client, uint32_t number)
{
	struct urdma_rings **at = &client->rings, *rings;

	while (*at && (*at)->number != number)
		at = &(*at)->next;
	rings = *at;
	if (!rings || --rings->users)
		return;
	*at = rings->next;
	munmap(rings->base, rings->bytes);
	free(rings);
}

void urdma_rings_unmap(struct urdma_client *client, uint32_t number, void *base, size_t bytes)
{
	if (!number) {
		munmap(base, bytes);
		return;
	}
	pthread_mutex_lock(&client->rings_lock);
	leave(client, number);
	pthread_mutex_unlock(&client->rings_lock);
}
