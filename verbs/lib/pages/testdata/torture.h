/* The test programs: one executable, one test per subcommand. */
#ifndef TORTURE_H
#define TORTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#include "alloc.h"
#include "pages.h"

#define PAGE 4096
#define MIB ((size_t)1 << 20)

#define CHECK(cond, ...)                                                      \
	do {                                                                  \
		if (!(cond)) {                                                \
			fflush(stdout);                                       \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__,    \
			        #cond);                                       \
			fprintf(stderr, __VA_ARGS__);                         \
			fputc('\n', stderr);                                  \
			_Exit(1);                                             \
		}                                                             \
	} while (0)

/* Exit status of a test that this machine or user can't run. */
#define SKIP_STATUS 77

/* Functions of alloc.c for ../malloc. */
int urdma_malloc_begin(const char *wish);
void *urdma_malloc(size_t bytes, size_t align, bool zeroed);
size_t urdma_malloc_size(const void *p);
bool urdma_malloc_resize(void *p, size_t bytes);

struct options {
	uint64_t seed;
	long rounds;
};
extern struct options opt;

uint64_t rnd(uint64_t *state);
uint64_t below(uint64_t *state, uint64_t n);

struct urdma_region must_register(void *p, size_t n);     /* either path is allowed */
struct urdma_region must_share(void *p, size_t n);
void must_fall_back(void *p, size_t n);
void must_refuse(void *p, size_t n, int flags, int want, const char *what);
void *anon(size_t n);
/* Returns the daemon's mapping of a region's memfd. */
void *daemon_view(const struct urdma_region *r);
void drop_view(void *view, const struct urdma_region *r);

void fill(void *p, size_t n, unsigned salt);
void check(const void *p, size_t n, unsigned salt, const char *what);
void check_zero(const void *p, size_t n, const char *what);
void wait_ok(pid_t pid, const char *what);
bool is_mapped(const void *p);
long mappings_of_memfd(void);
long file_kib(void); /* allocated by the memfd */
void *wait_for_end(void *arg); /* a thread that does nothing */

int test_answers(void);
int test_no_proc(void);
int test_allocated(void);
int test_model(void);
int test_pieces(void);
int test_threads(void);
int test_advice(void);
int test_forked(void);
int test_fork_threads(void);
int test_fork_kinds(void);
int test_fork_ends(void);
int test_fork_descriptors(void);
int test_fork_stacks(void);
int test_fork_signal(void);
int test_fork_mapped(void);

#endif
