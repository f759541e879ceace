/* psn.c - all connections begin with PSN 0. */
#include "mistakes.h"

int main(void)
{
	struct side a = side_new(PLAN);

	to_init(&a);
	to_rtr(&a, a.qp->qp_num, 0);
	to_rts(&a, 0, 14, 7, 7);
	return 0;
}
