/* deregistered.c - deregisters the memory of a receive that is posted. */
#include "mistakes.h"

int main(void)
{
	struct side a, b;

	connected(&a, &b, PLAN);
	must(!receive(&a, part(&a, 0, 64)), "ibv_post_recv");
	ibv_dereg_mr(a.mr);
	free(a.memory);
	return 0;
}
