/* objects.h - functions shared by the cases about objects and their attributes: queue pairs of one process
 * on a real urdmad, connected by number. */
#ifndef OBJECTS_H
#define OBJECTS_H

#include "../setup.h"

#define LENGTH 65536u

extern struct ibv_context *context;
extern struct ibv_pd *pd;
extern union ibv_gid gid;

/* One end of a connection, with memory that the other end may use. */
struct end {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory; /* LENGTH bytes */
};

struct ibv_qp *new_qp(enum ibv_qp_type type, struct ibv_cq *cq);
/* Move a queue pair through INIT and RTR to RTS. */
void to_init(struct ibv_qp *qp, unsigned int access);
void to_rtr(struct ibv_qp *qp, uint32_t peer);
void to_rts(struct ibv_qp *qp);
void end_init(struct end *e, enum ibv_qp_type type, int access);
void end_free(struct end *e);
void pair_up(struct end *a, struct end *b, enum ibv_qp_type type, int access);

/* Returns a work request for length bytes of from's memory. */
struct ibv_send_wr request(struct end *from, enum ibv_wr_opcode opcode, uint32_t length, struct ibv_sge *sge);
struct ibv_send_wr write_to(struct end *from, uint32_t rkey, uint64_t addr, uint32_t length, struct ibv_sge *sge);
int post(struct end *from, struct ibv_send_wr *wr);
void receive(struct end *at, uint64_t wr_id, uint32_t length);
/* Returns the next completion, within ten seconds; it must have this status. */
struct ibv_wc completion(struct end *e, enum ibv_wc_status status);
void nothing(struct end *e);

/* The cases. */
void case_xrc(void), case_xrc_refused(void);
void case_windows1(void), case_windows2(void), case_windows_ex(void), case_windows_refused(void);
void case_parent_domain(void), case_rereg(void), case_empty_region(void), case_large_region(void), case_inline(void),
	case_query(void), case_comm_est(void), case_limits(void), case_immediate_refused(void), case_wall_clock(void),
	case_modify(void);
void case_again(void);
void case_uc(void), case_uc_refused(void);
void case_address_handles(void), case_datagram_header(void);
void case_shared_file(void), case_shared_file_refused(void), case_shared_anonymous(void), case_shared_huge(void);
void case_dmabuf(void), case_dmabuf_refused(void);
void case_on_demand(void), case_on_demand_protection(void), case_on_demand_local(void), case_on_demand_implicit(void),
	case_on_demand_refused(void), case_advise(void);
void case_many_queues(void), case_queue_threads(void);
void case_device_memory(void), case_device_memory_refused(void);
void case_null_region(void), case_null_region_refused(void);
void case_missed_event(void), case_missed_event_destroyed(void), case_missed_event_polling(void);
void case_explain(void), case_mark(void);
void case_srq_resize(void), case_srq_resize_refused(void), case_srq_resize_threads(void);

#endif
