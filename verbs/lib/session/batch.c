/* batch.c - see batch.h. */
#include <errno.h>
#include <string.h>

#include "batch.h"
#include "client.h"

static struct urdma_abi_header *part_of(struct urdma_batch *batch, uint32_t i)
{
	uint8_t *at = batch->message.bytes + sizeof(batch->message.head);

	while (i--)
		at += ((struct urdma_abi_header *)(void *)at)->length;
	return (void *)at;
}

void urdma_batch_init(struct urdma_batch *batch)
{
	batch->count = batch->done = 0;
	batch->length = sizeof(batch->message.head);
	batch->message.head = (struct urdma_abi_batch){ 0 };
	batch->answered = 0;
}

uint32_t urdma_batch_add(struct urdma_batch *batch, enum urdma_abi_type type, void *request, size_t length)
{
	struct urdma_abi_header *head = request;

	*head = (struct urdma_abi_header){ .type = type, .length = (uint32_t)length };
	memcpy(batch->message.bytes + batch->length, request, length);
	batch->length += length;
	batch->message.head.count++;
	return URDMA_ABI_BATCH_MADE + batch->count++;
}

int urdma_batch_answer(const struct urdma_batch *batch, uint32_t i, void *answer, size_t size)
{
	const struct urdma_abi_header *head = answer;
	size_t end = i + 1 < batch->done ? batch->at[i + 1] : batch->answered;

	if (i >= batch->done || end - batch->at[i] != size)
		return EPROTO;
	memcpy(answer, batch->answers + batch->at[i], size);
	return head->status ? EPROTO : 0;
}

int urdma_batch_take(struct urdma_batch *batch, uint32_t i)
{
	int fd = batch->fds[i];

	batch->fds[i] = -1;
	return fd;
}

/* Returns the handle at the beginning of the response to a request that creates an object. */
static uint32_t made(const struct urdma_batch *batch, uint32_t i)
{
	struct urdma_abi_handle answer;

	if (i >= batch->done)
		return URDMA_ABI_NO_HANDLE;
	memcpy(&answer, batch->answers + batch->at[i], sizeof(answer));
	return answer.handle;
}

void urdma_batch_undo(struct urdma_client *client, struct urdma_batch *batch)
{
	enum urdma_abi_type undo;
	int before = errno;

	for (uint32_t i = batch->done; i-- > 0;) {
		undo = urdma_undoing(part_of(batch, i)->type);
		if (batch->fds[i] >= 0)
			urdma_close(urdma_batch_take(batch, i));
		if (undo)
			urdma_call_handle(client, undo, made(batch, i));
	}
	batch->done = 0;
	errno = before;
}

/* Returns whether a response has the length that its request requires. */
static bool whole(struct urdma_batch *batch, uint32_t i, size_t length)
{
	size_t least = urdma_undoing(part_of(batch, i)->type) ? sizeof(struct urdma_abi_handle) :
		sizeof(struct urdma_abi_header);

	return length >= least;
}

/* Finds the responses in a message of so many bytes, and assigns each its descriptor. */
static int take_apart(struct urdma_batch *batch, size_t length, const int *fds, int got)
{
	struct urdma_abi_batch_response head;
	struct urdma_abi_header answer;
	size_t at = sizeof(head);
	int next = 0;

	memcpy(&head, batch->answers, sizeof(head));
	batch->answered = length;
	for (uint32_t i = 0; i < head.done && i < batch->count; i++) {
		if (length < at || length - at < sizeof(answer))
			break;
		memcpy(&answer, batch->answers + at, sizeof(answer));
		if (answer.length > length - at || !whole(batch, i, answer.length) || head.fds[i] > 1)
			break;
		batch->at[i] = (uint32_t)at;
		batch->fds[i] = head.fds[i] && next < got ? fds[next++] : -1;
		batch->done++;
		at += answer.length;
	}
	if (next == got && at == length && batch->done == head.done && (batch->done == batch->count) == !head.refused)
		return head.refused;
	while (next < got)
		urdma_close(fds[next++]);
	return EPROTO;
}

static int call(struct urdma_client *client, struct urdma_batch *batch)
{
	int fds[URDMA_ABI_MAX_BATCH], got = 0, status, refused;
	size_t length = sizeof(batch->answers);

	status = urdma_call_whole(client, URDMA_ABI_BATCH, &batch->message.head, batch->length, batch->answers, &length, -1,
				  fds, URDMA_ABI_MAX_BATCH, &got);
	/* Requests whose descriptors were lost because the table was full are still listed, so that they can
	 * be undone. */
	if (status && (status != EMFILE || length < sizeof(struct urdma_abi_batch_response)))
		return status;
	refused = take_apart(batch, length, fds, got);
	if (refused != EPROTO || status)
		return status ? status : refused;
	urdma_client_lose(client, "answer to a batch out of step");
	return EPROTO;
}

int urdma_batch_call(struct urdma_client *client, struct urdma_batch *batch)
{
	int before = errno, status = call(client, batch);

	errno = status ? status : before;
	return status;
}
