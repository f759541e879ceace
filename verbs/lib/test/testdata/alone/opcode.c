/* opcode.c - prints opcode.c's table, a line for each opcode: number, completion,
 * supported, inlinable, writes local memory, atomic. */
#include <stdio.h>

#include "../../../datapath/objects.h"

int main(void)
{
	uint64_t supported = 0;

	for (uint32_t i = 0; i < 64; i++) {
		const struct urdma_operation *op = urdma_operation(i);

		if (!op)
			continue;
		printf("%u %u %d %d %d %d\n", i, op->wc, op->supported, op->inlinable, op->writes_local, op->atomic);
		if (op->supported)
			supported |= op->send_op;
	}
	return supported == urdma_operation_send_ops(IBV_QPT_RC) ? 0 : 1;
}
