/* small_cq.c - the completion queue is for one work request; the program posts sixteen. */
#include "mistakes.h"

int main(void)
{
	struct side a, b;
	struct plan p = PLAN;

	p.entries = 1;
	connected(&a, &b, p);
	for (size_t i = 0; i < 16; i++)
		must(!receive(&b, part(&b, i * 64, 64)), "ibv_post_recv");
	return 0;
}
