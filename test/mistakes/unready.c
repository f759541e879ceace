/* unready.c - posts its receive after the peer's message has arrived. */
#include <unistd.h>

#include "mistakes.h"

int main(void)
{
	struct side a, b;

	connected(&a, &b, PLAN);
	must(!post(&a, NULL, IBV_WR_SEND, IBV_SEND_SIGNALED, part(&a, 0, 64)), "ibv_post_send");
	sleep(1);
	must(!receive(&b, part(&b, 0, 64)), "ibv_post_recv");
	return polled(&b) != IBV_WC_SUCCESS || polled(&a) != IBV_WC_SUCCESS;
}
