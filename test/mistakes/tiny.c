/* tiny.c - registers each of a thousand small objects. */
#include "mistakes.h"

int main(void)
{
	struct side a = side_new(PLAN);

	for (size_t i = 0; i < 1000; i++)
		must(ibv_reg_mr(pd, a.memory + 64 * i, 64, 0) != NULL, "ibv_reg_mr");
	return 0;
}
