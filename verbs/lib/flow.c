/*
 * flow.c - flows: which frames a queue pair of type RAW_PACKET receives. The specifications become one value and
 * one mask for the header fields of a frame (struct urdma_abi_create_flow).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "making.h"
#include "tables.h"

/* A kind of specification: where its fields are in the key, and how long they are. All have the same form: a
 * header, a value and a mask of the same size. */
struct kind {
	enum ibv_flow_spec_type type;
	uint16_t size;       /* of the structure */
	uint16_t value;      /* offset of the value in it */
	uint16_t mask;
	uint8_t key, length; /* offset and bytes in the key */
	uint32_t layer;      /* enum urdma_abi_flow_layers; 0: every frame has it */
};

#define KIND(name, kind, at, bytes, layers) \
	{ IBV_FLOW_SPEC_##name, sizeof(struct ibv_flow_spec_##kind), offsetof(struct ibv_flow_spec_##kind, val), \
	  offsetof(struct ibv_flow_spec_##kind, mask), at, bytes, layers }

static const struct kind kinds[] = {
	KIND(ETH, eth, 0, 16, 0),
	KIND(IPV4, ipv4, 16, 8, URDMA_ABI_FLOW_IPV4),
	KIND(IPV4_EXT, ipv4_ext, 16, 12, URDMA_ABI_FLOW_IPV4),
	KIND(IPV6, ipv6, 16, 39, URDMA_ABI_FLOW_IPV6),
	KIND(TCP, tcp_udp, 56, 4, URDMA_ABI_FLOW_TCP),
	KIND(UDP, tcp_udp, 56, 4, URDMA_ABI_FLOW_UDP),
};

#define VLAN_TAG 14 /* offset of the tag in the key, 2 bytes */

static const struct kind *kind_of(uint32_t type)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].type == type)
			return &kinds[i];
	return NULL;
}

static int add_spec(struct urdma_abi_create_flow *request, const uint8_t *spec, uint64_t *used)
{
	struct { enum ibv_flow_spec_type type; uint16_t size; } head;
	const struct kind *kind;
	uint64_t bit;

	memcpy(&head, spec, sizeof(head));
	kind = kind_of(head.type);
	if (!kind)
		return EOPNOTSUPP;
	bit = 1ull << kind->key; /* one for each layer */
	if (head.size != kind->size || (*used & bit))
		return EINVAL;
	*used |= bit;
	request->layers |= kind->layer;
	memcpy(request->value + kind->key, spec + kind->value, kind->length);
	memcpy(request->mask + kind->key, spec + kind->mask, kind->length);
	if (kind->type == IBV_FLOW_SPEC_ETH && (request->mask[VLAN_TAG] || request->mask[VLAN_TAG + 1]))
		request->layers |= URDMA_ABI_FLOW_VLAN;
	return 0;
}

/* attr->size is not used, as in libibverbs: num_of_specs says how many specifications there are. */
static int fill(struct urdma_abi_create_flow *request, const struct ibv_flow_attr *attr)
{
	const uint8_t *spec = (const uint8_t *)(attr + 1);
	uint64_t used = 0;
	uint16_t size;
	int status;

	for (unsigned int i = 0; i < attr->num_of_specs; i++) {
		status = add_spec(request, spec, &used);
		if (status)
			return status;
		memcpy(&size, spec + offsetof(struct ibv_flow_spec_eth, size), sizeof(size));
		spec += size;
	}
	return 0;
}

/* Fails with EPERM if urdma.json does not allow raw packets on the port, EOPNOTSUPP if the port has no frames or a
 * specification is not supported, or EINVAL. */
struct ibv_flow *urdma_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	struct urdma_client *client = urdma_context_of(qp->context)->client;
	struct urdma_abi_create_flow request = {
		.qp = qp->handle, .type = attr->type, .priority = attr->priority, .port = attr->port, .flags = attr->flags,
	};
	struct urdma_abi_handle response;
	struct ibv_flow *flow;
	int status;

	status = attr->comp_mask ? EINVAL : fill(&request, attr);
	if (status)
		return urdma_null(status);
	flow = calloc(1, sizeof(*flow));
	if (!flow)
		return NULL;
	status = URDMA_ASK(client, URDMA_ABI_CREATE_FLOW, &request, &response);
	if (status) {
		free(flow);
		return urdma_null(status);
	}
	flow->context = qp->context;
	flow->handle = response.handle;
	return flow;
}

int urdma_destroy_flow(struct ibv_flow *ibv)
{
	struct urdma_client *client = urdma_context_of(ibv->context)->client;
	int status = urdma_call_destroy(client, URDMA_ABI_DESTROY_FLOW, ibv->handle);

	if (status)
		return urdma_status(status);
	free(ibv);
	return 0;
}
