/*
 * rawpacket.c - raw packet queue pairs.
 *
 *	rawpacket create            prints the errno name of ibv_create_qp, or "0"
 *	rawpacket send HEX...       sends frames, and prints the status of each completion
 *	rawpacket receive KIND MAC N  prints "ready", then N frames that a flow of the KIND selects (type of
 *	                            ibv_flow_attr; 0: for the destination MAC), in hexadecimal
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define must(what) do { if (!(what)) { perror(#what); exit(1); } } while (0)

enum { RECEIVES = 64, LENGTH = 9216 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t *memory;

static struct ibv_qp *create(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RAW_PACKET, .sq_sig_all = 1,
		.cap = { .max_send_wr = 8, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	return ibv_create_qp(pd, &attr);
}

static void move(enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr attr = { .qp_state = to, .port_num = 1 };

	must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask));
}

static void open_pair(void)
{
	must(qp = create());
	memory = aligned_alloc(4096, (size_t)(RECEIVES + 1) * LENGTH);
	must(memory);
	must(mr = ibv_reg_mr(pd, memory, (size_t)(RECEIVES + 1) * LENGTH, IBV_ACCESS_LOCAL_WRITE));
	move(IBV_QPS_INIT, IBV_QP_PORT);
	move(IBV_QPS_RTR, 0);
	move(IBV_QPS_RTS, 0);
}

static size_t unhex(const char *text, uint8_t *to)
{
	size_t n = strlen(text) / 2;

	for (size_t i = 0; i < n; i++)
		must(sscanf(text + 2 * i, "%2hhx", &to[i]) == 1);
	return n;
}

static struct ibv_wc polled(void)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		;
	must(n == 1);
	return wc;
}

static void send_frames(char **texts)
{
	uint8_t *at = memory + (size_t)RECEIVES * LENGTH;

	for (; *texts; texts++) {
		struct ibv_sge sge = { (uintptr_t)at, (uint32_t)unhex(*texts, at), mr->lkey };
		struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 }, *bad;
		struct ibv_wc wc;

		must(!ibv_post_send(qp, &wr, &bad));
		wc = polled();
		printf("%s 0x%x\n", ibv_wc_status_str(wc.status), wc.vendor_err);
		if (wc.status != IBV_WC_SUCCESS)
			move(IBV_QPS_RTS, 0); /* from SQE */
	}
}

static void post(uint64_t i)
{
	struct ibv_sge sge = { (uintptr_t)(memory + i * LENGTH), LENGTH, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	must(!ibv_post_recv(qp, &wr, &bad));
}

static void receive_frames(int kind, const char *mac, int frames)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		.attr = { .type = kind, .size = sizeof(rule), .num_of_specs = !kind, .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth) },
	};
	struct ibv_flow *flow;

	unhex(mac, rule.eth.val.dst_mac);
	memset(rule.eth.mask.dst_mac, 0xff, 6);
	for (uint64_t i = 0; i < RECEIVES; i++)
		post(i);
	flow = ibv_create_flow(qp, &rule.attr);
	if (!flow) {
		printf("%s\n", strerrorname_np(errno));
		return;
	}
	printf("ready\n");
	fflush(stdout);
	while (frames--) {
		struct ibv_wc wc = polled();

		must(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV);
		for (uint32_t i = 0; i < wc.byte_len; i++)
			printf("%02x", memory[wc.wr_id * LENGTH + i]);
		printf("\n");
		post(wc.wr_id);
	}
	must(ibv_destroy_qp(qp) == EBUSY);
	must(!ibv_destroy_flow(flow));
	must(!ibv_destroy_qp(qp));
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	must(argc > 1 && list && list[0]);
	must(context = ibv_open_device(list[0]));
	must(pd = ibv_alloc_pd(context));
	must(cq = ibv_create_cq(context, 2 * RECEIVES, NULL, NULL, 0));
	if (!strcmp(argv[1], "create")) {
		struct ibv_device_attr attr;

		must(!ibv_query_device(context, &attr));
		errno = 0;
		printf("%s %s\n", create() ? "0" : strerrorname_np(errno),
			attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING ? "steers" : "does not steer");
		return 0;
	}
	open_pair();
	if (!strcmp(argv[1], "send"))
		send_frames(argv + 2);
	else if (argc == 5)
		receive_frames(atoi(argv[2]), argv[3], atoi(argv[4]));
	return 0;
}
