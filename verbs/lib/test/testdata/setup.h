/* setup.h - functions shared by the cases: checks that end the program, and one connected queue pair.
 * Included in several files of one program. */
#ifndef SETUP_H
#define SETUP_H

#include <errno.h>
#include <infiniband/verbs.h>
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

/* Returns whether a call would be a system call in libibverbs: posting and polling are none, and verbs.h
 * itself refuses functions that its tables lack. */
static inline int is_control(const char *call)
{
	static const char *const others[] = { "ibv_post", "ibv_poll", "ibv_wr_", "ibv_start_poll", "ibv_next_poll",
					      "ibv_modify_cq", "ibv_is_fork_initialized" };

	if (strncmp(call, "ibv_", 4) != 0 && strncmp(call, "registers", 9) != 0)
		return 0;
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strncmp(call, others[i], strlen(others[i])) == 0)
			return 0;
	return 1;
}

/* Checks that the call fails with this errno value: returned and also set, or NULL with errno set. A
 * successful call must not change errno. */
#define CHECK_RETURNS(call, want)                                                                         \
	do {                                                                                              \
		int got_;                                                                                 \
		errno = EXDEV;                                                                            \
		got_ = (call);                                                                            \
		if (got_ != (want) || (is_control(#call) && errno != (got_ > 0 ? got_ : got_ == 0 ? EXDEV : errno))) { \
			fprintf(stderr, "%s:%d: %s: %d, errno %d, expected %d\n", __FILE__, __LINE__, #call, got_, \
				errno, want);                                                             \
			exit(1);                                                                          \
		}                                                                                         \
	} while (0)

#define CHECK_NULL(call, want)                                                                               \
	do {                                                                                                 \
		errno = 0;                                                                                   \
		if ((call) || errno != (want)) {                                                             \
			fprintf(stderr, "%s:%d: %s: errno %d, expected %d\n", __FILE__, __LINE__, #call, errno, want); \
			exit(1);                                                                             \
		}                                                                                            \
	} while (0)

/* Flags in a wr_id for the fake urdmad, see work_test.go. */
#define WR_HOLD (1ull << 63)
#define WR_DIE (1ull << 62)
#define WR_REBORN (1ull << 61)
#define WR_LATE_EVENT (1ull << 60)
#define WR_ASYNC (1ull << 59)
#define WR_OVERRUN (1ull << 58)
#define WR_DIE_LATE (1ull << 57)

struct setup {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *memory;
};

#define MEMORY 65536u

struct ibv_context *open_first(void);
/* Makes a queue pair for sq sends and rq receives in state RTS. */
void set_up(struct setup *s, int sq, int rq);
void tear_down(struct setup *s);
struct ibv_qp *make_qp(struct setup *s, int sq, int rq);
void to_state(struct ibv_qp *qp, enum ibv_qp_state state);
int post_send(struct setup *s, enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t length);
int post_recv(struct setup *s, uint64_t wr_id);
/* Polls until there were n completions. */
void poll_for(struct ibv_cq *cq, int n, struct ibv_wc *wc);

/* The cases, in cases_*.c. */
typedef void case_function(void);
case_function case_devices, case_interrupted, case_link, case_gids, case_refuse_objects, case_refuse_posts,
	case_unsupported;
case_function case_loop, case_full, case_events, case_resize, case_forget, case_build, case_pollex, case_async;
case_function case_memory, case_one_queue, case_vectors;
case_function case_overrun, case_threads;
case_function case_channel_destroyed, case_channel_busy, case_context_closed, case_reader_cancelled;
case_function case_death, case_death_between, case_death_silent, case_reborn, case_fork, case_mismatch, case_nobody,
	case_strings, case_provider;

#endif
