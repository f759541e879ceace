/* cases_query.c - a device's attributes, and refused calls. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "setup.h"

/* Calls as a program compiled before port_cap_flags2 existed. */
static int query_port_old(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	int (*query)(struct ibv_context *, uint8_t, struct ibv_port_attr *) = dlsym(RTLD_DEFAULT, "ibv_query_port");

	return query(context, port, attr);
}

static void check_port(struct ibv_context *context)
{
	struct ibv_port_attr fresh, old;

	CHECK_RETURNS(ibv_query_port(context, 1, &fresh), 0);
	CHECK(fresh.state == IBV_PORT_ACTIVE && fresh.link_layer == IBV_LINK_LAYER_ETHERNET && fresh.lid == 0);
	CHECK(fresh.active_mtu == IBV_MTU_4096 && fresh.gid_tbl_len == 1 && fresh.pkey_tbl_len == 1);
	CHECK(fresh.max_msg_sz == 1u << 30);
	CHECK_RETURNS(ibv_query_port(context, 2, &fresh), EINVAL);
	memset(&old, 0xee, sizeof(old));
	CHECK_RETURNS(query_port_old(context, 1, &old), 0);
	CHECK(old.state == IBV_PORT_ACTIVE && old.flags == 0 && old.port_cap_flags2 == 0xeeee);
}

void case_devices(void)
{
	int n = -1;
	struct ibv_device **list = ibv_get_device_list(&n);
	struct ibv_context *context;
	struct ibv_device_attr attr;
	struct ibv_device_attr_ex ex;
	int commands;

	CHECK(list && n == 1 && list[0] && !list[1]);
	CHECK(strcmp(ibv_get_device_name(list[0]), "urdma0") == 0);
	CHECK(strcmp(list[0]->dev_name, "uverbs0") == 0);
	CHECK(strcmp(list[0]->ibdev_path, "/nowhere/urdma/class/infiniband/urdma0") == 0);
	CHECK(list[0]->node_type == IBV_NODE_RNIC && list[0]->transport_type == IBV_TRANSPORT_IWARP);
	CHECK(memcmp(&(__be64){ ibv_get_device_guid(list[0]) }, "\0\0\0\xff\xfe\1\2\3", 8) == 0);
	CHECK((context = ibv_open_device(list[0])));
	ibv_free_device_list(list);
	CHECK(context->num_comp_vectors == 1 && context->async_fd >= 0);
	commands = dup(context->cmd_fd); /* programs may keep or poll it */
	CHECK(commands >= 0 && poll(&(struct pollfd){ .fd = commands, .events = POLLIN | POLLOUT }, 1, 0) == 1 &&
		!close(commands));
	CHECK_RETURNS(ibv_query_device(context, &attr), 0);
	CHECK(strcmp(attr.fw_ver, "1.2.3") == 0 && attr.max_qp == 64 && attr.phys_port_cnt == 1);
	CHECK(attr.vendor_id == 0x757264 && attr.vendor_part_id == 1 && attr.hw_ver == 1);
	memset(&ex, 0xee, sizeof(ex));
	CHECK_RETURNS(ibv_query_device_ex(context, NULL, &ex), 0);
	CHECK(ex.orig_attr.max_cqe == 4096 && ex.hca_core_clock == 1000000 && ex.max_dm_size == 1 << 20);
	check_port(context);
	CHECK_RETURNS(ibv_close_device(context), 0);
}

static void interrupt(int signal)
{
	(void)signal;
}

/* Signals arrive while the fake urdmad accepts no connection; their handler restarts no system call. */
void case_interrupted(void)
{
	struct sigaction action = { .sa_handler = interrupt };
	struct itimerval often = { { 0, 10000 }, { 0, 10000 } };

	CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
	case_devices();
}

/* The fake urdmad takes its link down at the first query of a context. */
void case_link(void)
{
	struct ibv_context *context = open_first();
	struct ibv_port_attr port;

	CHECK_RETURNS(ibv_query_port(context, 1, &port), 0);
	CHECK(port.state == IBV_PORT_DOWN && port.phys_state == 3);
	CHECK_RETURNS(ibv_query_port(context, 1, &port), 0);
	CHECK(port.state == IBV_PORT_ACTIVE && port.phys_state == 5);
}

