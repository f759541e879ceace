/* datagram.c - receives datagrams of 32 bytes into 32 bytes. */
#include "mistakes.h"

int main(void)
{
	struct plan p = PLAN;
	struct side a;

	p.type = IBV_QPT_UD;
	a = side_new(p);
	to_init(&a);
	must(!receive(&a, part(&a, 0, 32)), "ibv_post_recv");
	return 0;
}
