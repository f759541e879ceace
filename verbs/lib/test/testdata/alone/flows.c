/* flows.c - flows of each kind of specification: which frames a queue pair gets. The frames are for a group, and so
 * return to the port that sends them. */
#include "../setup.h"

enum { LENGTH = 2048, RECEIVES = 16 };

static struct ibv_pd *pd;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_mr *mr;
static uint8_t *memory;

static struct ibv_qp *new_pair(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = send_cq, .recv_cq = recv_cq, .qp_type = IBV_QPT_RAW_PACKET, .sq_sig_all = 1,
		.cap = { .max_send_wr = 4, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	CHECK(qp);
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	return qp;
}

static void post_receive(struct ibv_qp *qp)
{
	struct ibv_sge sge = { (uintptr_t)memory, LENGTH, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	CHECK(!ibv_post_recv(qp, &wr, &bad));
}

static void wait_for(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int n;

	while (!(n = ibv_poll_cq(cq, 1, wc)))
		;
	CHECK(n == 1 && wc->status == IBV_WC_SUCCESS);
}

static void send_frame(struct ibv_qp *qp, const uint8_t *frame, size_t n)
{
	struct ibv_sge sge = { (uintptr_t)memory + LENGTH, (uint32_t)n, mr->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_wc wc;

	memcpy(memory + LENGTH, frame, n);
	CHECK(!ibv_post_send(qp, &wr, &bad));
	wait_for(send_cq, &wc);
	CHECK(wc.opcode == IBV_WC_SEND && wc.qp_num == qp->qp_num);
}

#define MACS 0x01, 0x50, 0x56, 0x19, 0x20, 0xa7, 0x24, 0x8a, 0x07, 0xa5, 0x28, 0xc8
#define PORTS 0x04, 0xd2, 0x16, 0x2e, 0, 8, 0, 0
#define IPV4(proto) 0x08, 0x00, 0x45, 0x28, 0, 28, 0, 0, 0x40, 0, 64, proto, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, PORTS
#define IPV6 0x86, 0xdd, 0x63, 0x41, 0x23, 0x45, 0, 8, 17, 64, \
	0xa0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xb0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, PORTS

static const uint8_t other[] = { MACS, 0x88, 0xb5, 1, 2, 3 };
static const uint8_t udp4[] = { MACS, IPV4(17) };
static const uint8_t tcp4[] = { MACS, IPV4(6) };
static const uint8_t udp6[] = { MACS, IPV6 };
static const uint8_t tagged[] = { MACS, 0x81, 0x00, 0xbc, 0x0c, IPV4(17) };

static const struct frame {
	const uint8_t *bytes;
	size_t length;
} frames[] = {
	{ other, sizeof(other) }, { udp4, sizeof(udp4) }, { tcp4, sizeof(tcp4) }, { udp6, sizeof(udp6) },
	{ tagged, sizeof(tagged) },
};

enum { OTHER = 1, UDP4 = 2, TCP4 = 4, UDP6 = 8, TAGGED = 16, ALL = 31 };

/* A rule with up to three specifications, which follow the attributes one after another. */
struct rule {
	struct ibv_flow_attr attr;
	uint8_t specs[3 * sizeof(struct ibv_flow_spec_ipv6)];
};

static struct rule rule_of(enum ibv_flow_attr_type type)
{
	return (struct rule){ .attr = { .type = type, .size = sizeof(struct ibv_flow_attr), .port = 1 } };
}

static void add(struct rule *rule, const void *spec, size_t size)
{
	memcpy(rule->specs + rule->attr.size - sizeof(rule->attr), spec, size);
	rule->attr.size = (uint16_t)(rule->attr.size + size);
	rule->attr.num_of_specs++;
}

#define ADD(rule, kind, number, ...) add(rule, &(struct ibv_flow_spec_##kind){ .type = IBV_FLOW_SPEC_##number,      \
	.size = sizeof(struct ibv_flow_spec_##kind), __VA_ARGS__ }, sizeof(struct ibv_flow_spec_##kind))

/* Checks which of the frames a flow selects. */
static void selects(struct ibv_qp *from, struct ibv_qp *to, struct rule *rule, unsigned want)
{
	struct ibv_flow *flow = ibv_create_flow(to, &rule->attr);
	static int posted; /* receives; each frame may take two */
	struct ibv_wc wc;
	unsigned got = 0;

	CHECK(flow);
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		struct rule last = rule_of(IBV_FLOW_ATTR_SNIFFER);
		struct ibv_flow *all = ibv_create_flow(to, &last.attr); /* so that each frame arrives at least once */

		CHECK(all);
		for (; posted < 2; posted++)
			post_receive(to);
		send_frame(from, frames[i].bytes, frames[i].length);
		wait_for(recv_cq, &wc); /* the sniffer's: it is sent, which comes before it returns */
		posted--;
		CHECK(wc.byte_len == frames[i].length && !memcmp(memory, frames[i].bytes, frames[i].length));
		CHECK(!ibv_destroy_flow(all));
		/* destroying the flow took turns of urdmad's poll loop, in which the frame has returned */
		while (ibv_poll_cq(recv_cq, 1, &wc) == 1) {
			CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == frames[i].length && wc.qp_num == to->qp_num);
			got |= 1u << i;
			posted--;
		}
	}
	CHECK(!ibv_destroy_flow(flow));
	if (got != want) {
		fprintf(stderr, "the frames 0x%x arrived, expected 0x%x\n", got, want);
		exit(1);
	}
}

static void kinds(struct ibv_qp *from, struct ibv_qp *to)
{
	struct rule rule = rule_of(IBV_FLOW_ATTR_NORMAL);

	selects(from, to, &rule, ALL);
	ADD(&rule, eth, ETH, .val = { .dst_mac = { 0x01, 0x50, 0x56, 0x19, 0x20, 0xa7 } },
		.mask = { .dst_mac = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } });
	selects(from, to, &rule, ALL);
	rule = rule_of(IBV_FLOW_ATTR_NORMAL);
	ADD(&rule, eth, ETH, .val = { .src_mac = { 0x25 } }, .mask = { .src_mac = { 0xff } });
	selects(from, to, &rule, 0);
	rule = rule_of(IBV_FLOW_ATTR_NORMAL);
	ADD(&rule, eth, ETH, .val = { .ether_type = htobe16(0x0800) }, .mask = { .ether_type = 0xffff });
	selects(from, to, &rule, UDP4 | TCP4 | TAGGED);
	rule = rule_of(IBV_FLOW_ATTR_NORMAL);
	ADD(&rule, eth, ETH, .val = { .vlan_tag = htobe16(0xc0c) }, .mask = { .vlan_tag = htobe16(0xfff) });
	selects(from, to, &rule, TAGGED);
	rule = rule_of(IBV_FLOW_ATTR_NORMAL);
	ADD(&rule, ipv4, IPV4, .val = { .dst_ip = htobe32(0x02020202) }, .mask = { .dst_ip = 0xffffffff });
	selects(from, to, &rule, UDP4 | TCP4 | TAGGED);
	rule = rule_of(IBV_FLOW_ATTR_NORMAL);
	ADD(&rule, ipv4_ext, IPV4_EXT,
		.val = { .src_ip = htobe32(0x01010101), .proto = 6, .tos = 0x28, .ttl = 64, .flags = 2 },
		.mask = { 0xffffffff, 0, 0xff, 0xff, 0xff, 0xff });
	selects(from, to, &rule, TCP4);
	rule = rule_of(IBV_FLOW_ATTR_NORMAL);
	ADD(&rule, ipv6, IPV6, .val = { .flow_label = htobe32(0x12345), .next_hdr = 17, .traffic_class = 0x34, .hop_limit = 64,
		.dst_ip = { 0xb0, 1, [15] = 2 } }, .mask = { .flow_label = 0xffffffff, .next_hdr = 0xff, .traffic_class = 0xff,
		.hop_limit = 0xff, .dst_ip = { 0xff, 0xff, [15] = 0xff } });
	selects(from, to, &rule, UDP6);
	rule = rule_of(IBV_FLOW_ATTR_NORMAL);
	ADD(&rule, tcp_udp, UDP, .val = { .dst_port = htobe16(5678), .src_port = htobe16(1234) },
		.mask = { 0xffff, 0xffff });
	selects(from, to, &rule, UDP4 | UDP6 | TAGGED);
	ADD(&rule, ipv4, IPV4, .val = { .src_ip = 0 });
	selects(from, to, &rule, UDP4 | TAGGED);
	rule = rule_of(IBV_FLOW_ATTR_NORMAL);
	ADD(&rule, tcp_udp, TCP, .val = { .dst_port = 0 });
	selects(from, to, &rule, TCP4);
	rule = rule_of(IBV_FLOW_ATTR_MC_DEFAULT);
	selects(from, to, &rule, ALL);
}

static void refused(struct ibv_qp *to)
{
	struct rule rule = rule_of(IBV_FLOW_ATTR_NORMAL);
	struct ibv_flow_spec_eth eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(eth) - 1 };

	add(&rule, &eth, sizeof(eth));
	CHECK_NULL(ibv_create_flow(to, &rule.attr), EINVAL); /* its size */
	rule = rule_of(IBV_FLOW_ATTR_NORMAL);
	ADD(&rule, ipv4, IPV4, .val = { 0 });
	ADD(&rule, ipv6, IPV6, .val = { .hop_limit = 0 });
	CHECK_NULL(ibv_create_flow(to, &rule.attr), EINVAL); /* both kinds of IP */
	rule = rule_of(IBV_FLOW_ATTR_NORMAL);
	ADD(&rule, gre, GRE, .val = { 0 });
	CHECK_NULL(ibv_create_flow(to, &rule.attr), EOPNOTSUPP);
	rule = rule_of(IBV_FLOW_ATTR_NORMAL);
	ADD(&rule, action_drop, ACTION_DROP);
	CHECK_NULL(ibv_create_flow(to, &rule.attr), EOPNOTSUPP);
	rule = rule_of(IBV_FLOW_ATTR_NORMAL);
	rule.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
	CHECK_NULL(ibv_create_flow(to, &rule.attr), EOPNOTSUPP);
	rule = rule_of(IBV_FLOW_ATTR_NORMAL);
	rule.attr.port = 2;
	CHECK_NULL(ibv_create_flow(to, &rule.attr), EINVAL);
	rule = rule_of(IBV_FLOW_ATTR_NORMAL);
	rule.attr.comp_mask = 1;
	CHECK_NULL(ibv_create_flow(to, &rule.attr), EINVAL);
}

