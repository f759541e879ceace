/* opcode.c - properties of the operations (URDMA_ABI_OPERATIONS in urdma_abi.h). */
#include "objects.h"

#define OPERATION(name, completion, rdmap, right, can, reads, writes, in_line, immediate, invalidates, receive, \
	is_atomic, ud) \
	[IBV_WR_##name] = { .send_op = IBV_QP_EX_WITH_##name, .wc = IBV_WC_##completion, .supported = can,     \
			    .inlinable = in_line, .writes_local = writes, .atomic = is_atomic, .datagram = ud },

static const struct urdma_operation operations[] = { URDMA_ABI_OPERATIONS(OPERATION) };

#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

const struct urdma_operation *urdma_operation(uint32_t opcode)
{
	if (opcode >= OPERATIONS || !operations[opcode].send_op)
		return NULL;
	return &operations[opcode];
}

bool urdma_operation_of(const struct urdma_operation *op, enum ibv_qp_type type)
{
	if (type == IBV_QPT_XRC_RECV)
		return false; /* XRC_RECV has no send queue */
	if (type == IBV_QPT_RAW_PACKET)
		return op->send_op == IBV_QP_EX_WITH_SEND;
	if (type == IBV_QPT_UC)
		return !op->writes_local && op->send_op != IBV_QP_EX_WITH_SEND_WITH_INV;
	return type != IBV_QPT_UD || op->datagram;
}

uint64_t urdma_operation_send_ops(enum ibv_qp_type type)
{
	uint64_t all = 0;

	for (size_t i = 0; i < OPERATIONS; i++)
		if (operations[i].supported && urdma_operation_of(&operations[i], type))
			all |= operations[i].send_op;
	/* in XRC messages the header field for the STag carries the shared receive queue's number */
	if (type == IBV_QPT_XRC_SEND)
		all &= ~(uint64_t)IBV_QP_EX_WITH_SEND_WITH_INV;
	return all;
}
