/* opcode.c - the one table of what may be posted. An operation that urdmad
 * learns is switched on here and nowhere else. */
#include "objects.h"

static const struct {
	struct urdma_opcode opcode;
	uint64_t send_op; /* its IBV_QP_EX_WITH_* */
} opcodes[] = {
	[IBV_WR_RDMA_WRITE] = { { true, true, true, IBV_WC_RDMA_WRITE }, IBV_QP_EX_WITH_RDMA_WRITE },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { { false, true, true, IBV_WC_RDMA_WRITE },
					 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM },
	[IBV_WR_SEND] = { { true, false, true, IBV_WC_SEND }, IBV_QP_EX_WITH_SEND },
	[IBV_WR_SEND_WITH_IMM] = { { false, false, true, IBV_WC_SEND }, IBV_QP_EX_WITH_SEND_WITH_IMM },
	[IBV_WR_RDMA_READ] = { { true, true, false, IBV_WC_RDMA_READ }, IBV_QP_EX_WITH_RDMA_READ },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { { false, true, false, IBV_WC_COMP_SWAP }, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { { false, true, false, IBV_WC_FETCH_ADD },
					  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD },
	[IBV_WR_LOCAL_INV] = { { false, false, false, IBV_WC_LOCAL_INV }, IBV_QP_EX_WITH_LOCAL_INV },
	[IBV_WR_BIND_MW] = { { false, false, false, IBV_WC_BIND_MW }, IBV_QP_EX_WITH_BIND_MW },
	[IBV_WR_SEND_WITH_INV] = { { true, false, true, IBV_WC_SEND }, IBV_QP_EX_WITH_SEND_WITH_INV },
	[IBV_WR_TSO] = { { false, false, false, IBV_WC_TSO }, IBV_QP_EX_WITH_TSO },
	[IBV_WR_ATOMIC_WRITE] = { { false, true, true, IBV_WC_ATOMIC_WRITE }, IBV_QP_EX_WITH_ATOMIC_WRITE },
};

#define OPCODES (sizeof(opcodes) / sizeof(opcodes[0]))

const struct urdma_opcode *urdma_opcode(uint32_t opcode)
{
	if (opcode >= OPCODES || !opcodes[opcode].send_op)
		return NULL;
	return &opcodes[opcode].opcode;
}

uint64_t urdma_opcode_send_ops(void)
{
	uint64_t all = 0;

	for (size_t i = 0; i < OPCODES; i++)
		if (opcodes[i].opcode.supported)
			all |= opcodes[i].send_op;
	return all;
}
