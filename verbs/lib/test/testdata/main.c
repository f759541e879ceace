/* main.c - runs the case given on the command line; without one, lists them. */
#include "setup.h"

static const struct {
	const char *name;
	case_function *run;
} cases[] = {
	{ "devices", case_devices },
	{ "interrupted", case_interrupted },
	{ "link", case_link },
	{ "gids", case_gids },
	{ "refuse_objects", case_refuse_objects },
	{ "refuse_posts", case_refuse_posts },
	{ "unsupported", case_unsupported },
	{ "memory", case_memory },
	{ "loop", case_loop },
	{ "second_worker", case_loop },
	{ "one_queue", case_one_queue },
	{ "vectors", case_vectors },
	{ "full", case_full },
	{ "events", case_events },
	{ "resize", case_resize },
	{ "forget", case_forget },
	{ "build", case_build },
	{ "pollex", case_pollex },
	{ "async", case_async },
	{ "overrun", case_overrun },
	{ "threads", case_threads },
	{ "channel_destroyed", case_channel_destroyed },
	{ "channel_busy", case_channel_busy },
	{ "context_closed", case_context_closed },
	{ "reader_cancelled", case_reader_cancelled },
	{ "death", case_death },
	{ "death_between", case_death_between },
	{ "death_silent", case_death_silent },
	{ "reborn", case_reborn },
	{ "fork", case_fork },
	{ "mismatch", case_mismatch },
	{ "nobody", case_nobody },
	{ "strings", case_strings },
	{ "provider", case_provider },
};

struct ibv_context *open_first(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	CHECK(list && list[0]);
	context = ibv_open_device(list[0]);
	CHECK(context);
	ibv_free_device_list(list);
	return context;
}

void to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	CHECK_RETURNS(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	CHECK(qp->state == state);
}

struct ibv_qp *make_qp(struct setup *s, int sq, int rq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = s->cq, .recv_cq = s->cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = (uint32_t)sq, .max_recv_wr = (uint32_t)rq, .max_send_sge = 2,
			 .max_recv_sge = 2, .max_inline_data = 64 },
	};
	struct ibv_qp *qp = ibv_create_qp(s->pd, &attr);

	CHECK(qp && attr.cap.max_inline_data >= 64 && attr.cap.max_send_wr >= (uint32_t)sq);
	return qp;
}

void set_up(struct setup *s, int sq, int rq)
{
	memset(s, 0, sizeof(*s));
	s->context = open_first();
	CHECK((s->pd = ibv_alloc_pd(s->context)));
	CHECK((s->channel = ibv_create_comp_channel(s->context)));
	CHECK((s->cq = ibv_create_cq(s->context, 1024, s, s->channel, 0)));
	s->qp = make_qp(s, sq, rq);
	s->memory = aligned_alloc(4096, MEMORY);
	memset(s->memory, 1, MEMORY);
	CHECK((s->mr = ibv_reg_mr(s->pd, s->memory, MEMORY, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)));
	to_state(s->qp, IBV_QPS_RTS);
}

void tear_down(struct setup *s)
{
	CHECK_RETURNS(ibv_destroy_qp(s->qp), 0);
	CHECK_RETURNS(ibv_destroy_cq(s->cq), 0);
	CHECK_RETURNS(ibv_destroy_comp_channel(s->channel), 0);
	CHECK_RETURNS(ibv_dereg_mr(s->mr), 0);
	CHECK_RETURNS(ibv_dealloc_pd(s->pd), 0);
	CHECK_RETURNS(ibv_close_device(s->context), 0);
	free(s->memory);
}

int post_send(struct setup *s, enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)s->memory, length, s->mr->lkey };
	struct ibv_send_wr *bad = NULL, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
					       .send_flags = IBV_SEND_SIGNALED };
	int status = ibv_post_send(s->qp, &wr, &bad);

	CHECK(bad == (status ? &wr : NULL));
	return status;
}

int post_recv(struct setup *s, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)s->memory, 64, s->mr->lkey };
	struct ibv_recv_wr *bad = NULL, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };
	int status = ibv_post_recv(s->qp, &wr, &bad);

	CHECK(bad == (status ? &wr : NULL));
	return status;
}

void poll_for(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int got;

	while (n > 0) {
		got = ibv_poll_cq(cq, n, wc);
		CHECK(got >= 0);
		n -= got;
		wc += got;
	}
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc < 2)
			puts(cases[i].name);
		else if (strcmp(argv[1], cases[i].name) == 0) {
			cases[i].run();
			return 0;
		}
	}
	return argc < 2 ? 0 : 2;
}