/* Run with each URDMA_TRANSPORT; the fake's address is 10.1.2.3, LID 0x0203. */
void case_gids(void)
{
	struct ibv_context *context = open_first();
	struct ibv_port_attr port;
	struct ibv_gid_entry entries[8], entry;
	union ibv_gid gid;
	__be16 pkey;

	CHECK_RETURNS(ibv_query_port(context, 1, &port), 0);
	CHECK_RETURNS((int)ibv_query_gid_table(context, entries, 8, 0), port.gid_tbl_len);
	CHECK_RETURNS((int)ibv_query_gid_table(context, entries, (size_t)port.gid_tbl_len - 1, 0), -EINVAL);
	CHECK_RETURNS(ibv_query_gid(context, 1, port.gid_tbl_len, &gid), -1);
	CHECK_RETURNS(ibv_query_gid_ex(context, 1, (uint32_t)port.gid_tbl_len, &entry, 0), EINVAL);
	CHECK_RETURNS(ibv_query_pkey(context, 1, 0, &pkey), 0);
	CHECK(pkey == htons(0xffff) && ibv_get_pkey_index(context, 1, pkey) == 0);
	printf("%d %d %d 0x%x", context->device->node_type, context->device->transport_type, port.link_layer, port.lid);
	for (int index = 0; index < port.gid_tbl_len; index++) {
		CHECK_RETURNS(ibv_query_gid(context, 1, index, &gid), 0);
		CHECK_RETURNS(ibv_query_gid_ex(context, 1, (uint32_t)index, &entry, 0), 0);
		CHECK(memcmp(&gid, &entry.gid, sizeof(gid)) == 0 && memcmp(&entry, &entries[index], sizeof(entry)) == 0);
		printf(" %u ", entry.gid_type);
		for (int i = 0; i < 16; i++)
			printf("%02x", entry.gid.raw[i]);
	}
	printf("\n");
}

static void refuse_cqs(struct setup *s)
{
	struct ibv_cq_init_attr_ex ex = { .cqe = 16, .wc_flags = IBV_WC_EX_WITH_TM_INFO };

	CHECK_NULL(ibv_create_cq(s->context, 0, NULL, NULL, 0), EINVAL);
	CHECK_NULL(ibv_create_cq(s->context, -5, NULL, NULL, 0), EINVAL);
	CHECK_NULL(ibv_create_cq(s->context, 4097, NULL, NULL, 0), EINVAL);
	CHECK_NULL(ibv_create_cq(s->context, 16, NULL, NULL, 1), EINVAL);
	CHECK_NULL(ibv_create_cq(s->context, 16, NULL, NULL, -1), EINVAL);
	CHECK_NULL(ibv_create_cq_ex(s->context, &ex), EOPNOTSUPP);
	CHECK_RETURNS(ibv_resize_cq(s->cq, 0), EINVAL);
	CHECK_RETURNS(ibv_resize_cq(s->cq, 5000), EINVAL);
	CHECK_RETURNS(ibv_destroy_cq(s->cq), EBUSY);
	CHECK_RETURNS(ibv_destroy_comp_channel(s->channel), EBUSY);
	CHECK_RETURNS(ibv_dealloc_pd(s->pd), EBUSY);
}

static void refuse_qp(struct setup *s, struct ibv_qp_init_attr attr, int want)
{
	attr.send_cq = attr.send_cq ? attr.send_cq : s->cq;
	CHECK_NULL(ibv_create_qp(s->pd, &attr), want);
}

/* Completion queues with the vectors 0, 2 and 1 of a device that has three. */
void case_vectors(void)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 4, .comp_vector = 1 };
	struct ibv_cq_ex *extended;
	struct ibv_cq *cq;
	struct setup s;

	set_up(&s, 4, 4);
	CHECK(s.context->num_comp_vectors == 3);
	CHECK((cq = ibv_create_cq(s.context, 4, NULL, NULL, 2)));
	CHECK((extended = ibv_create_cq_ex(s.context, &attr)));
	CHECK(!ibv_create_cq(s.context, 4, NULL, NULL, 3) && errno == EINVAL);
	CHECK(!ibv_create_cq(s.context, 4, NULL, NULL, -1) && errno == EINVAL);
	CHECK_RETURNS(ibv_destroy_cq(ibv_cq_ex_to_cq(extended)), 0);
	CHECK_RETURNS(ibv_destroy_cq(cq), 0);
	tear_down(&s);
}

void case_refuse_objects(void)
{
	struct setup s;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	set_up(&s, 4, 4);
	refuse_cqs(&s);
	struct ibv_qp_init_attr good = { .recv_cq = s.cq, .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } }, bad;

	refuse_qp(&s, (bad = good, bad.qp_type = (enum ibv_qp_type)7, bad), EOPNOTSUPP);
	refuse_qp(&s, (bad = good, bad.cap.max_send_wr = 257, bad), EINVAL);
	refuse_qp(&s, (bad = good, bad.cap.max_recv_wr = 257, bad), EINVAL);
	refuse_qp(&s, (bad = good, bad.cap.max_send_sge = 9, bad), EINVAL);
	refuse_qp(&s, (bad = good, bad.cap.max_recv_sge = 9, bad), EINVAL);
	refuse_qp(&s, (bad = good, bad.cap.max_inline_data = 513, bad), EINVAL);
	refuse_qp(&s, (bad = good, bad.recv_cq = NULL, bad), EINVAL);
	CHECK_RETURNS(ibv_modify_qp(s.qp, &attr, IBV_QP_STATE | IBV_QP_ALT_PATH), EOPNOTSUPP);
	tear_down(&s);
}

