/* main.c - connects queue pairs and runs the case given on the command line; without one, lists them. */
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "slots.h"

static const struct {
	const char *name;
	case_function *run;
} cases[] = {
	{ "sends", case_sends },
	{ "receives", case_receives },
	{ "unsignaled", case_unsignaled },
	{ "selective", case_selective },
	{ "all_signaled", case_all_signaled },
	{ "failed", case_failed },
	{ "failed_under_way", case_failed_under_way },
	{ "extended", case_extended },
	{ "shared", case_shared },
	{ "destroyed", case_destroyed },
	{ "reset", case_reset },
	{ "killed", case_killed },
	{ "forks", case_forks },
	{ "forks_shared", case_forks_shared }, { "forks_edges", case_forks_edges },
	{ "fork_init", case_fork_init },
	{ "cm_forks", case_cm_forks },
	{ "inherited", case_inherited },
	{ "inherited_raw", case_inherited_raw },
	{ "closed_descriptors", case_closed_descriptors },
	{ "closed_stderr", case_closed_stderr },
	{ "filtered", case_filtered },
	{ "fork_stopped", case_fork_stopped },
	{ "cancelled", case_cancelled },
	{ "resize_race", case_resize_race },
	{ "endpoint_destroyed", case_endpoint_destroyed },
	{ "endpoints", case_endpoints },
	{ "descriptors", case_descriptors },
	{ "descriptors_resize", case_descriptors_resize },
	{ "descriptors_hello", case_descriptors_hello },
};

struct ibv_context *context;
struct ibv_pd *pd;
struct ibv_mr *mr;
char *memory;

static struct ibv_qp_init_attr_ex attributes(struct ibv_cq *send, struct ibv_cq *recv)
{
	return (struct ibv_qp_init_attr_ex){
		.send_cq = send, .recv_cq = recv, .qp_type = IBV_QPT_RC, .cap = { DEPTH, DEPTH, 1, 1, 32 },
		.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd,
	};
}

static struct ibv_qp *to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };

	CHECK(qp);
	CHECK_RETURNS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
	return qp;
}

struct ibv_cq *make_cq(int entries)
{
	struct ibv_cq *cq = ibv_create_cq(context, entries, NULL, NULL, 0);

	CHECK(cq && cq->cqe == entries);
	return cq;
}

struct ibv_qp *make_pair(struct ibv_cq *send, struct ibv_cq *recv)
{
	struct ibv_qp_init_attr_ex attr = attributes(send, recv);

	return to_init(ibv_create_qp_ex(context, &attr));
}

struct ibv_qp *make_extended(struct ibv_cq *send, struct ibv_cq *recv)
{
	struct ibv_qp_init_attr_ex attr = attributes(send, recv);

	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
	return to_init(ibv_create_qp_ex(context, &attr));
}

static void *accept_one(void *arg)
{
	struct end *end = arg;
	struct rdma_cm_id *listener = end->id;
	struct rdma_conn_param param = { .rnr_retry_count = 7, .retry_count = 7 };

	CHECK_RETURNS(rdma_get_request(listener, &end->id), 0);
	end->id->qp = end->qp;
	CHECK_RETURNS(rdma_accept(end->id, &param), 0);
	return NULL;
}

static struct rdma_cm_id *listen_at(struct sockaddr *at)
{
	struct rdma_cm_id *id;

	CHECK_RETURNS(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	CHECK_RETURNS(rdma_bind_addr(id, at), 0);
	CHECK_RETURNS(rdma_listen(id, 1), 0);
	return id;
}

void join(struct end *a, struct ibv_qp *a_qp, struct end *b, struct ibv_qp *b_qp)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc6120001) }; /* 198.18.0.1 */
	struct rdma_conn_param param = { .rnr_retry_count = 7, .retry_count = 7 };
	struct rdma_cm_id *listener = listen_at((struct sockaddr *)&at);
	pthread_t thread;

	*b = (struct end){ .id = listener, .qp = b_qp, .peer = a };
	*a = (struct end){ .qp = a_qp, .peer = b };
	at.sin_port = rdma_get_src_port(listener);
	CHECK(!pthread_create(&thread, NULL, accept_one, b));
	CHECK_RETURNS(rdma_create_id(NULL, &a->id, NULL, RDMA_PS_TCP), 0);
	CHECK_RETURNS(rdma_resolve_addr(a->id, NULL, (struct sockaddr *)&at, 2000), 0);
	CHECK_RETURNS(rdma_resolve_route(a->id, 2000), 0);
	a->id->qp = a_qp;
	CHECK_RETURNS(rdma_connect(a->id, &param), 0);
	pthread_join(thread, NULL);
	CHECK_RETURNS(rdma_destroy_id(listener), 0);
}

void pair_up(struct end *a, struct end *b)
{
	join(a, make_pair(make_cq(DEPTH), make_cq(DEPTH)), b, make_pair(make_cq(DEPTH), make_cq(DEPTH)));
}

/* Disconnects; the queue pair is kept. */
void part(struct end *end)
{
	end->id->qp = NULL;
	CHECK_RETURNS(rdma_destroy_id(end->id), 0);
}

int post_write(struct end *from, uint64_t wr_id, unsigned int flags)
{
	struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
					.send_flags = flags, .wr.rdma = { (uintptr_t)memory + 2048, mr->rkey } };

	return ibv_post_send(from->qp, &wr, &bad);
}

int post_message(struct end *from, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
					.send_flags = IBV_SEND_SIGNALED };

	return ibv_post_send(from->qp, &wr, &bad);
}

int post_receive(struct end *at, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)memory + 1024, 8, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	return ibv_post_recv(at->qp, &wr, &bad);
}

static int fill(struct end *end, int (*post)(struct end *, uint64_t), uint64_t first)
{
	int n, status = 0;

	for (n = 0; n < 4 * DEPTH; n++) {
		status = post(end, first + (uint64_t)n);
		if (status) {
			settle(); /* it may be full only until urdmad has processed it */
			status = post(end, first + (uint64_t)n);
		}
		if (status)
			break;
	}
	CHECK(n == 4 * DEPTH || status == ENOMEM);
	return n;
}

static unsigned int fill_flags;

static int post_flagged(struct end *from, uint64_t wr_id)
{
	return post_write(from, wr_id, fill_flags);
}

int fill_with_writes(struct end *from, uint64_t first, unsigned int flags)
{
	fill_flags = flags;
	return fill(from, post_flagged, first);
}

int fill_with_receives(struct end *at, uint64_t first)
{
	return fill(at, post_receive, first);
}

void expect(struct ibv_cq *cq, uint64_t first, int n, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	for (int i = 0; i < n; i++) {
		poll_for(cq, 1, &wc);
		if (wc.wr_id != first + (uint64_t)i || wc.status != status) {
			fprintf(stderr, "completion %lu with status %d, expected %lu with %d\n", wc.wr_id, wc.status,
				first + (uint64_t)i, status);
			exit(1);
		}
	}
}

void expect_nothing(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	settle();
	CHECK_RETURNS(ibv_poll_cq(cq, 1, &wc), 0);
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

void to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	CHECK_RETURNS(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	CHECK(qp->state == state);
}

static void open_all(void)
{
	void *(*alloc)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "urdma_alloc");
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct rdma_cm_id *id;
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc6120001) };

	CHECK(list && list[0]);
	CHECK_RETURNS(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	CHECK_RETURNS(rdma_bind_addr(id, (struct sockaddr *)&at), 0);
	context = id->verbs;
	CHECK((pd = ibv_alloc_pd(context)));
	CHECK((memory = alloc(4096)));
	CHECK((mr = ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)));
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
