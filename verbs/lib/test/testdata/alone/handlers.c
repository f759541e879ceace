/* handlers.c - a library whose fork handlers are registered before the program begins and use malloc's
 * memory that urdmad maps, too; and a program that forks. */
#ifdef LIBRARY
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *p;
static int prepared;

static void prepare(void)
{
	strcpy(p, "prepared");
	prepared++;
}

static void in_child(void)
{
	if (strcmp(p, "prepared"))
		_exit(3);
	strcpy(p, "the child's");
}

static void in_parent(void)
{
	if (strcmp(p, "prepared"))
		abort();
}

__attribute__((constructor)) static void begin(void)
{
	pthread_atfork(prepare, in_parent, in_child);
	p = valloc(100);
}

int handlers_ran(void)
{
	return prepared;
}
#else
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int handlers_ran(void);

int main(void)
{
	char line[512];
	int status, shared = 0;
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && fgets(line, sizeof(line), f))
		shared |= strstr(line, "/memfd:urdma") != NULL;
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
			fprintf(stderr, "child %d ended with %#x\n", i, status);
			return 1;
		}
	}
	return !shared || handlers_ran() != 3;
}
#endif
