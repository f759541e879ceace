/* readers.c - see readers.h. */
#include <errno.h>
#include <semaphore.h>

#include "readers.h"

/* Like read(2), sem_wait continues after a signal handler with SA_RESTART. */
int urdma_readers_sleep(bool blocking)
{
	sem_t never;

	errno = EBADF;
	if (!blocking || sem_init(&never, 0, 0) != 0)
		return -1;
	return sem_wait(&never);
}
