/* The torture programs: one executable, one test per subcommand. */
#ifndef TORTURE_H
#define TORTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "pages.h"

#define PAGE 4096

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

/* A test that this machine or user can't run says so with this status. */
#define SKIP_STATUS 77

struct options {
	uint64_t seed;
	long rounds;
	bool full;    /* userfaultfd for kernel faults too */
};
extern struct options opt;

uint64_t rnd(uint64_t *state);
uint64_t below(uint64_t *state, uint64_t n);

struct urdma_region must_register(void *p, size_t n);     /* either path */
struct urdma_region must_share(void *p, size_t n);        /* converted */
void must_deregister(const struct urdma_region *r);
uint64_t converted(void); /* pages that live in a memfd and are not idle */
uint64_t idle_pages(void); /* that stay there by choice, see keep.c */
void keep_least(uint64_t bytes); /* of how large a range they do, from now on */
void keep_forget(void); /* all of them, which are unmapped */
uint64_t kept_pages(void); /* of those: no registration is left */
void *anon(size_t n);
/* The daemon's view: the whole memfd of a region, at its start. */
void *daemon_view(const struct urdma_region *r);
void drop_view(void *view, const struct urdma_region *r);

struct usage {
	long rss_kib, fds, mappings, file_kib;
};
struct usage usage_now(void);
bool only_idle(void); /* the files hold nothing but what stays of malloc's memory */

int test_writers(void);
int test_heap_writers(void);
int test_system_calls(void);
int test_overlap(void);
int test_realloc(void);
int test_calloc(void);
int test_fork(void);
int test_fork_daemon(void);
int test_fork_moment(void);
int test_fork_together(void);
int test_fork_causality(void);
int test_fork_causality_edges(void);
int test_fork_advice(void);
int test_fork_advised_before(void);
int test_fork_descriptors(void);
int test_rounds(void);
int test_scatter(void);
int test_peer(void);
int test_pinned(void);
int test_refused(void);
int test_interposed(void);
int test_reuse(void);
int test_brk(void);
int test_static(void);
int test_limits(void);
int test_unreadable(void);
int test_untouched(void);
int test_conditions(void);
int test_no_userfaultfd(void);
int test_kept(void);
int test_born(void);
int test_swap(void);
int test_group(void);
int test_group_forks(void);
int test_group_threads(void);
int test_huge(void);
int test_direct(void);
int test_cost(void);
int test_bench(void);

#endif
