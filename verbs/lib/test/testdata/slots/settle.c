/* settle.c - waits until threads of this process and of urdmad sleep. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "slots.h"

char state_of(const char *process, const char *thread)
{
	char path[320], text[256] = "", *name = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/task/%s/stat", process, thread);
	f = fopen(path, "r");
	if (f && fgets(text, sizeof(text), f))
		name = strrchr(text, ')');
	if (f)
		fclose(f);
	return name ? name[2] : 0;
}

static bool urdmad_sleeps(void)
{
	char path[64], state;
	bool asleep = true;
	struct dirent *e;
	DIR *tasks;

	CHECK(getenv("URDMAD_PID"));
	snprintf(path, sizeof(path), "/proc/%s/task", getenv("URDMAD_PID"));
	tasks = opendir(path);
	while (tasks && asleep && (e = readdir(tasks))) {
		state = e->d_name[0] == '.' ? 0 : state_of(getenv("URDMAD_PID"), e->d_name);
		asleep = state == 0 || state == 'S';
	}
	if (tasks)
		closedir(tasks);
	return asleep;
}

/* A thread that waits for a lock sleeps, too, but never for long: so it must be asleep at several checks. */
void settle(void)
{
	usleep(30000);
	for (int times = 0; times < 10; times++) {
		usleep(2000);
		if (!urdmad_sleeps())
			times = 0;
	}
}
