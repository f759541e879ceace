/* requests.c - properties of each request, from urdma_abi.h. */
#include <errno.h>

#include "../../abi/urdma_abi.h"
#include "client.h"

#define CALL(number, name, object, request, answer, undo, way, call, text) [number] = call,
#define UNDO(number, name, object, request, answer, undo, way, call, text) [number] = URDMA_ABI_##undo,
#define WAY(number, name, object, request, answer, undo, way, call, text) [number] = URDMA_ABI_##way,

static const char *const calls[] = { URDMA_ABI_REQUESTS(CALL) };
static const uint8_t undoing[] = { URDMA_ABI_REQUESTS(UNDO) };
static const uint8_t ways[] = { URDMA_ABI_REQUESTS(WAY) };

const char *urdma_request_name(enum urdma_abi_type type)
{
	return calls[type];
}

enum urdma_abi_type urdma_undoing(enum urdma_abi_type type)
{
	return undoing[type];
}

bool urdma_moves_queue(enum urdma_abi_type type)
{
	return ways[type] == URDMA_ABI_MOVES;
}

const char *urdma_request_advice(int status)
{
	return status == ENOMEM || status == EDQUOT ? "; urdmad's log names the limit" : "";
}
