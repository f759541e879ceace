/* events.c - which completions cause events on a completion channel. */
#include <poll.h>
#include <unistd.h>

#include "objects.h"

static struct ibv_comp_channel *channel;
static struct ibv_cq_ex *extended; /* of far */

static int readable(int ms)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };

	return poll(&p, 1, ms);
}

static void event(const char *after)
{
	struct ibv_cq *cq;
	void *cq_context;

	if (readable(10000) != 1) {
		fprintf(stderr, "no event %s\n", after);
		exit(1);
	}
	CHECK_RETURNS(ibv_get_cq_event(channel, &cq, &cq_context), 0);
	ibv_ack_cq_events(cq, 1);
}

static void no_event(const char *after)
{
	if (readable(20) != 0) {
		fprintf(stderr, "an event %s\n", after);
		exit(1);
	}
}

/* Sends a message; when the sender's completion is there, so is the receiver's. */
static void cross(struct end *near, struct end *far)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = request(near, IBV_WR_SEND, 8, &sge);

	receive(far, 1, 8);
	CHECK_RETURNS(post(near, &wr), 0);
	completion(near, IBV_WC_SUCCESS);
}

static void far_with_channel(struct end *near, struct end *far)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 16 };

	end_init(near, IBV_QPT_RC, IBV_ACCESS_LOCAL_WRITE);
	end_init(far, IBV_QPT_RC, IBV_ACCESS_LOCAL_WRITE);
	CHECK_RETURNS(ibv_destroy_qp(far->qp), 0);
	CHECK_RETURNS(ibv_destroy_cq(far->cq), 0);
	CHECK((channel = ibv_create_comp_channel(context)));
	attr.channel = channel;
	CHECK((extended = ibv_create_cq_ex(context, &attr)));
	far->cq = ibv_cq_ex_to_cq(extended);
	far->qp = new_qp(IBV_QPT_RC, far->cq);
	to_init(far->qp, IBV_ACCESS_LOCAL_WRITE);
	to_rtr(near->qp, far->qp->qp_num);
	to_rtr(far->qp, near->qp->qp_num);
	to_rts(near->qp);
	to_rts(far->qp);
}

/* Completions between the last poll and the arming cause one event; completions after which an event was
 * sent cause no other. */
void case_missed_event(void)
{
	struct end near, far;

	far_with_channel(&near, &far);
	cross(&near, &far);
	no_event("for a queue that was not armed");
	CHECK_RETURNS(ibv_req_notify_cq(far.cq, 0), 0);
	event("for the first completion, which came before the arming");
	CHECK_RETURNS(ibv_req_notify_cq(far.cq, 0), 0);
	no_event("for a completion of which one has told");
	cross(&near, &far);
	event("for the next completion");
	completion(&far, IBV_WC_SUCCESS);
	CHECK_RETURNS(ibv_req_notify_cq(far.cq, 0), 0);
	no_event("for what is left of two completions of which one has told");
	CHECK_RETURNS(ibv_resize_cq(far.cq, 60), 0);
	no_event("after the queue's move");
	completion(&far, IBV_WC_SUCCESS);
	cross(&near, &far);
	event("for the third, as the queue is armed still");
	completion(&far, IBV_WC_SUCCESS);
	cross(&near, &far);
	cross(&near, &far);
	CHECK_RETURNS(ibv_req_notify_cq(far.cq, 1), 0);
	no_event("for completions that are not solicited");
	CHECK_RETURNS(ibv_req_notify_cq(far.cq, 0), 0);
	event("for two that came between a poll and the arming");
	completion(&far, IBV_WC_SUCCESS);
	completion(&far, IBV_WC_SUCCESS);
	CHECK_RETURNS(ibv_req_notify_cq(far.cq, 0), 0);
	no_event("for an empty queue");
	end_free(&near);
	end_free(&far);
	CHECK_RETURNS(ibv_destroy_comp_channel(channel), 0);
}

/* The same if another queue pair that completes there is destroyed at once: its doorbell may have been
 * rung. */
void case_missed_event_destroyed(void)
{
	struct end near, far;

	far_with_channel(&near, &far);
	for (int i = 0; i < 200; i++) {
		struct ibv_qp *other = new_qp(IBV_QPT_RC, far.cq);

		cross(&near, &far);
		usleep(2000);
		CHECK_RETURNS(ibv_req_notify_cq(far.cq, 0), 0);
		CHECK_RETURNS(ibv_destroy_qp(other), 0);
		event("for a completion that came before the arming");
		completion(&far, IBV_WC_SUCCESS);
	}
	end_free(&near);
	end_free(&far);
	CHECK_RETURNS(ibv_destroy_comp_channel(channel), 0);
}

/* The same during a poll with the extended interface that has taken all completions up to the last event. */
void case_missed_event_polling(void)
{
	struct end near, far;
	struct ibv_poll_cq_attr attr = { 0 };

	far_with_channel(&near, &far);
	CHECK_RETURNS(ibv_req_notify_cq(far.cq, 0), 0);
	cross(&near, &far);
	event("for the first completion");
	CHECK_RETURNS(ibv_start_poll(extended, &attr), 0);
	cross(&near, &far);
	CHECK_RETURNS(ibv_req_notify_cq(far.cq, 0), 0);
	event("for one that came amidst a poll and before the arming");
	CHECK_RETURNS(ibv_next_poll(extended), 0);
	CHECK_RETURNS(ibv_next_poll(extended), ENOENT);
	ibv_end_poll(extended);
	end_free(&near);
	end_free(&far);
	CHECK_RETURNS(ibv_destroy_comp_channel(channel), 0);
}
