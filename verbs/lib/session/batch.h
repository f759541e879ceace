/* batch.h - several requests in one message. Each message costs two thread switches. */
#ifndef URDMA_BATCH_H
#define URDMA_BATCH_H

#include "session.h"

struct urdma_batch {
	uint32_t count;
	size_t length; /* bytes of the message so far */
	union {
		struct urdma_abi_batch head;
		uint8_t bytes[URDMA_ABI_MAX_MESSAGE];
	} message;
	/* Valid after the call: */
	uint32_t done; /* requests that urdmad carried out */
	uint32_t at[URDMA_ABI_MAX_BATCH]; /* offset of each response in answers */
	int fds[URDMA_ABI_MAX_BATCH]; /* the descriptor that came with each response, or -1 */
	size_t answered; /* bytes of answers */
	uint8_t answers[URDMA_ABI_MAX_MESSAGE];
};

/* Begins an empty batch. */
void urdma_batch_init(struct urdma_batch *batch);

/*
 * Adds a request and fills in its header. Returns the handle by which later requests of the batch refer to
 * the object it creates (BATCH_MADE in urdma_abi.h). A batch has room for 16 requests that create or
 * modify an object.
 */
uint32_t urdma_batch_add(struct urdma_batch *batch, enum urdma_abi_type type, void *request, size_t length);

/*
 * urdmad carries out the requests in order until one fails; returns its errno value, and done is the
 * number carried out. The caller owns the objects and descriptors of those; urdma_batch_undo gives all of
 * them back.
 */
int urdma_batch_call(struct urdma_client *client, struct urdma_batch *batch);

/* Copies the response, of size bytes, to a request that was carried out. EPROTO: its length is different. */
int urdma_batch_answer(const struct urdma_batch *batch, uint32_t i, void *answer, size_t size);

/* Returns the descriptor that came with a response, now owned by the caller; -1 if there is none. */
int urdma_batch_take(struct urdma_batch *batch, uint32_t i);

/* Destroys the objects created, the last first, and closes the descriptors that were not taken. */
void urdma_batch_undo(struct urdma_client *client, struct urdma_batch *batch);

#endif /* URDMA_BATCH_H */
