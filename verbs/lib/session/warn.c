/* warn.c - reports mistakes that have not caused a failure yet on stderr, if URDMA_WARN=1. */
#include <dlfcn.h>
#include <execinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

#define PLACES 256 /* maximum number of places that are reported */
#define FRAMES 32

bool urdma_warn_wanted;
static bool ends; /* the first warning ends the process */

/* Returns the address to which the program's call of the library returns. */
static uintptr_t caller(void)
{
	void *frame[FRAMES];
	int n = backtrace(frame, FRAMES);
	Dl_info own, other;

	if (!dladdr((void *)urdma_warn, &own))
		return 0;
	for (int i = 0; i < n; i++)
		if (!dladdr(frame[i], &other) || other.dli_fbase != own.dli_fbase)
			return (uintptr_t)frame[i];
	return 0;
}

/* Returns whether this is the first warning of its kind at a place. */
static bool first(uint32_t number, uintptr_t place)
{
	static uint64_t told[PLACES];
	uint64_t now = (uint64_t)place << 8 ^ number, none;

	for (int i = 0; i < PLACES; i++) {
		none = 0;
		if (__atomic_compare_exchange_n(&told[i], &none, now, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
		if (none == now)
			return false;
	}
	return false;
}

/* Prints the file and the offset in it, as addr2line(1) takes them. Returns the bytes written. */
static size_t put_place(char *text, size_t room, uintptr_t place)
{
	long thread = syscall(SYS_gettid);
	Dl_info at;
	int n;

	if (!place || !dladdr((void *)place, &at))
		n = snprintf(text, room, "%#lx", (unsigned long)place);
	else if (at.dli_sname)
		n = snprintf(text, room, "%s+%#lx (%s)", at.dli_fname, (unsigned long)(place - 1 - (uintptr_t)at.dli_fbase),
			at.dli_sname);
	else
		n = snprintf(text, room, "%s+%#lx", at.dli_fname, (unsigned long)(place - 1 - (uintptr_t)at.dli_fbase));
	if (n < 0 || (size_t)n >= room)
		return 0;
	n += snprintf(text + n, room - (size_t)n, ", thread %ld: ", thread);
	return (size_t)n < room ? (size_t)n : 0;
}

void urdma_warn(struct urdma_client *client, uint32_t qpn, uint32_t number, const char *format, ...)
{
	struct urdma_abi_warn request = { .qpn = qpn, .number = number };
	struct urdma_abi_explain_response answer;
	int before = errno;
	uintptr_t place = caller();
	va_list arguments;
	size_t at;

	if (!client)
		client = urdma_client_get();
	if (client && first(number, place)) {
		at = put_place(request.text, sizeof(request.text), place);
		va_start(arguments, format);
		vsnprintf(request.text + at, sizeof(request.text) - at, format, arguments);
		va_end(arguments);
		if (URDMA_ASK(client, URDMA_ABI_WARN, &request, &answer) == 0) {
			answer.text[sizeof(answer.text) - 1] = 0;
			urdma_complain_lines("warning: ", answer.text);
		}
		if (ends)
			_exit(URDMA_ABI_WARN_STATUS);
	}
	errno = before;
}

__attribute__((constructor)) static void ask(void)
{
	const char *value = getenv("URDMA_WARN");
	void *frame;

	urdma_warn_wanted = value && *value && strcmp(value, "0") != 0;
	ends = urdma_warn_wanted && strcmp(value, "error") == 0;
	if (urdma_warn_wanted)
		backtrace(&frame, 1); /* the first call loads a library, so it is made early */
}
