/* refuse.c - posts that fail on purpose (URDMA_INJECT). Without such a rule no function here is called. */
#include "objects.h"

static bool hits(struct urdma_post_rule *rule)
{
	const struct urdma_abi_post_fault *f = &rule->fault;
	uint64_t n = __atomic_add_fetch(&rule->seen, 1, __ATOMIC_RELAXED);

	if (n < f->nth || (f->chance && urdma_draw(f->seed, n) >= f->chance))
		return false;
	return !f->count || __atomic_add_fetch(&rule->hits, 1, __ATOMIC_RELAXED) <= f->count;
}

/* Returns the errno value with which a call must fail, or 0. */
static int refused(const struct urdma_client *client, uint32_t call)
{
	int error = 0;

	for (uint32_t i = 0; i < client->num_posts; i++)
		if (client->posts[i].fault.call == call && hits(&client->posts[i]) && !error)
			error = (int)client->posts[i].fault.error;
	return error;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	int error = refused(urdma_qp_of(qp)->client, 0);

	if (!error)
		return urdma_post_send(qp, wr, bad_wr);
	*bad_wr = wr;
	return error;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int error = refused(urdma_qp_of(qp)->client, 1);

	if (!error)
		return urdma_post_recv(qp, wr, bad_wr);
	*bad_wr = wr;
	return error;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int error = refused(urdma_srq_of(srq)->client, 2);

	if (!error)
		return urdma_post_srq_recv(srq, wr, bad_wr);
	*bad_wr = wr;
	return error;
}

void urdma_refuse_posts(struct ibv_context *context)
{
	context->ops.post_send = post_send;
	context->ops.post_recv = post_recv;
	context->ops.post_srq_recv = post_srq_recv;
}
