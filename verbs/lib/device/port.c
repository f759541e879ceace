/* port.c - what urdmad says of a port. */
#include "context.h"

const struct urdma_abi_device *urdma_port_info(const struct ibv_context *context, uint32_t port)
{
	const struct urdma_abi_device *first = urdma_context_of(context)->info;

	return port >= 1 && port <= first->num_ports ? first + port - 1 : NULL;
}

int urdma_port_ask(const struct urdma_context *c, uint32_t port, struct urdma_abi_device *now)
{
	struct urdma_abi_query_device request = { .device = c->device + port - 1,
						  .shown = { .transport = c->info->transport } };

	return URDMA_ASK(c->client, URDMA_ABI_QUERY_DEVICE, &request, now);
}
