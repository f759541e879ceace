/*
 * batch.h - several requests in one message: each would cost two thread switches of its
 * own.
 */
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
	/* After the call: */
	uint32_t done; /* requests that urdmad carried out */
	uint32_t at[URDMA_ABI_MAX_BATCH]; /* where their answers begin in answers */
	int fds[URDMA_ABI_MAX_BATCH]; /* the descriptor that came with each, or -1 */
	size_t answered; /* bytes of answers */
	uint8_t answers[URDMA_ABI_MAX_MESSAGE];
};

/* Begins a batch with nothing in it. */
void urdma_batch_init(struct urdma_batch *batch);

/*
 * Adds a request, whose header is filled in here. Returns how requests after it in the
 * batch name what it makes (BATCH_MADE in urdma_abi.h); 16 requests of an object's
 * making or changing fit.
 */
uint32_t urdma_batch_add(struct urdma_batch *batch, enum urdma_abi_type type, void *request, size_t length);

/*
 * Has urdmad carry them out, in order, until it refuses one, whose errno value is
 * returned; done says how many it did. What came with those, and what they made, is
 * the caller's: urdma_batch_undo gives all of it back.
 */
int urdma_batch_call(struct urdma_client *client, struct urdma_batch *batch);

/* Copies the answer to one that was done, of size bytes. EPROTO: it has another length. */
int urdma_batch_answer(const struct urdma_batch *batch, uint32_t i, void *answer, size_t size);

/* The descriptor that came with an answer, the caller's from now on; -1: none did. */
int urdma_batch_take(struct urdma_batch *batch, uint32_t i);

/* Destroys what was made, the last first, and closes the descriptors not taken. */
void urdma_batch_undo(struct urdma_client *client, struct urdma_batch *batch);

#endif /* URDMA_BATCH_H */