/* Registers the setup's memory with these rights and returns the errno value. */
static int registers(struct setup *s, void *addr, size_t length, int access)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_mr(s->pd, addr, length, access);
	if (!mr)
		return errno;
	CHECK(mr->addr == addr && mr->length == length && mr->lkey && mr->pd == s->pd);
	CHECK_RETURNS(ibv_dereg_mr(mr), 0);
	return 0;
}

void case_memory(void)
{
	struct setup s;
	struct ibv_device_attr_ex attr;
	struct ibv_mr *mr;
	uint32_t key;
	int on_demand;

	set_up(&s, 4, 4);
	CHECK_RETURNS(registers(&s, s.memory, 100, 0), 0);
	CHECK_RETURNS(registers(&s, s.memory + 5, 100, IBV_ACCESS_REMOTE_READ), 0);
	CHECK_RETURNS(registers(&s, s.memory, 100, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING), 0);
	CHECK_RETURNS(registers(&s, s.memory, 100, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	CHECK_RETURNS(registers(&s, s.memory, 100, IBV_ACCESS_REMOTE_ATOMIC), EINVAL);
	CHECK_RETURNS(registers(&s, s.memory, 100, 1 << 12), EINVAL);
	CHECK_RETURNS(ibv_query_device_ex(s.context, NULL, &attr), 0);
	on_demand = attr.odp_caps.general_caps ? 0 : EOPNOTSUPP; /* the kernel decides */
	CHECK_RETURNS(registers(&s, s.memory, 100, IBV_ACCESS_ON_DEMAND), on_demand);
	CHECK_RETURNS(registers(&s, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND), on_demand);
	CHECK_RETURNS(registers(&s, (void *)4096, 8192, IBV_ACCESS_ON_DEMAND), on_demand);
	CHECK_RETURNS(registers(&s, s.memory, 100, IBV_ACCESS_HUGETLB), 0);
	CHECK_RETURNS(registers(&s, s.memory + 1, 0, 0), 0);
	CHECK_RETURNS(registers(&s, s.memory, 0, 0), EINVAL); /* of no page */
	CHECK_RETURNS(registers(&s, (void *)-4096, 8192, 0), EINVAL);
	CHECK_RETURNS(registers(&s, (void *)4096, 8192, 0), EFAULT);
	CHECK((mr = ibv_reg_mr(s.pd, s.memory, 100, IBV_ACCESS_LOCAL_WRITE)));
	key = mr->rkey;
	CHECK_RETURNS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, s.memory + 8, 8, 0), 0);
	CHECK(mr->addr == s.memory + 8 && mr->length == 8 && mr->rkey == key);
	CHECK_RETURNS(ibv_rereg_mr(mr, 8, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	CHECK_RETURNS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE),
		      IBV_REREG_MR_ERR_CMD);
	CHECK(mr->length == 8);
	CHECK_RETURNS(ibv_dereg_mr(mr), 0);
	tear_down(&s);
}

void case_unsupported(void)
{
	struct setup s;
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_xrcd_init_attr xrcd = { .comp_mask = 0 };
	struct ibv_flow_attr flow = { .comp_mask = 0 };
	struct ibv_modify_cq_attr moderate = { .attr_mask = 0 };
	struct ibv_ece ece;

	set_up(&s, 4, 4);
	CHECK_NULL(ibv_create_srq(s.pd, &srq), EOPNOTSUPP);
	CHECK_NULL(ibv_alloc_mw(s.pd, IBV_MW_TYPE_1), EOPNOTSUPP);
	CHECK_NULL(ibv_open_xrcd(s.context, &xrcd), EINVAL);
	CHECK_NULL(ibv_create_flow(s.qp, &flow), EOPNOTSUPP);
	CHECK_NULL(ibv_import_device(3), EOPNOTSUPP);
	CHECK_NULL(ibv_reg_dmabuf_mr(s.pd, 0, 4096, 0, -1, 0), EBADF);
	CHECK_RETURNS(ibv_modify_cq(s.cq, &moderate), EOPNOTSUPP);
	CHECK_RETURNS(ibv_attach_mcast(s.qp, NULL, 0), EINVAL); /* not of type UD */
	CHECK_RETURNS(ibv_query_ece(s.qp, &ece), EOPNOTSUPP);
	tear_down(&s);
}

void case_nobody(void)
{
	int n = 7;
	struct ibv_device **list = ibv_get_device_list(&n);

	CHECK(list && n == 0 && !list[0]);
	ibv_free_device_list(list);
}

void case_mismatch(void)
{
	case_nobody();
}
