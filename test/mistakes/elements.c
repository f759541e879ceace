/* elements.c - posts more scatter/gather elements than it has asked for. */
#include "mistakes.h"

int main(void)
{
	struct side a, b;
	struct ibv_sge sge[32];
	struct ibv_send_wr wr = { .sg_list = sge, .num_sge = 32, .opcode = IBV_WR_SEND }, *bad;

	connected(&a, &b, PLAN);
	for (size_t i = 0; i < 32; i++)
		sge[i] = part(&a, i * 64, 64);
	ibv_post_send(a.qp, &wr, &bad);
	return 0;
}
