/* depth.c - accepts a connection with a greater initiator_depth than the request's event has. */
#include "mistakes_cm.h"

int main(int argc, char **argv)
{
	struct rdma_conn_param asks = { .initiator_depth = 1, .responder_resources = 1 }, gives = { .initiator_depth = 4 };
	struct rdma_cm_id *id = requested(argc > 1 ? argv[1] : NULL, &asks);

	paired(id);
	must(!rdma_accept(id, &gives), "rdma_accept");
	next_event(RDMA_CM_EVENT_ESTABLISHED);
	return 0;
}
