/* log.c - what the library says on stderr: nothing unless asked (URDMA_LOG=1)
 * or unless the user can't go on without it. */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session.h"

static bool wants(const char *name)
{
	const char *value = getenv(name);

	return value && *value && strcmp(value, "0") != 0;
}

/* What a line begins with: where several programs write, which of them. Returns its bytes. */
static size_t put_head(char *line, size_t room)
{
	int n = wants("URDMA_NAMES") ? snprintf(line, room, "urdma: %.32s[%d]: ", program_invocation_short_name, getpid()) : snprintf(line, room, "urdma: ");

	return (size_t)n;
}

/* One write(2), so that lines of several threads and processes stay whole. */
static void write_line(const char *format, va_list arguments)
{
	char line[512];
	size_t at = put_head(line, sizeof(line));
	int n = vsnprintf(line + at, sizeof(line) - at - 1, format, arguments);

	if (n < 0)
		return;
	at += (size_t)n < sizeof(line) - at - 1 ? (size_t)n : sizeof(line) - at - 2;
	line[at++] = '\n';
	/* Raw: write(2) is a cancellation point, and locks may be held here. */
	(void)!syscall(SYS_write, STDERR_FILENO, line, at);
}

void urdma_log(const char *format, ...)
{
	static int wanted = -1;
	va_list arguments;

	if (wanted < 0)
		wanted = wants("URDMA_LOG");
	if (!wanted)
		return;
	va_start(arguments, format);
	write_line(format, arguments);
	va_end(arguments);
}

void urdma_complain(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	write_line(format, arguments);
	va_end(arguments);
}
