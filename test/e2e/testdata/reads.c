/* reads.c - reads.c of test/mistakes, in two processes: PORT, and at the client an
 * address, max_rd_atomic, and then perhaps sq_psn and path_mtu, which are 4711 and 3 (1,024 bytes) otherwise. */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../test/mistakes/mistakes.h"

#define READS 8

struct end {
	uint64_t addr;
	uint32_t qpn, rkey;
	union ibv_gid gid;
	struct ibv_port_attr port;
};

static int joined(const char *port, const char *address)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (address) {
		inet_pton(AF_INET, address, &at.sin_addr);
		must(!connect(fd, (struct sockaddr *)&at, sizeof(at)), "connect");
		return fd;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	must(!bind(fd, (struct sockaddr *)&at, sizeof(at)) && !listen(fd, 1), "listen");
	must((fd = accept(fd, NULL, NULL)) >= 0, "accept");
	return fd;
}

static void swap(int fd, void *ours, void *theirs, size_t n)
{
	must(write(fd, ours, n) == (ssize_t)n && recv(fd, theirs, n, MSG_WAITALL) == (ssize_t)n, "exchange");
}

int main(int argc, char **argv)
{
	struct side s = side_new(PLAN);
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .rq_psn = 4711, .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
				   .ah_attr = { .port_num = 1, .grh.hop_limit = 1 } };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .sq_psn = 4711, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };
	uint32_t length = 512;
	int failed = 0, fd = argc > 1 ? joined(argv[1], argc > 2 ? argv[2] : NULL) : -1;
	struct end ours = { (uintptr_t)s.memory, s.qp->qp_num, s.mr->rkey, { { 0 } }, { 0 } }, theirs;
	char done = 0;

	must(!ibv_query_gid(context, 1, 0, &ours.gid) && !ibv_query_port(context, 1, &ours.port), "ibv_query_gid");
	swap(fd, &ours, &theirs, sizeof(ours));
	to_init(&s);
	if (argc > 5)
		rtr.path_mtu = (enum ibv_mtu)atoi(argv[5]);
	if (argc > 4)
		rts.sq_psn = (uint32_t)atoi(argv[4]);
	rtr.dest_qp_num = theirs.qpn;
	rtr.ah_attr.dlid = theirs.port.lid;
	rtr.ah_attr.is_global = theirs.port.link_layer != IBV_LINK_LAYER_INFINIBAND;
	rtr.ah_attr.grh.dgid = theirs.gid;
	must(!ibv_modify_qp(s.qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "RTR");
	rts.max_rd_atomic = argc > 3 ? (uint8_t)atoi(argv[3]) : 1;
	must(!ibv_modify_qp(s.qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
	swap(fd, &done, &done, 1);
	for (int round = 0; argc > 2 && round < 2; round++) { /* the connection stands after the first */
		struct ibv_sge sge = part(&s, 0, length);
		struct ibv_send_wr wr[READS], *bad;
		int n = round ? READS : 1;

		for (int i = 0; i < n; i++) /* posted at once: none is done before the next is there */
			wr[i] = (struct ibv_send_wr){ .next = i < n - 1 ? &wr[i + 1] : NULL, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
						      .send_flags = IBV_SEND_SIGNALED, .wr.rdma = { theirs.addr, theirs.rkey } };
		must(!ibv_post_send(s.qp, wr, &bad), "ibv_post_send");
		for (int i = 0; i < n; i++) {
			enum ibv_wc_status status = polled(&s);

			if (status && status != IBV_WC_WR_FLUSH_ERR)
				printf("status %u\n", status);
			failed |= status != IBV_WC_SUCCESS;
		}
	}
	swap(fd, &done, &done, 1);
	if (argc == 2 && read(fd, &done, 1)) /* what the server serves is known as long as it is connected: the client goes first */
		return 1;
	return failed | ibv_destroy_qp(s.qp);
}
