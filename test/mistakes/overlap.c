/* overlap.c - receives of 128 bytes, each 64 behind the one before. */
#include "mistakes.h"

int main(void)
{
	struct side a, b;

	connected(&a, &b, PLAN);
	for (size_t i = 0; i < 4; i++)
		must(!receive(&a, part(&a, i * 64, 128)), "ibv_post_recv");
	return 0;
}
