/*
 * closed.c - a program that closes all descriptors, including the library's, as daemons do, and opens its
 * own files, which get the same numbers. The library must not read, write or close these, and the program
 * can open devices again.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "slots.h"

#define SOCKETS 200

static int ours[SOCKETS], peers[SOCKETS];

/* Opens streams with the lower numbers; anything written to them shows at the peer. */
static void close_all_and_open(void)
{
	int ends[2];

	for (int fd = 3; fd < 2048; fd++)
		close(fd);
	for (int i = 0; i < SOCKETS; i++) {
		CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
		ours[i] = ends[0];
		peers[i] = ends[1];
		CHECK(write(peers[i], "program's", 9) == 9);
		CHECK(write(ours[i], "program's", 9) == 9);
	}
}

static void expect_untouched(int fd)
{
	char text[32];

	CHECK(read(fd, text, sizeof(text)) == 9);
	CHECK(recv(fd, text, sizeof(text), MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

/* Makes all calls on objects of the closed session. */
static void use_old(struct end *from, struct end *to, struct ibv_comp_channel *comp, struct rdma_event_channel *channel,
		    struct rdma_cm_id *id)
{
	struct ibv_cq *told, *cq = from->qp->send_cq;
	struct ibv_async_event event;
	struct rdma_cm_event *cm_event;
	struct ibv_wc wc;
	void *of;

	post_write(from, 2, IBV_SEND_SIGNALED);
	post_message(from, 3);
	CHECK(!ibv_create_cq(context, 4, NULL, NULL, 0) && errno == EIO);
	while (ibv_poll_cq(cq, 1, &wc) > 0)
		;
	ibv_req_notify_cq(cq, 0);
	while (ibv_get_cq_event(comp, &told, &of) == 0) /* events of flushed work */
		ibv_ack_cq_events(told, 1);
	CHECK(errno == EIO);
	CHECK(ibv_get_async_event(context, &event) == 0 && event.event_type == IBV_EVENT_DEVICE_FATAL);
	while (rdma_get_cm_event(channel, &cm_event) == 0) {
		CHECK(cm_event->event == RDMA_CM_EVENT_DEVICE_REMOVAL);
		rdma_ack_cm_event(cm_event);
	}
	CHECK(errno == ENODEV);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	part(from);
	part(to);
	CHECK_RETURNS(ibv_destroy_qp(from->qp), 0);
	CHECK_RETURNS(ibv_destroy_cq(cq), 0);
	CHECK_RETURNS(ibv_destroy_comp_channel(comp), 0);
	CHECK_RETURNS(ibv_dereg_mr(mr), 0);
	CHECK_RETURNS(ibv_dealloc_pd(pd), 0);
}

void case_closed_descriptors(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc6120001) };
	struct ibv_device *device = context->device;
	struct ibv_comp_channel *comp = ibv_create_comp_channel(context);
	struct ibv_cq *cq = ibv_create_cq(context, DEPTH, NULL, comp, 0);
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct ibv_context *again;
	struct rdma_cm_id *id;
	struct end from, to;

	alarm(60);
	join(&from, make_pair(cq, cq), &to, make_pair(make_cq(DEPTH), make_cq(DEPTH)));
	CHECK_RETURNS(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	CHECK_RETURNS(rdma_bind_addr(id, (struct sockaddr *)&at), 0);
	settle(); /* urdmad sleeps, so that a post would wake it */
	close_all_and_open();
	use_old(&from, &to, comp, channel, id);
	CHECK((again = ibv_open_device(device)));
	CHECK(ibv_alloc_pd(again));
	for (int i = 0; i < SOCKETS; i++) {
		expect_untouched(ours[i]);
		expect_untouched(peers[i]);
	}
}

/* A file of the program that has the number of standard error. */
void case_closed_stderr(void)
{
	char path[] = "/tmp/urdma-closed-XXXXXX", text[8];
	int kept = dup(STDERR_FILENO), fd;
	bool untouched;

	CHECK((fd = mkstemp(path)) >= 0 && unlink(path) == 0);
	CHECK(dup2(fd, STDERR_FILENO) == STDERR_FILENO && write(STDERR_FILENO, "data", 4) == 4);
	for (int i = 3; i < 2048; i++)
		if (i != kept && i != fd)
			close(i);
	ibv_free_device_list(ibv_get_device_list(NULL)); /* logs that the session is gone */
	untouched = pread(fd, text, sizeof(text), 0) == 4;
	CHECK(dup2(kept, STDERR_FILENO) == STDERR_FILENO && untouched);
}
