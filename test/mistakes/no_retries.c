/* no_retries.c - the first lost packet ends the connection. */
#include "mistakes.h"

int main(void)
{
	struct side a = side_new(PLAN);

	to_init(&a);
	to_rtr(&a, a.qp->qp_num, 4711);
	to_rts(&a, 4711, 14, 0, 7);
	return 0;
}
