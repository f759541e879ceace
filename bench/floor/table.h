#ifndef FLOOR_TABLE_H
#define FLOOR_TABLE_H

#include <stdint.h>

void print_head(void);
int print_row(const char *name, const char *words, uint64_t limit_ns);
int run_table(void);

#endif
