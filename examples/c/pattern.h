/* pattern.h - a data pattern that shows misplaced bytes: byte i of message n. Every example fills with it what it
 * sends, and checks with it what it receives. */
#ifndef EXAMPLES_PATTERN_H
#define EXAMPLES_PATTERN_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline uint8_t pattern_byte(uint32_t n, size_t i)
{
	return (uint8_t)(n * 167 + i * 13 + (i >> 8));
}

static inline void pattern_fill(uint8_t *data, size_t length, uint32_t n)
{
	for (size_t i = 0; i < length; i++)
		data[i] = pattern_byte(n, i);
}

/* Ends the program with a message, and the text of errno if it is set. */
static inline _Noreturn void fail(const char *what)
{
	fprintf(stderr, "FAILED: %s%s%s\n", what, errno ? ": " : "",
		errno ? strerror(errno) : "");
	exit(1);
}

static inline void pattern_check(const uint8_t *data, size_t length, uint32_t n)
{
	for (size_t i = 0; i < length; i++) {
		if (data[i] == pattern_byte(n, i))
			continue;
		fprintf(stderr, "FAILED: message %u, byte %zu of %zu: got 0x%02x, expected 0x%02x\n",
			n, i, length, data[i], pattern_byte(n, i));
		exit(1);
	}
}

#endif /* EXAMPLES_PATTERN_H */
