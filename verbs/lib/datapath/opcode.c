/*
 * opcode.c - C's one table of operations. An operation that urdmad learns is
 * switched on here, and in verbs/abi/operation.go, Go's; a test holds the two
 * together.
 */
#include "objects.h"

static const struct urdma_operation operations[] = {
	[IBV_WR_RDMA_WRITE] = { .send_op = IBV_QP_EX_WITH_RDMA_WRITE, .wc = IBV_WC_RDMA_WRITE, .supported = true,
				.inlinable = true },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { .send_op = IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, .wc = IBV_WC_RDMA_WRITE,
					 .supported = true, .inlinable = true },
	[IBV_WR_SEND] = { .send_op = IBV_QP_EX_WITH_SEND, .wc = IBV_WC_SEND, .supported = true, .inlinable = true,
			  .datagram = true },
	[IBV_WR_SEND_WITH_IMM] = { .send_op = IBV_QP_EX_WITH_SEND_WITH_IMM, .wc = IBV_WC_SEND, .supported = true,
				   .inlinable = true, .datagram = true },
	[IBV_WR_RDMA_READ] = { .send_op = IBV_QP_EX_WITH_RDMA_READ, .wc = IBV_WC_RDMA_READ, .supported = true,
			       .writes_local = true },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { .send_op = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, .wc = IBV_WC_COMP_SWAP,
					.supported = true, .writes_local = true, .atomic = true },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { .send_op = IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, .wc = IBV_WC_FETCH_ADD,
					  .supported = true, .writes_local = true, .atomic = true },
	[IBV_WR_LOCAL_INV] = { .send_op = IBV_QP_EX_WITH_LOCAL_INV, .wc = IBV_WC_LOCAL_INV, .supported = true },
	[IBV_WR_BIND_MW] = { .send_op = IBV_QP_EX_WITH_BIND_MW, .wc = IBV_WC_BIND_MW, .supported = true },
	[IBV_WR_SEND_WITH_INV] = { .send_op = IBV_QP_EX_WITH_SEND_WITH_INV, .wc = IBV_WC_SEND, .supported = true,
				   .inlinable = true },
	[IBV_WR_TSO] = { .send_op = IBV_QP_EX_WITH_TSO, .wc = IBV_WC_TSO },
	[IBV_WR_ATOMIC_WRITE] = { .send_op = IBV_QP_EX_WITH_ATOMIC_WRITE, .wc = IBV_WC_ATOMIC_WRITE, .inlinable = true },
};

#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

const struct urdma_operation *urdma_operation(uint32_t opcode)
{
	if (opcode >= OPERATIONS || !operations[opcode].send_op)
		return NULL;
	return &operations[opcode];
}

bool urdma_operation_of(const struct urdma_operation *op, enum ibv_qp_type type)
{
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
	if (type == IBV_QPT_XRC_SEND) /* the STag's place on the wire is the shared receive queue's */
		all &= ~(uint64_t)IBV_QP_EX_WITH_SEND_WITH_INV;
	return all;
}
