/* main.c - connects queue pairs by number and runs the case given on the command line; without one, lists
 * them. */
#include <time.h>
#include <unistd.h>

#include "objects.h"

static const struct {
	const char *name;
	case_function *run;
} cases[] = {
	{ "xrc", case_xrc },
	{ "xrc_refused", case_xrc_refused },
	{ "windows1", case_windows1 },
	{ "windows2", case_windows2 },
	{ "windows_ex", case_windows_ex },
	{ "windows_refused", case_windows_refused },
	{ "parent_domain", case_parent_domain },
	{ "rereg", case_rereg },
	{ "empty_region", case_empty_region },
	{ "shared_file", case_shared_file },
	{ "shared_file_refused", case_shared_file_refused },
	{ "shared_anonymous", case_shared_anonymous },
	{ "shared_huge", case_shared_huge },
	{ "dmabuf", case_dmabuf },
	{ "dmabuf_refused", case_dmabuf_refused },
	{ "on_demand", case_on_demand },
	{ "on_demand_protection", case_on_demand_protection },
	{ "on_demand_local", case_on_demand_local },
	{ "on_demand_implicit", case_on_demand_implicit },
	{ "on_demand_refused", case_on_demand_refused },
	{ "advise", case_advise },
	{ "large_region", case_large_region },
	{ "inline", case_inline },
	{ "query", case_query },
	{ "again", case_again },
	{ "comm_est", case_comm_est },
	{ "limits", case_limits },
	{ "immediate_refused", case_immediate_refused },
	{ "wall_clock", case_wall_clock },
	{ "modify", case_modify },
	{ "uc", case_uc },
	{ "uc_refused", case_uc_refused },
	{ "address_handles", case_address_handles },
	{ "datagram_header", case_datagram_header },
	{ "many_queues", case_many_queues },
	{ "queue_threads", case_queue_threads },
	{ "device_memory", case_device_memory },
	{ "device_memory_refused", case_device_memory_refused },
	{ "null_region", case_null_region },
	{ "null_region_refused", case_null_region_refused },
	{ "explain", case_explain },
	{ "mark", case_mark },
	{ "missed_event", case_missed_event },
	{ "missed_event_destroyed", case_missed_event_destroyed },
	{ "missed_event_polling", case_missed_event_polling },
	{ "srq_resize", case_srq_resize },
	{ "srq_resize_refused", case_srq_resize_refused },
	{ "srq_resize_threads", case_srq_resize_threads },
};

struct ibv_context *context;
struct ibv_pd *pd;
union ibv_gid gid;

struct ibv_qp *new_qp(enum ibv_qp_type type, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = type, .cap = { 32, 32, 2, 2, 64 }, .pd = pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(context, &attr);

	CHECK(qp);
	return qp;
}

void to_init(struct ibv_qp *qp, unsigned int access)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access };

	CHECK_RETURNS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
}

void to_rtr(struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer, .max_dest_rd_atomic = 4,
		.min_rnr_timer = 12, .ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = gid, .hop_limit = 1 } },
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (qp->qp_type != IBV_QPT_UC) /* ignored for XRC types that lack half of them */
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	CHECK_RETURNS(ibv_modify_qp(qp, &attr, mask), 0);
}

void to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
		.max_rd_atomic = 4 };
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (qp->qp_type != IBV_QPT_UC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	CHECK_RETURNS(ibv_modify_qp(qp, &attr, mask), 0);
}

#define ALL_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	IBV_ACCESS_REMOTE_ATOMIC)

void end_init(struct end *e, enum ibv_qp_type type, int access)
{
	CHECK((e->cq = ibv_create_cq(context, 128, NULL, NULL, 0)));
	CHECK((e->memory = aligned_alloc(4096, LENGTH)));
	memset(e->memory, 0, LENGTH);
	CHECK((e->mr = ibv_reg_mr(pd, e->memory, LENGTH, access)));
	e->qp = new_qp(type, e->cq);
	to_init(e->qp, type == IBV_QPT_RC ? ALL_ACCESS : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

void end_free(struct end *e)
{
	CHECK_RETURNS(ibv_destroy_qp(e->qp), 0);
	CHECK_RETURNS(ibv_dereg_mr(e->mr), 0);
	CHECK_RETURNS(ibv_destroy_cq(e->cq), 0);
	free(e->memory);
}

void pair_up(struct end *a, struct end *b, enum ibv_qp_type type, int access)
{
	end_init(a, type, access);
	end_init(b, type, access);
	to_rtr(a->qp, b->qp->qp_num);
	to_rtr(b->qp, a->qp->qp_num);
	to_rts(a->qp);
	to_rts(b->qp);
}

struct ibv_send_wr request(struct end *from, enum ibv_wr_opcode opcode, uint32_t length, struct ibv_sge *sge)
{
	*sge = (struct ibv_sge){ (uintptr_t)from->memory, length, from->mr->lkey };
	return (struct ibv_send_wr){ .sg_list = sge, .num_sge = length ? 1 : 0, .opcode = opcode,
				     .send_flags = IBV_SEND_SIGNALED };
}

struct ibv_send_wr write_to(struct end *from, uint32_t rkey, uint64_t addr, uint32_t length, struct ibv_sge *sge)
{
	struct ibv_send_wr wr = request(from, IBV_WR_RDMA_WRITE, length, sge);

	wr.wr.rdma.rkey = rkey;
	wr.wr.rdma.remote_addr = addr;
	return wr;
}

int post(struct end *from, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(from->qp, wr, &bad);
}

void receive(struct end *at, uint64_t wr_id, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)at->memory, length, at->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = length ? 1 : 0 };

	CHECK_RETURNS(ibv_post_recv(at->qp, &wr, &bad), 0);
}

struct ibv_wc completion(struct end *e, enum ibv_wc_status status)
{
	time_t end = time(NULL) + 60;
	struct ibv_wc wc;
	int got;

	while ((got = ibv_poll_cq(e->cq, 1, &wc)) == 0)
		CHECK(time(NULL) < end);
	CHECK(got == 1);
	if (wc.status != status) {
		fprintf(stderr, "completion %lu: %s (0x%x), expected %s\n", wc.wr_id, ibv_wc_status_str(wc.status), wc.vendor_err,
			ibv_wc_status_str(status));
		exit(1);
	}
	return wc;
}

void nothing(struct end *e)
{
	struct ibv_wc wc;

	usleep(50000);
	CHECK_RETURNS(ibv_poll_cq(e->cq, 1, &wc), 0);
}

static void open_all(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	CHECK(list && list[0] && (context = ibv_open_device(list[0])));
	CHECK((pd = ibv_alloc_pd(context)));
	CHECK_RETURNS(ibv_query_gid(context, 1, 0, &gid), 0);
	ibv_free_device_list(list);
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc < 2)
			puts(cases[i].name);
		else if (strcmp(argv[1], cases[i].name) == 0) {
			open_all();
			cases[i].run();
			return 0;
		}
	}
	return argc < 2 ? 0 : 2;
}