static void refused_posts(struct ibv_qp *qp)
{
	struct ibv_sge sge = { (uintptr_t)memory, LENGTH, mr->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 }, *bad;

	CHECK(ibv_post_send(qp, &wr, &bad) == EINVAL); /* longer than the port's longest frame, of 1,514 bytes */
	sge.length = 64;
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	CHECK(ibv_post_send(qp, &wr, &bad) == EINVAL);
	wr.opcode = IBV_WR_RDMA_WRITE;
	CHECK(ibv_post_send(qp, &wr, &bad) == EINVAL);
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = IBV_SEND_IP_CSUM;
	CHECK(ibv_post_send(qp, &wr, &bad) == EINVAL);
}

int main(void)
{
	struct ibv_context *context = ibv_open_device(ibv_get_device_list(NULL)[0]);
	struct ibv_device_attr_ex attr;
	struct ibv_qp *from, *to;

	CHECK(context && (pd = ibv_alloc_pd(context)));
	CHECK((send_cq = ibv_create_cq(context, 64, NULL, NULL, 0)) && (recv_cq = ibv_create_cq(context, 64, NULL, NULL, 0)));
	CHECK(memory = aligned_alloc(4096, 2 * LENGTH));
	CHECK(mr = ibv_reg_mr(pd, memory, 2 * LENGTH, IBV_ACCESS_LOCAL_WRITE));
	CHECK(!ibv_query_device_ex(context, NULL, &attr));
	CHECK(attr.orig_attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING);
	CHECK(!attr.raw_packet_caps && !(attr.orig_attr.device_cap_flags & IBV_DEVICE_RAW_IP_CSUM));
	from = new_pair();
	to = new_pair();
	kinds(from, to);
	refused(to);
	refused_posts(from);
	CHECK(!ibv_destroy_qp(from) && !ibv_destroy_qp(to));
	return 0;
}
