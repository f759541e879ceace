/* check.h - checks that end a program, for the programs of this folder. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                       \
	do {                                                                                                   \
		if (!(condition)) {                                                                            \
			fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno); \
			exit(1);                                                                               \
		}                                                                                              \
	} while (0)

#define REFUSES(call, error)                        \
	do {                                        \
		errno = 0;                          \
		CHECK((call) == -1 && errno == (error)); \
	} while (0)

#endif
