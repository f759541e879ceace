/*
 * interpreter.c - carries out calls of libibverbs that a test asks for, one line of numbers each, read from the Unix
 * socket that its first argument names. It speaks plain libibverbs, so that one program of calls runs on urdma and
 * on any other provider. It decides nothing: what a call should do is known to the test alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { OUT, IN, RECEIVE, FOREIGN, GONE, REGIONS }; /* as in memory.go */
enum { QKEY = 0x11111111 }; /* as in datagrams.go */
enum { PAIRS = 2, WINDOWS = 2, ELEMENTS = 2, LIST = 8 };

static FILE *from, *to;
static struct ibv_context *context;
static struct ibv_pd *pd, *foreign;
static struct ibv_xrcd *xrcd;
static struct ibv_cq *cqs[1 + PAIRS]; /* the first, and one for each shared receive queue in an XRC domain */
static struct ibv_srq *srqs[PAIRS];
static struct ibv_qp *qps[PAIRS];
static struct ibv_mr *regions[REGIONS];
static struct ibv_mw *windows[WINDOWS];
static struct ibv_ah *ah; /* of the peer, once a queue pair of type UD is in RTR */
static uint8_t *memory;
static size_t size;
static int gid_index;

/* The words of the current line. */
static char line[4096], *rest;

static uint64_t number(void)
{
	char *word = strtok_r(NULL, " \n", &rest);

	return word ? strtoull(word, NULL, 0) : 0;
}

static void must(int works, const char *what)
{
	if (works)
		return;
	perror(what);
	exit(1);
}

static struct ibv_mr *region(struct ibv_pd *of, size_t offset, size_t length, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(of, memory + offset, length, access);

	must(mr != NULL, "ibv_reg_mr");
	return mr;
}

static void create_regions(size_t out, size_t in, size_t receive)
{
	int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

	int demand = getenv("INTERPRETER_ON_DEMAND") ? IBV_ACCESS_ON_DEMAND : 0; /* not where atomics go */

	regions[OUT] = region(pd, 0, out, IBV_ACCESS_REMOTE_READ | demand);
	regions[IN] = region(pd, out, in, all | (windows[0] ? IBV_ACCESS_MW_BIND : 0));
	regions[RECEIVE] = region(pd, out + in, receive, IBV_ACCESS_LOCAL_WRITE | demand);
	regions[FOREIGN] = region(foreign, out, in, all);
	regions[GONE] = region(pd, out, in, all);
}

static void create_memory(int shared, size_t bytes, unsigned int pattern)
{
	size = bytes;
	/* Whole pages are memory that urdmad maps; other memory it reads and writes by system calls. */
	memory = shared ? aligned_alloc(4096, size) : malloc(size);
	must(memory != NULL, "malloc");
	for (size_t i = 0; i < size; i++)
		memory[i] = 0;
	for (size_t i = 0; i < pattern; i++)
		memory[i] = (uint8_t)(i * 7 + (i >> 8) + pattern);
}

/* The GID of an IPv4 address, if there is one: that of a link is not always reachable. */
static union ibv_gid choose_gid(int entries)
{
	union ibv_gid gid;

	for (gid_index = entries - 1; gid_index > 0; gid_index--)
		if (!ibv_query_gid(context, 1, gid_index, &gid) && !memcmp(gid.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12))
			return gid;
	must(!ibv_query_gid(context, 1, 0, &gid), "ibv_query_gid");
	return gid;
}

static struct ibv_cq *create_cq(void)
{
	struct ibv_cq *cq = ibv_create_cq(context, 256, NULL, NULL, 0);

	must(cq != NULL, "ibv_create_cq");
	return cq;
}

static void create_xrc_queues(uint32_t depth)
{
	struct ibv_xrcd_init_attr domain = { .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1,
					     .oflags = O_CREAT };
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_sge = ELEMENTS, .max_wr = depth }, .srq_type = IBV_SRQT_XRC, .pd = pd,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
	};

	must((xrcd = ibv_open_xrcd(context, &domain)) != NULL, "ibv_open_xrcd");
	init.xrcd = xrcd;
	for (int i = 0; i < PAIRS; i++) {
		init.cq = cqs[1 + i] = create_cq();
		must((srqs[i] = ibv_create_srq_ex(context, &init)) != NULL, "ibv_create_srq_ex");
	}
}

