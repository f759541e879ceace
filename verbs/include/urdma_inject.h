/*
 * urdma_inject.h - urdma inject from within a program, for tests of its error handling. C11 or C++11; nothing to link
 * with. Recipes: docs/fault-tests.md.
 *
 *	int64_t rule = urdma_inject("send status=RETRY_EXC_ERR nth=3 qp=%x", qp->qp_num);
 *	if (rule == -EOPNOTSUPP)
 *		skip(); // not on urdma
 *	... the third send that is posted to qp fails ...
 *	assert(urdma_inject("hits %u", (unsigned)rule) == 1);
 *	urdma_inject("clear");
 */
#ifndef URDMA_INJECT_H
#define URDMA_INJECT_H

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#ifndef RTLD_DEFAULT
#define RTLD_DEFAULT ((void *)0) /* dlfcn.h has it only with _GNU_SOURCE */
#endif

/*
 * Carries out statements of urdma inject, after formatting as by printf(3), for the objects of this process alone.
 * They are in force when it returns.
 *
 * Returns the number of the first rule that they make, 0 if they make none; for "hits NUMBER" the number of events
 * that the rule has hit. A rule ends by "clear NUMBER" or "clear", which ends all of this process, also those of
 * urdma exec --inject; with this process; and a rule with qp= with its queue pair. Until it is cleared it can be
 * asked for its hits, and counts among the 128 rules of a user.
 *
 * Errors are negative errno values; errno is unchanged.
 *   EOPNOTSUPP  this program does not run on urdma, or its urdmad can't do that
 *   ENODEV      no urdmad runs
 *   EINVAL      a statement is malformed, or all have more than 3071 bytes
 *   ENOENT      this process has no such object or rule
 *   EPERM       the statement concerns a port
 *   EDQUOT      too many rules
 */
__attribute__((format(printf, 1, 2), unused)) static int64_t urdma_inject(const char *format, ...)
{
	union { /* ISO C converts no object pointer to a function pointer */
		void *symbol;
		int64_t (*call)(const char *statements);
	} function = { dlsym(RTLD_DEFAULT, "urdma_inject") };
	char statements[3072];
	va_list arguments;
	int n;

	if (!function.symbol)
		return -EOPNOTSUPP;
	va_start(arguments, format);
	n = vsnprintf(statements, sizeof(statements), format, arguments);
	va_end(arguments);
	return n < 0 || (size_t)n >= sizeof(statements) ? -EINVAL : function.call(statements);
}

#endif /* URDMA_INJECT_H */
