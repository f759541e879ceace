/*
 * answers.c - what public functions answer when called with nothing but zeros, each
 * in a process of its own: "name@VERSION" on each line of standard input. Then, of
 * each operation of struct verbs_context in operations.h, whether a device has it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

static const struct {
	const char *name;
	size_t offset;
} operations[] = {
#define OPERATION(name, operation) { #name, offsetof(struct verbs_context, operation) },
#if __has_include("operations.h") /* made by the test */
#include "operations.h"
#endif
	{ NULL, 0 },
};

static int refusal(int number)
{
	return number == EOPNOTSUPP || number == ENOSYS ? number : 0;
}

/* The errno with which it refuses, or 0. A pointer is then NULL; a status the
 * number itself, or -1. */
static int call(void *function)
{
	long r;

	errno = 0;
	r = ((long (*)(long, long, long, long, long, long, long, long))function)(0, 0, 0, 0, 0, 0, 0, 0);
	return r == 0 || (int)r == -1 ? refusal(errno) : refusal((int)r);
}

static const char *answer(void *function)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(2); /* it may wait for something */
		setenv("URDMA_SOCKET", "/nowhere", 1); /* what urdmad refuses is another matter */
		_exit(call(function));
	}
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || !WEXITSTATUS(status))
		return "other";
	return WEXITSTATUS(status) == ENOSYS ? "refused ENOSYS" : "refused EOPNOTSUPP";
}

static void ask_operations(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	for (size_t i = 0; context && operations[i].name; i++) {
		const char *all = (const char *)verbs_get_ctx(context);

		printf("%s %s\n", operations[i].name, *(void *const *)(all + operations[i].offset) ? "other" : "refused EOPNOTSUPP");
	}
}

int main(void)
{
	struct rlimit none = { 0, 0 };
	char line[128];

	setrlimit(RLIMIT_CORE, &none);
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof(line), stdin)) {
		char *name = strtok(line, "@\n"), *version = strtok(NULL, "@\n");
		void *function = dlvsym(RTLD_DEFAULT, name, version);

		printf("%s@%s %s\n", name, version, function ? answer(function) : "missing");
	}
	ask_operations();
	return 0;
}
