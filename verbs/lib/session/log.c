/* log.c - messages of the library on stderr: log lines if URDMA_LOG=1, and errors that the user has to
 * know. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kept.h"
#include "session.h"

static bool wants(const char *name)
{
	const char *value = getenv(name);

	return value && *value && strcmp(value, "0") != 0;
}

/* Writes the beginning of a line: with URDMA_NAMES also the program's name and process id, for programs
 * that share a terminal. Returns its length. */
static size_t put_head(char *line, size_t room)
{
	int n = wants("URDMA_NAMES") ? snprintf(line, room, "urdma: %.32s[%d]: ", program_invocation_short_name, getpid()) :
		snprintf(line, room, "urdma: ");

	return (size_t)n;
}

/* The program's standard error at load. If the program has closed it, the number may refer to another
 * file, such as data or a socket, which must not get our lines. A file that a program intends as standard
 * error is a terminal, /dev/null, opened for appending, or the same as standard output. */
static struct urdma_kept standard_error = { .fd = -1 };

static bool is_standard_error(void)
{
	struct urdma_kept out, now;
	struct stat st;

	if (urdma_kept_is(&standard_error))
		return true;
	if (fstat(STDERR_FILENO, &st) != 0)
		return false;
	if (S_ISCHR(st.st_mode) || fcntl(STDERR_FILENO, F_GETFL) & O_APPEND)
		return true;
	return urdma_identify(STDOUT_FILENO, &out) && urdma_identify(STDERR_FILENO, &now) && out.device == now.device &&
	       out.inode == now.inode;
}

__attribute__((constructor)) static void know_standard_error(void)
{
	urdma_keep(&standard_error, STDERR_FILENO);
}

/* One write(2) for each line, so that lines of several threads and processes do not mix. */
static void write_line(const char *format, va_list arguments)
{
	char line[512];
	size_t at = put_head(line, sizeof(line));
	int before = errno, n = vsnprintf(line + at, sizeof(line) - at - 1, format, arguments);

	if (n >= 0 && is_standard_error()) {
		at += (size_t)n < sizeof(line) - at - 1 ? (size_t)n : sizeof(line) - at - 2;
		line[at++] = '\n';
		/* A raw system call: write(2) is a cancellation point, and locks may be held here. */
		(void)!syscall(SYS_write, STDERR_FILENO, line, at);
	}
	errno = before;
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
