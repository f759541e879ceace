/* event_names.c - prints rdma_event_str of every event, and of some that don't exist, as in the library to
 * which it is linked. */
#include <rdma/rdma_cma.h>
#include <stdio.h>

int main(void)
{
	for (int i = -1; i < 18; i++)
		printf("%d %s\n", i, rdma_event_str((enum rdma_cm_event_type)i));
	return 0;
}