static struct ibv_qp *create_pair(struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex target = { .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd };
	struct ibv_qp *qp = init->qp_type == IBV_QPT_XRC_RECV ? ibv_create_qp_ex(context, &target) : ibv_create_qp(pd, init);

	must(qp != NULL, "ibv_create_qp");
	return qp;
}

/* setup SHARED OUT IN RECEIVE DEPTH SRQ SIGALL WINDOW_TYPE QP_TYPE... */
static void setup(void)
{
	int shared = (int)number();
	size_t out = number(), in = number(), receive = number();
	struct ibv_qp_init_attr init = { .cap = { 0, 0, ELEMENTS, ELEMENTS, 64 } };
	struct ibv_srq_init_attr srq_init = { .attr = { .max_sge = ELEMENTS } };
	uint64_t with_srq, window, types[PAIRS];
	struct ibv_port_attr port;
	union ibv_gid gid;

	create_memory(shared, out + in + receive, (unsigned int)out);
	init.cap.max_send_wr = init.cap.max_recv_wr = srq_init.attr.max_wr = (uint32_t)number();
	must((pd = ibv_alloc_pd(context)) && (foreign = ibv_alloc_pd(context)), "ibv_alloc_pd");
	init.send_cq = init.recv_cq = cqs[0] = create_cq();
	with_srq = number();
	init.sq_sig_all = (int)number();
	window = number();
	for (int i = 0; window && i < WINDOWS; i++)
		must((windows[i] = ibv_alloc_mw(pd, (enum ibv_mw_type)window)) != NULL, "ibv_alloc_mw");
	for (int i = 0; i < PAIRS; i++)
		types[i] = number();
	if (types[0] == IBV_QPT_XRC_SEND || types[0] == IBV_QPT_XRC_RECV)
		create_xrc_queues(srq_init.attr.max_wr);
	else if (with_srq)
		must((init.srq = srqs[0] = ibv_create_srq(pd, &srq_init)) != NULL, "ibv_create_srq");
	for (int i = 0; i < PAIRS; i++) {
		init.qp_type = (enum ibv_qp_type)types[i];
		qps[i] = create_pair(&init);
	}
	create_regions(out, in, receive);
	must(!ibv_query_port(context, 1, &port), "ibv_query_port");
	gid = choose_gid(port.gid_tbl_len);
	fprintf(to, "%#llx %u %d", (unsigned long long)(uintptr_t)memory, port.lid, port.link_layer == IBV_LINK_LAYER_ETHERNET);
	fprintf(to, " %#llx %#llx", (unsigned long long)gid.global.subnet_prefix, (unsigned long long)gid.global.interface_id);
	for (int i = 0; i < PAIRS; i++)
		fprintf(to, " %u", qps[i]->qp_num);
	for (int i = 0; i < REGIONS; i++)
		fprintf(to, " %u %u", regions[i]->lkey, regions[i]->rkey);
	for (int i = 0; i < WINDOWS; i++)
		fprintf(to, " %u", windows[i] ? windows[i]->rkey : 0);
	for (int i = 0; xrcd && i < PAIRS; i++) {
		uint32_t srq_number;

		must(!ibv_get_srq_num(srqs[i], &srq_number), "ibv_get_srq_num");
		fprintf(to, " %u", srq_number);
	}
	fputc('\n', to);
	must(!ibv_dereg_mr(regions[GONE]), "ibv_dereg_mr");
	regions[GONE] = NULL;
}

