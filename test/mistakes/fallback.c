/* fallback.c - registers a megabyte that is mapped for reading alone. */
#include <sys/mman.h>

#include "mistakes.h"

int main(void)
{
	const size_t n = 1 << 20;
	void *table = mmap(NULL, n, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	side_new(PLAN);
	must(table != MAP_FAILED, "mmap");
	must(ibv_reg_mr(pd, table, n, 0) != NULL, "ibv_reg_mr");
	return 0;
}
