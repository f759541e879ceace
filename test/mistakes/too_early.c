/* too_early.c - sends before the queue pair is connected. */
#include "mistakes.h"

int main(void)
{
	struct side a = side_new(PLAN);

	to_init(&a);
	post(&a, NULL, IBV_WR_SEND, IBV_SEND_SIGNALED, part(&a, 0, 64));
	return 0;
}
