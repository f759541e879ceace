/* slots.h - functions shared by the cases about queue slots: connected queue pairs of one process on a
 * real urdmad, and posting until no slot is left. */
#ifndef SLOTS_H
#define SLOTS_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>

#include "../setup.h"

#define DEPTH 16

/* One end of a connection. */
struct end {
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	struct end *peer;
};

extern struct ibv_context *context;
extern struct ibv_pd *pd;
extern struct ibv_mr *mr;
extern char *memory; /* 4096 bytes that urdmad maps, too */

struct ibv_cq *make_cq(int entries);
/* A queue pair with DEPTH sends and receives. */
struct ibv_qp *make_pair(struct ibv_cq *send, struct ibv_cq *recv);
struct ibv_qp *make_extended(struct ibv_cq *send, struct ibv_cq *recv);
/* Connects two queue pairs that are in INIT. */
void join(struct end *a, struct ibv_qp *a_qp, struct end *b, struct ibv_qp *b_qp);
/* A connection whose ends complete on queues of their own, of DEPTH entries. */
void pair_up(struct end *a, struct end *b);
void part(struct end *end);

int post_write(struct end *from, uint64_t wr_id, unsigned int flags);
int post_message(struct end *from, uint64_t wr_id);
int post_receive(struct end *at, uint64_t wr_id);

/* Waits until urdmad has completed all posted work. */
void settle(void);
/* Returns the kernel's state letter of a thread (R, S, ...), 0 if there is no such thread. */
char state_of(const char *process, const char *thread);
/* Posts signaled Writes until one is refused, with time to complete before each that could be too many;
 * returns the number posted. */
int fill_with_writes(struct end *from, uint64_t first, unsigned int flags);
int fill_with_receives(struct end *at, uint64_t first);
/* Polls n completions, whose wr_ids must be first and the following numbers. */
void expect(struct ibv_cq *cq, uint64_t first, int n, enum ibv_wc_status status);
void expect_nothing(struct ibv_cq *cq);

void case_sends(void), case_receives(void), case_unsignaled(void), case_selective(void), case_all_signaled(void);
void case_failed(void), case_failed_under_way(void), case_extended(void), case_shared(void), case_destroyed(void);
void case_reset(void), case_killed(void), case_forks(void), case_forks_shared(void), case_forks_edges(void),
	case_fork_init(void);
void case_inherited(void), case_inherited_raw(void), case_closed_descriptors(void), case_closed_stderr(void),
	case_filtered(void);
void case_cm_forks(void), case_fork_stopped(void), case_cancelled(void);
void case_descriptors(void), case_descriptors_resize(void), case_descriptors_hello(void), case_resize_race(void),
	case_endpoint_destroyed(void), case_endpoints(void);

#endif
