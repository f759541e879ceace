/* explain.c - prints on stderr why something failed, if URDMA_EXPLAIN=1. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

bool urdma_explain_wanted;

void urdma_complain_lines(const char *before, char *text)
{
	char *next;

	for (char *line = text; *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = 0;
		urdma_complain("%s%s", line == text ? before : "", line);
	}
}

void urdma_explain(struct urdma_client *client, uint32_t qpn, uint32_t number)
{
	static uint64_t last_explained; /* the completion explained last: a queue pair flushes all its work for one reason */
	uint64_t now = (uint64_t)qpn << 32 | number;
	struct urdma_abi_explain request = { .qpn = qpn, .number = number };
	struct urdma_abi_explain_response answer;
	int before = errno;

	if (!number || (qpn && (number & ~0xffu) != URDMA_ABI_EXPLAIN_EVENT &&
		__atomic_exchange_n(&last_explained, now, __ATOMIC_RELAXED) == now))
		return;
	if (URDMA_ASK(client, URDMA_ABI_EXPLAIN, &request, &answer) == 0) {
		answer.text[sizeof(answer.text) - 1] = 0;
		urdma_complain_lines("", answer.text);
	}
	errno = before;
}

int urdma_wrong(int error, const char *format, ...)
{
	char text[256];
	va_list args;

	if (urdma_explain_wanted) {
		va_start(args, format);
		vsnprintf(text, sizeof(text), format, args);
		va_end(args);
		urdma_complain("%s: %s", error == EFAULT ? "EFAULT" : "EINVAL", text);
	}
	return error;
}

static void refused(struct urdma_client *client, int status)
{
	urdma_explain(client, 0, URDMA_ABI_EXPLAIN_REFUSED + (uint32_t)status);
}

__attribute__((constructor)) static void ask(void)
{
	const char *value = getenv("URDMA_EXPLAIN");

	urdma_explain_wanted = value && *value && strcmp(value, "0") != 0;
	if (urdma_explain_wanted)
		urdma_call_refused = refused;
}
