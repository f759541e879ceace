#ifndef FLOOR_PARSE_H
#define FLOOR_PARSE_H

#include "policy.h"

/* Fills p from words such as "post=yields poll=1 nap=20us". Returns -1, with a line on stderr, for an unknown word. */
int parse_policy(const char *text, struct policy *p);

#endif
