/* short_receive.c - the message is longer than the receive. */
#include "mistakes.h"

int main(void)
{
	struct side a, b;

	connected(&a, &b, PLAN);
	must(!receive(&b, part(&b, 0, 32)), "ibv_post_recv");
	must(!post(&a, NULL, IBV_WR_SEND, IBV_SEND_SIGNALED, part(&a, 0, 64)), "ibv_post_send");
	return polled(&a) == IBV_WC_SUCCESS;
}
