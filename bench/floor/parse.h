#ifndef FLOOR_PARSE_H
#define FLOOR_PARSE_H

#include "policy.h"

/* Fills p from words such as "post=yields poll=1 nap=20us"; -1 and a line on
 * stderr for a word it doesn't know. */
int parse_policy(const char *text, struct policy *p);

#endif