static int datagram_state(struct ibv_qp *qp, struct ibv_qp_attr *a, int only_state)
{
	int mask = IBV_QP_STATE;

	a->qkey = QKEY;
	if (a->qp_state == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	if (a->qp_state == IBV_QPS_RTS && !only_state)
		mask |= IBV_QP_SQ_PSN;
	if (a->qp_state == IBV_QPS_RTR && !ah)
		must((ah = ibv_create_ah(pd, &a->ah_attr)) != NULL, "ibv_create_ah");
	return ibv_modify_qp(qp, a, mask);
}

/* state QP TARGET SHORT PEER LID GLOBAL PREFIX ID ACCESS RNR_RETRY */
static int state(void)
{
	struct ibv_qp *qp = qps[number()];
	struct ibv_qp_attr a = { .qp_state = (enum ibv_qp_state)number(), .port_num = 1, .path_mtu = IBV_MTU_1024,
				 .max_dest_rd_atomic = 4, .max_rd_atomic = 4, .min_rnr_timer = 1,
				 .timeout = getenv("INTERPRETER_SLOW") ? 16 : 13,
				 .retry_cnt = 6 }; /* 7 means without end to rxe */
	int only_state = (int)number(), mask = IBV_QP_STATE;

	a.dest_qp_num = (uint32_t)number();
	a.ah_attr.port_num = 1;
	a.ah_attr.dlid = (uint16_t)number();
	a.ah_attr.is_global = (uint8_t)number();
	a.ah_attr.grh.hop_limit = 1;
	a.ah_attr.grh.sgid_index = (uint8_t)gid_index;
	a.ah_attr.grh.dgid.global.subnet_prefix = number();
	a.ah_attr.grh.dgid.global.interface_id = number();
	a.qp_access_flags = (unsigned int)number();
	a.rnr_retry = (uint8_t)number();
	if (qp->qp_type == IBV_QPT_UD)
		return datagram_state(qp, &a, only_state);
	if (a.qp_state == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	if (a.qp_state == IBV_QPS_RTR)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			IBV_QP_MIN_RNR_TIMER;
	if (a.qp_state == IBV_QPS_RTS && !only_state)
		mask |= IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(qp, &a, mask);
}

static int elements(struct ibv_sge *sges)
{
	int n = (int)number();

	for (int i = 0; i < n && i < ELEMENTS; i++) {
		sges[i].addr = number();
		sges[i].length = (uint32_t)number();
		sges[i].lkey = (uint32_t)number();
	}
	return n;
}

/* send QP COUNT, then for each: WR_ID OPCODE FLAGS IMM KEY ADDRESS COMPARE SWAP WINDOW LENGTH ACCESS N (ADDRESS LENGTH
 * LKEY)...; of a bind KEY, ADDRESS, LENGTH and ACCESS are the window's, of an invalidation IMM is the key, of
 * a datagram KEY is the Q_Key and ADDRESS the peer's queue pair, and with XRC WINDOW is the shared queue's number */
static int post_send(void)
{
	static struct ibv_send_wr wrs[LIST], *bad;
	static struct ibv_sge sges[LIST][ELEMENTS];
	struct ibv_qp *qp = qps[number()];
	int rc, count = (int)number();

	memset(wrs, 0, sizeof wrs);
	for (int i = 0; i < count && i < LIST; i++) {
		struct ibv_send_wr *w = &wrs[i];
		uint64_t key, address, compare, swap, window, length, access;

		w->next = i + 1 < count ? w + 1 : NULL;
		w->wr_id = number();
		w->opcode = (enum ibv_wr_opcode)number();
		w->send_flags = (unsigned int)number();
		w->imm_data = (uint32_t)number(); /* invalidate_rkey is in the same place */
		key = number(), address = number(), compare = number(), swap = number();
		window = number(), length = number(), access = number();
		w->num_sge = elements(sges[i]);
		w->sg_list = sges[i];
		if (w->opcode == IBV_WR_BIND_MW) {
			w->bind_mw.mw = windows[window];
			w->bind_mw.rkey = (uint32_t)key;
			w->bind_mw.bind_info = (struct ibv_mw_bind_info){ regions[compare], address, length, (unsigned int)access };
		} else if (qp->qp_type == IBV_QPT_UD) {
			w->wr.ud.ah = ah;
			w->wr.ud.remote_qpn = (uint32_t)address;
			w->wr.ud.remote_qkey = (uint32_t)key;
		} else if (w->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			w->wr.atomic.rkey = (uint32_t)key;
			w->wr.atomic.remote_addr = address;
			w->wr.atomic.compare_add = compare;
			w->wr.atomic.swap = swap;
		} else {
			w->wr.rdma.rkey = (uint32_t)key;
			w->wr.rdma.remote_addr = address;
		}
		if (qp->qp_type == IBV_QPT_XRC_SEND)
			w->qp_type.xrc.remote_srqn = (uint32_t)window;
	}
	rc = ibv_post_send(qp, wrs, &bad);
	for (int i = 0; !rc && i < count; i++) /* some providers leave this to the program */
		if (wrs[i].opcode == IBV_WR_BIND_MW)
			wrs[i].bind_mw.mw->rkey = (wrs[i].bind_mw.mw->rkey & ~0xffu) | (wrs[i].bind_mw.rkey & 0xffu);
	return rc;
}

/* bind QP WR_ID FLAGS WINDOW REGION ADDRESS LENGTH ACCESS; there may be no such region */
static int bind_window(void)
{
	struct ibv_qp *qp = qps[number()];
	struct ibv_mw_bind b = { 0 };
	struct ibv_mw *window;

	b.wr_id = number();
	b.send_flags = (unsigned int)number();
	window = windows[number()];
	b.bind_info.mr = regions[number()];
	b.bind_info.addr = number();
	if (!b.bind_info.mr)
		b.bind_info.addr = 0;
	b.bind_info.length = number();
	b.bind_info.mw_access_flags = (unsigned int)number();
	return ibv_bind_mw(qp, window, &b);
}

static int window_key(void) { return (int)windows[number()]->rkey; }

/* receive QP WR_ID N (ADDRESS LENGTH LKEY)...; QP of PAIRS and higher is a shared receive queue */
static int post_receive(void)
{
	struct ibv_sge sges[ELEMENTS];
	struct ibv_recv_wr wr = { .sg_list = sges }, *bad;
	uint64_t qp = number();

	wr.wr_id = number();
	wr.num_sge = elements(sges);
	return qp >= PAIRS ? ibv_post_srq_recv(srqs[qp - PAIRS], &wr, &bad) : ibv_post_recv(qps[qp], &wr, &bad);
}

static int limit(void)
{
	struct ibv_srq *srq = srqs[number()];
	struct ibv_srq_attr a = { .srq_limit = (uint32_t)number() };

	return ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT);
}

static int deregister(void)
{
	uint64_t i = number();
	int rc = ibv_dereg_mr(regions[i]);

	if (!rc)
		regions[i] = NULL;
	return rc;
}

static int destroy(void)
{
	uint64_t i = number();
	int rc = ibv_destroy_qp(qps[i]);

	if (!rc)
		qps[i] = NULL;
	return rc;
}

/* What are expected to fail: they are still in use. */
static int destroy_used(void)
{
	switch (number()) {
	case 0:
		return ibv_destroy_cq(cqs[xrcd ? 1 : 0]);
	case 1:
		return ibv_dealloc_pd(pd);
	default:
		return xrcd ? ibv_close_xrcd(xrcd) : srqs[0] ? ibv_destroy_srq(srqs[0]) : EBUSY;
	}
}

static int has_xrc(void)
{
	struct ibv_device_attr a;

	return !ibv_query_device(context, &a) && a.device_cap_flags & IBV_DEVICE_XRC;
}

static void events(void)
{
	struct ibv_async_event e;

	while (!ibv_get_async_event(context, &e)) {
		int qp = 0, of_qp = e.event_type <= IBV_EVENT_PATH_MIG_ERR || e.event_type == IBV_EVENT_QP_LAST_WQE_REACHED;

		while (of_qp && e.event_type != IBV_EVENT_CQ_ERR && qp < PAIRS && qps[qp] != e.element.qp)
			qp++;
		fprintf(to, "event %d %d\n", of_qp ? qp : e.element.srq == srqs[1] ? -2 : -1, e.event_type);
		ibv_ack_async_event(&e);
	}
}

static void poll_all(void)
{
	struct ibv_wc wc;

	for (int i = 0; i < 1 + PAIRS && cqs[i]; i++)
		while (ibv_poll_cq(cqs[i], 1, &wc) > 0)
			fprintf(to, "completion %d %u %llu %d %d %u %u %u %u\n", i, wc.qp_num, (unsigned long long)wc.wr_id, wc.status,
				wc.opcode, wc.byte_len, wc.wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV | IBV_WC_GRH), wc.imm_data, wc.src_qp);
	events();
	for (int i = 0; i < PAIRS; i++) {
		struct ibv_qp_attr a;
		struct ibv_qp_init_attr init;

		if (qps[i] && !ibv_query_qp(qps[i], &a, IBV_QP_STATE, &init))
			fprintf(to, "state %d %d\n", i, a.qp_state);
	}
	fputs(".\n", to);
	fwrite(memory, 1, size, to);
}

