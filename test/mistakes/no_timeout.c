/* no_timeout.c - waits for ever for a peer that has ended. */
#include "mistakes.h"

int main(void)
{
	struct side a = side_new(PLAN);

	to_init(&a);
	to_rtr(&a, a.qp->qp_num, 4711);
	to_rts(&a, 4711, 0, 7, 7);
	return 0;
}