/* end destroys everything, and answers with the sum of what failed. A queue pair of rxe does not end before the
 * windows that are bound for it. */
static int end(void)
{
	int rc = 0;

	for (int i = 0; i < WINDOWS; i++)
		rc |= windows[i] ? ibv_dealloc_mw(windows[i]) : 0;
	for (int i = 0; i < PAIRS; i++)
		rc |= qps[i] ? ibv_destroy_qp(qps[i]) : 0;
	for (int i = 0; i < REGIONS; i++)
		rc |= regions[i] ? ibv_dereg_mr(regions[i]) : 0;
	for (int i = 0; i < PAIRS; i++)
		rc |= srqs[i] ? ibv_destroy_srq(srqs[i]) : 0;
	rc |= ah ? ibv_destroy_ah(ah) : 0;
	for (int i = 0; i < 1 + PAIRS; i++)
		rc |= cqs[i] ? ibv_destroy_cq(cqs[i]) : 0;
	rc |= xrcd ? ibv_close_xrcd(xrcd) : 0;
	rc |= ibv_dealloc_pd(pd) | ibv_dealloc_pd(foreign);
	memset(qps, 0, sizeof qps);
	memset(windows, 0, sizeof windows);
	memset(regions, 0, sizeof regions);
	memset(srqs, 0, sizeof srqs);
	memset(cqs, 0, sizeof cqs);
	xrcd = NULL;
	ah = NULL;
	free(memory);
	return rc;
}

static const struct {
	const char *name;
	int (*run)(void);
} calls[] = {
	{ "state", state }, { "send", post_send }, { "receive", post_receive }, { "limit", limit }, { "deregister", deregister },
	{ "bind", bind_window }, { "window_key", window_key }, { "destroy", destroy }, { "destroy_used", destroy_used },
	{ "has_xrc", has_xrc }, { "end", end },
};

static void serve(void)
{
	while (fgets(line, sizeof line, from)) {
		char *name = strtok_r(line, " \n", &rest);

		if (!strcmp(name, "setup"))
			setup();
		else if (!strcmp(name, "poll"))
			poll_all();
		else
			for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
				if (!strcmp(name, calls[i].name))
					fprintf(to, "%d\n", calls[i].run());
		fflush(to);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_un to_test = { .sun_family = AF_UNIX };
	struct ibv_device **devices = ibv_get_device_list(NULL);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	must(argc == 2 && devices && *devices && (context = ibv_open_device(*devices)), "ibv_open_device");
	fcntl(context->async_fd, F_SETFL, fcntl(context->async_fd, F_GETFL) | O_NONBLOCK);
	strncpy(to_test.sun_path, argv[1], sizeof to_test.sun_path - 1);
	must(!connect(fd, (struct sockaddr *)&to_test, sizeof to_test), "connect");
	from = fdopen(fd, "r");
	to = fdopen(dup(fd), "w");
	must(from && to, "fdopen");
	serve();
	return 0;
}
