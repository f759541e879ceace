/*
 * urdma_abi.h - the interface between urdmad and its client processes.
 *
 * It consists of three parts:
 *   1. control messages on a SOCK_SEQPACKET Unix socket, one request and one
 *      response each, with file descriptors as SCM_RIGHTS;
 *   2. event messages on socketpairs created by urdmad (completion channels,
 *      asynchronous events, rdma_cm event channels);
 *   3. rings in memfds that urdmad creates and seals, and doorbells in shared memory.
 *
 * All integers are in the machine's byte order, except that names ending in _be are in network byte order.
 * All structures have fixed-width fields, named padding and natural alignment, so C and Go lay them out
 * alike; a structure that the compiler would have to pad is an error. The Go files are generated from this
 * file (go generate ./verbs/abi), and a test compares their layout with gcc's.
 *
 * Numbers that libibverbs or librdmacm define (opcodes, states, access flags, completion status, event
 * types, attribute masks) have the same values here.
 */
#ifndef URDMA_ABI_H
#define URDMA_ABI_H

#include <stdint.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"

#define URDMA_ABI_VERSION 9u

#define URDMA_ABI_MAX_MESSAGE 4096u /* bytes of one control or event message */
#define URDMA_ABI_MAX_FDS (1u + URDMA_ABI_MAX_WORKERS) /* descriptors of one control message */
#define URDMA_ABI_MAX_WORKERS 64u
#define URDMA_ABI_MAX_PRIVATE 256u
#define URDMA_ABI_NO_HANDLE 0u /* no object has this handle */
#define URDMA_ABI_MAX_BATCH 16u /* requests in one BATCH */
#define URDMA_ABI_BATCH_MADE 0xffffff00u /* no object has this handle or a higher one: see BATCH */
#define URDMA_ABI_NO_DEVICE 0xffffffffu

/*
 * The address of a device, or of one end of a connection. A link-local IPv6 address has the index of the
 * device's network interface as scope_id.
 */
struct urdma_abi_addr {
	uint16_t family;   /* AF_UNSPEC: no address; AF_INET; AF_INET6 */
	uint16_t port_be;  /* 0 if there is no port number */
	uint32_t scope_id; /* sin6_scope_id; 0 unless AF_INET6 */
	uint8_t addr[16];  /* network byte order; AF_INET: the first 4 bytes, the others 0 */
};

/* ---- control messages -------------------------------------------------- */

/* How a request may be sent, and what its response means to the client. */
enum urdma_abi_way {
	URDMA_ABI_BATCHED = 0, /* alone, or in a BATCH */
	URDMA_ABI_ALONE = 1,   /* not in a BATCH */
	/* not in a BATCH; the response's descriptor is a queue's new memory: a client that loses it must end
	 * the session */
	URDMA_ABI_MOVES = 2,
	URDMA_ABI_LOOKS = 3,   /* not in a BATCH; also allowed before or without HELLO */
};

/*
 * The requests, one a row: R(number, name, object, request, answer, undo, way, call, text).
 *
 * object: the kind of object that handles it. Unless that is the session, the request's first
 *   field is the object's handle. In urdmad a method of the object handles the request; requests
 *   that LOOK are handled by attached features (control.Server.Attach).
 * request, answer: structures of this file, without urdma_abi_; header: no data follows it.
 * undo: the request that destroys the created object, whose handle begins the response; or NONE.
 * way: enum urdma_abi_way.
 * call, text: names of the request in messages of liburdma.so and of package verbs.
 *
 * enum urdma_abi_type, the library's tables (verbs/lib/session/requests.c), and Go's, which
 * verbs/abi/generate writes, are made from this table.
 */
#define URDMA_ABI_REQUESTS(R) \
	R(1, HELLO, session, hello, hello_response, NONE, ALONE, "connecting to urdmad", "greeting urdmad") \
	R(2, QUERY_DEVICE, session, query_device, device, NONE, ALONE, "ibv_query_device", "querying a device") \
	R(3, OPEN_DEVICE, session, open_device, handle, CLOSE_DEVICE, BATCHED, "ibv_open_device", "opening a device") \
	R(4, CLOSE_DEVICE, context, handle, header, NONE, BATCHED, "ibv_close_device", "closing a device") \
	R(5, ALLOC_PD, context, handle, handle, DEALLOC_PD, BATCHED, "ibv_alloc_pd", "allocating a protection domain") \
	R(6, DEALLOC_PD, pd, handle, header, NONE, BATCHED, "ibv_dealloc_pd", "releasing a protection domain") \
	R(7, ADD_FILE, session, header, handle, NONE, ALONE, "ibv_reg_mr (sharing pages)", "sharing memory") \
	R(8, REG_MR, pd, reg_mr, reg_mr_response, DEREG_MR, BATCHED, "ibv_reg_mr", "registering memory") \
	R(9, DEREG_MR, mr, handle, header, NONE, BATCHED, "ibv_dereg_mr", "deregistering memory") \
	R(10, CREATE_CHANNEL, context, handle, handle, DESTROY_CHANNEL, BATCHED, \
		"ibv_create_comp_channel", "creating a completion channel") \
	R(11, DESTROY_CHANNEL, channel, handle, header, NONE, BATCHED, \
		"ibv_destroy_comp_channel", "destroying a completion channel") \
	R(12, CREATE_CQ, context, create_cq, cq_response, DESTROY_CQ, BATCHED, \
		"ibv_create_cq", "creating a completion queue") \
	R(13, RESIZE_CQ, cq, resize_cq, cq_response, NONE, MOVES, "ibv_resize_cq", "resizing a completion queue") \
	R(14, DESTROY_CQ, cq, handle, header, NONE, BATCHED, "ibv_destroy_cq", "destroying a completion queue") \
	R(15, CREATE_QP, session, create_qp, qp_response, DESTROY_QP, BATCHED, "ibv_create_qp", "creating a queue pair") \
	R(16, MODIFY_QP, qp, modify_qp, query_qp_response, NONE, BATCHED, "ibv_modify_qp", "modifying a queue pair") \
	R(17, QUERY_QP, qp, handle, query_qp_response, NONE, BATCHED, "ibv_query_qp", "querying a queue pair") \
	R(18, DESTROY_QP, qp, handle, header, NONE, BATCHED, "ibv_destroy_qp", "destroying a queue pair") \
	R(19, CREATE_SRQ, pd, create_srq, srq_response, DESTROY_SRQ, BATCHED, \
		"ibv_create_srq", "creating a shared receive queue") \
	R(20, MODIFY_SRQ, srq, modify_srq, header, NONE, BATCHED, "ibv_modify_srq", "modifying a shared receive queue") \
	R(21, QUERY_SRQ, srq, handle, query_srq_response, NONE, BATCHED, "ibv_query_srq", "querying a shared receive queue") \
	R(22, DESTROY_SRQ, srq, handle, header, NONE, BATCHED, "ibv_destroy_srq", "destroying a shared receive queue") \
	R(23, OPEN_XRCD, context, open_xrcd, handle, CLOSE_XRCD, ALONE, "ibv_open_xrcd", "opening an XRC domain") \
	R(24, CLOSE_XRCD, xrcd, handle, header, NONE, BATCHED, "ibv_close_xrcd", "closing an XRC domain") \
	R(25, OPEN_QP, xrcd, open_qp, handle, DESTROY_QP, BATCHED, "ibv_open_qp", "opening a queue pair") \
	R(26, RESIZE_SRQ, srq, modify_srq, srq_response, NONE, MOVES, "ibv_modify_srq", "resizing a shared receive queue") \
	R(27, BATCH, session, batch, batch_response, NONE, ALONE, \
		"rdma_create_qp, rdma_destroy_qp", "carrying out several requests") \
	R(32, CM_CREATE_CHANNEL, session, header, handle, CM_DESTROY_CHANNEL, BATCHED, \
		"rdma_create_event_channel", "creating an event channel") \
	R(33, CM_DESTROY_CHANNEL, cm_channel, handle, header, NONE, BATCHED, \
		"rdma_destroy_event_channel", "destroying an event channel") \
	R(34, CM_CREATE_ID, cm_channel, cm_create_id, handle, CM_DESTROY_ID, BATCHED, "rdma_create_id", "creating an id") \
	R(35, CM_DESTROY_ID, id, handle, header, NONE, BATCHED, "rdma_destroy_id", "destroying an id") \
	R(36, CM_BIND, id, cm_bind, cm_bound, NONE, BATCHED, "rdma_bind_addr", "binding") \
	R(37, CM_RESOLVE_ADDR, id, cm_resolve_addr, cm_bound, NONE, BATCHED, "rdma_resolve_addr", "resolving an address") \
	R(38, CM_RESOLVE_ROUTE, id, cm_value, header, NONE, BATCHED, "rdma_resolve_route", "resolving a route") \
	R(39, CM_LISTEN, id, cm_value, cm_bound, NONE, BATCHED, "rdma_listen", "listening") \
	R(40, CM_CONNECT, id, cm_conn, header, NONE, BATCHED, "rdma_connect", "connecting") \
	R(41, CM_ACCEPT, id, cm_conn, header, NONE, BATCHED, "rdma_accept", "accepting") \
	R(42, CM_REJECT, id, cm_conn, header, NONE, BATCHED, "rdma_reject", "rejecting") \
	R(43, CM_DISCONNECT, id, handle, header, NONE, BATCHED, "rdma_disconnect", "disconnecting") \
	R(44, CM_SET_OPTION, id, cm_set_option, header, NONE, BATCHED, "rdma_set_option", "setting an option") \
	R(45, CM_MIGRATE_ID, id, cm_value, header, NONE, BATCHED, "rdma_migrate_id", "moving an id to another channel") \
	R(46, CM_WAKE_CHANNEL, cm_channel, handle, header, NONE, BATCHED, "rdma_migrate_id", "waking an event channel") \
	R(56, ALLOC_MW, pd, alloc_mw, alloc_mw_response, DEALLOC_MW, BATCHED, "ibv_alloc_mw", "allocating a memory window") \
	R(57, DEALLOC_MW, mw, handle, header, NONE, BATCHED, "ibv_dealloc_mw", "deallocating a memory window") \
	R(60, ATTACH_MCAST, qp, mcast, header, NONE, BATCHED, "ibv_attach_mcast", "attaching to a group") \
	R(61, DETACH_MCAST, qp, mcast, header, NONE, BATCHED, "ibv_detach_mcast", "detaching from a group") \
	R(62, CREATE_FLOW, qp, create_flow, handle, DESTROY_FLOW, BATCHED, "ibv_create_flow", "creating a flow") \
	R(63, DESTROY_FLOW, flow, handle, header, NONE, BATCHED, "ibv_destroy_flow", "destroying a flow") \
	R(64, INSPECT, session, header, inspect_response, NONE, LOOKS, "urdma show", "looking inside") \
	R(65, CAPTURE, session, capture, capture_response, NONE, LOOKS, "urdma capture", "beginning a capture") \
	R(66, CAPTURE_STOP, session, header, header, NONE, LOOKS, "urdma capture", "ending a capture") \
	R(67, MARK, session, mark, header, NONE, LOOKS, "urdma trace --mark", "setting a bookmark") \
	R(68, ADMIN, session, admin, inspect_response, NONE, LOOKS, "urdma reload, log, end", "administering urdmad") \
	R(69, EXPLAIN, session, explain, explain_response, NONE, LOOKS, "urdma explain", "asking why something failed") \
	R(70, WARN, session, warn, explain_response, NONE, LOOKS, "URDMA_WARN", "warning of a mistake") \
	R(72, INJECT, session, inject, inject_response, NONE, LOOKS, "urdma inject", "injecting faults") \
	R(73, OPEN_UMAD, session, open_umad, header, NONE, LOOKS, \
		"open of /dev/infiniband/umad", "opening a management device") \
	R(74, OPEN_RDMA_NETLINK, session, open_rdma_netlink, header, NONE, LOOKS, \
		"socket of NETLINK_RDMA", "opening a socket of NETLINK_RDMA")

#define URDMA_ABI_ENUMERATOR(number, name, ...) URDMA_ABI_##name = number,

enum urdma_abi_type {
	URDMA_ABI_NONE = 0, /* not a request */
	URDMA_ABI_REQUESTS(URDMA_ABI_ENUMERATOR)
};

/*
 * Header of every control message. A response repeats type and seq. Its status is 0 or an errno value; in
 * the latter case the response is just this header.
 */
struct urdma_abi_header {
	uint32_t type;   /* enum urdma_abi_type */
	uint32_t length; /* bytes of the whole message, this header included */
	uint32_t seq;    /* chosen by the client */
	int32_t status;  /* request: 0 */
};

/*
 * HELLO is the first message. Descriptor 0: the client's own /proc/self/mem, opened read-write. It may be
 * missing; then only shared memory can be registered. If the versions differ, the response is EPROTO with
 * a hello_response that contains urdmad's version.
 */
struct urdma_abi_hello {
	struct urdma_abi_header header;
	uint32_t abi_version;
	uint32_t pid;       /* the client's own view; for display only */
	char command[64];   /* program name, NUL-terminated; for display only */
	uint32_t flags;     /* URDMA_ABI_HELLO_* */
};

/*
 * HELLO flag: the memfds in responses to CREATE_CQ and CREATE_QP may each contain many queues. Each such
 * memfd has a number from 1, never reused in the session. Its descriptor comes only with the first queue
 * in it. urdmad and client both forget the memfd when its last queue is destroyed. A queue may still get a
 * memfd of its own, with number 0.
 */
#define URDMA_ABI_HELLO_POOL 1u

/*
 * Descriptor 0: the doorbell memfd, doorbell_bytes long. Descriptors 1 to workers: the kick socket of each
 * worker, in the order of their doorbell sections.
 */
struct urdma_abi_hello_response {
	struct urdma_abi_header header;
	uint32_t abi_version;
	uint32_t num_devices;    /* device numbers are 0 .. num_devices-1; each is a port, see urdma_abi_device */
	uint32_t doorbell_bytes; /* workers * sizeof(struct urdma_abi_doorbells) */
	uint32_t workers;        /* 1 to URDMA_ABI_MAX_WORKERS */
	char sysfs_path[256];    /* the value for ibv_get_sysfs_path() */
};

enum urdma_abi_transport {
	URDMA_ABI_TRANSPORT_IWARP = 0,
	URDMA_ABI_TRANSPORT_IB = 1,
	URDMA_ABI_TRANSPORT_ROCE = 2,
};

/* What a port's configuration allows its queue pairs of type RAW_PACKET. */
enum urdma_abi_raw_packets {
	URDMA_ABI_RAW_OFF = 0,
	URDMA_ABI_RAW_NON_IP = 1, /* frames of protocols that urdmad does not speak, from the port's own address */
	URDMA_ABI_RAW_ALL = 2,    /* all frames */
};

#define URDMA_ABI_TRANSPORT_DEFAULT 0xffffffffu /* the profile or transport configured in urdma.json */

/* As what the caller shows devices. */
struct urdma_abi_shown {
	uint32_t transport; /* enum urdma_abi_transport, or TRANSPORT_DEFAULT */
	uint32_t pad;
	char profile[16];   /* name of a profile, which determines the transport, too; empty: transport counts */
};

/* QUERY_DEVICE: request. Response: struct urdma_abi_device. */
struct urdma_abi_query_device {
	struct urdma_abi_header header;
	uint32_t device;
	uint32_t pad;
	struct urdma_abi_shown shown; /* EINVAL if there is no such transport or profile */
};

/*
 * A device with several ports has consecutive numbers, one for each port. OPEN_DEVICE takes any of them
 * and opens the whole device; in rdma_cm's messages the number denotes the port. Limits on objects apply
 * to the device; addresses, packet sizes and link state to the port.
 */
struct urdma_abi_device {
	struct urdma_abi_header header;
	char name[64];
	uint64_t node_guid_be;
	struct urdma_abi_addr addr; /* port 0 */
	uint32_t prefix_length;
	uint8_t mac[6];
	uint16_t pad0;
	uint32_t mtu;              /* bytes of the largest IP packet */
	/* enum urdma_abi_transport; this and the fields up to lid depend on how the device is shown */
	uint32_t transport;
	uint32_t node_type;        /* enum ibv_node_type */
	uint32_t transport_type;   /* enum ibv_transport_type */
	uint32_t link_layer;       /* IBV_LINK_LAYER_* */
	uint32_t gid_type;         /* enum ibv_gid_type */
	uint8_t gid[16];           /* the last entry of the port's GID table; the others are made of it */
	uint32_t lid;              /* link layer InfiniBand: the LID, 0 if the address yields none; other link layers: 0 */
	uint32_t link_up;          /* 0 or 1 */
	uint32_t max_qp;
	uint32_t max_qp_wr;
	uint32_t max_sge;
	uint32_t max_sge_rd;
	uint32_t max_inline;
	uint32_t max_cq;
	uint32_t max_cqe;
	uint32_t max_mr;
	uint32_t max_pd;
	uint32_t max_rd_atom;      /* IRD and ORD limit of one queue pair */
	uint32_t num_comp_vectors; /* CREATE_CQ takes 0 .. num_comp_vectors-1 */
	uint32_t vendor_id;        /* this and the next two: for ibv_query_device(3) */
	uint32_t max_datagram;     /* bytes of the longest message on a queue pair of type UD */
	uint64_t max_mr_size;      /* bytes */
	uint64_t max_msg;          /* bytes of the longest message */
	uint32_t max_srq;
	uint32_t max_srq_wr;
	uint32_t max_srq_sge;
	uint32_t max_mw;
	uint32_t port_num;         /* number of the port on its device, from 1 */
	uint32_t num_ports;        /* number of ports of the device */
	uint32_t vendor_part_id;
	uint32_t hw_ver;
	char fw_ver[32];
	char profile[16];          /* name of the profile as which the device is shown; empty: none */
	uint32_t raw_packets;      /* enum urdma_abi_raw_packets */
	uint32_t pad1;
};

/* OPEN_DEVICE. Response: urdma_abi_handle, descriptor 0: async event socket. */
struct urdma_abi_open_device {
	struct urdma_abi_header header;
	uint32_t device;
	uint32_t pad;
};

/*
 * The handle of an object. Request, for operations without further parameters: CLOSE_DEVICE, DEALLOC_PD,
 * DEREG_MR (EBUSY while a window is bound to it), DEALLOC_MW, DESTROY_*, QUERY_QP, CREATE_CHANNEL and
 * ALLOC_PD (the context's handle), CM_DESTROY_ID, CM_DESTROY_CHANNEL, CM_DISCONNECT, CM_WAKE_CHANNEL
 * (sends an event without an id, URDMA_ABI_CM_WAKE, so that the channel's socket becomes readable). The
 * response is a bare header unless stated otherwise. Response of ALLOC_PD, OPEN_DEVICE, CREATE_CHANNEL and
 * CM_CREATE_CHANNEL (descriptor 0: the channel's socket), CM_CREATE_ID, ADD_FILE.
 */
struct urdma_abi_handle {
	struct urdma_abi_header header;
	uint32_t handle;
	uint32_t pad;
};

/*
 * BATCH: complete requests with their headers, one after another. urdmad carries them out in order until
 * one fails. The handle BATCH_MADE + i in a request denotes the object that the i-th request of the batch,
 * counted from 0, has created.
 *
 * A status in the header of the response means that the message is malformed and no request was carried
 * out.
 */
struct urdma_abi_batch {
	struct urdma_abi_header header;
	uint32_t count; /* 0 to URDMA_ABI_MAX_BATCH */
	uint32_t pad;
	/* followed by the requests */
};

struct urdma_abi_batch_response {
	struct urdma_abi_header header;
	uint32_t done;   /* number of requests carried out, whose responses follow in order */
	int32_t refused; /* errno value of the request after those; 0: there is none */
	uint8_t fds[URDMA_ABI_MAX_BATCH]; /* number of descriptors that belong to each response */
	/* followed by complete responses with their headers, one after another */
};

/* ADD_FILE: a memfd with registered memory in it. Descriptor 0: the memfd,
 * which must be sealed with F_SEAL_SHRINK. Request: header alone.
 * Response: urdma_abi_handle. */

enum urdma_abi_path {
	URDMA_ABI_PATH_SHARED = 0,   /* urdmad maps the same pages of a file as the client */
	URDMA_ABI_PATH_FALLBACK = 1, /* urdmad reads and writes /proc/self/mem */
	/* no memory: reads return 0, writes are discarded; all fields except pd are 0, and peers have no key */
	URDMA_ABI_PATH_NULL = 2,
	/* like SHARED, for pages of a file that the program itself maps shared. Descriptor 0: the file, on
	 * tmpfs (memfd, /dev/shm, System V) or hugetlbfs, or a dma-buf of udmabuf, open for reading and
	 * writing */
	URDMA_ABI_PATH_FILE = 3,
	/* like FALLBACK, but nothing is checked at registration: an access succeeds if the client's process could
	 * do it at that moment. Descriptor 0: the client's own /proc/self/maps; later registrations need none.
	 * EOPNOTSUPP: the kernel doesn't have PROCMAP_QUERY */
	URDMA_ABI_PATH_ON_DEMAND = 4,
};

struct urdma_abi_reg_mr {
	struct urdma_abi_header header;
	uint32_t pd;
	uint32_t access;      /* enum ibv_access_flags */
	uint64_t addr;        /* address in the client's address space */
	uint64_t length;      /* bytes */
	uint64_t iova;        /* address that peers and work requests use */
	uint32_t path;        /* enum urdma_abi_path */
	uint32_t file;        /* SHARED: handle of ADD_FILE */
	uint64_t file_offset; /* SHARED, FILE: offset of addr in the file, in bytes */
	uint32_t replaces;    /* handle of the region whose place and keys this one takes; 0: none */
	uint32_t pad;
	/* FILE: identifies the file, because the program may have closed the descriptor and reused its number */
	uint64_t inode;
	uint32_t major;       /* FILE: device of the file */
	uint32_t minor;
	char why[80];         /* FALLBACK: the reason, ends at the first 0 */
};

struct urdma_abi_reg_mr_response {
	struct urdma_abi_header header;
	uint32_t handle;
	uint32_t lkey;
	uint32_t rkey;
	uint32_t pad;
};

/* ATTACH_MCAST, DETACH_MCAST: a queue pair of type UD and a multicast group. */
struct urdma_abi_mcast {
	struct urdma_abi_header header;
	uint32_t qp;
	uint32_t pad;
	struct urdma_abi_addr group;
};

#define URDMA_ABI_FLOW_KEY 64u

/* The headers that a frame must have to match a flow; bits. */
enum urdma_abi_flow_layers {
	URDMA_ABI_FLOW_VLAN = 1,
	URDMA_ABI_FLOW_IPV4 = 2,
	URDMA_ABI_FLOW_IPV6 = 4,
	URDMA_ABI_FLOW_TCP = 8,
	URDMA_ABI_FLOW_UDP = 16,
};

/*
 * CREATE_FLOW: frames for a queue pair of type RAW_PACKET. A frame matches if it has the headers that layers
 * names, and its key equals value in all bits of mask. The key consists of header fields in network byte order:
 *
 *	 0  Ethernet destination, source, EtherType (behind VLAN tags), innermost VLAN tag (0: none)
 *	16  IPv4: source, destination, protocol, TOS, TTL, and the three flags in one byte
 *	    IPv6: source, destination, 4 bytes flow label, next header, traffic class, hop limit
 *	56  TCP, UDP: destination port, source port
 *
 * Fields that the frame lacks, and the other bytes, are 0.
 */
struct urdma_abi_create_flow {
	struct urdma_abi_header header;
	uint32_t qp;
	uint32_t type;     /* enum ibv_flow_attr_type */
	uint32_t priority; /* lower numbers first, up to 65535 */
	uint32_t port;     /* port number on the device, from 1 */
	uint32_t flags;    /* enum ibv_flow_flags */
	uint32_t layers;   /* enum urdma_abi_flow_layers */
	uint8_t value[URDMA_ABI_FLOW_KEY];
	uint8_t mask[URDMA_ABI_FLOW_KEY];
};

/* ALLOC_MW: a memory window. Work requests bind and unbind it (struct urdma_abi_sqe). */
struct urdma_abi_alloc_mw {
	struct urdma_abi_header header;
	uint32_t pd;
	uint32_t type; /* enum ibv_mw_type */
};

struct urdma_abi_alloc_mw_response {
	struct urdma_abi_header header;
	uint32_t handle;
	uint32_t rkey; /* not bound yet; the upper 24 bits never change */
};

struct urdma_abi_create_cq {
	struct urdma_abi_header header;
	uint32_t context;
	uint32_t channel; /* or URDMA_ABI_NO_HANDLE */
	uint32_t cqe;     /* entries requested, at least 1 */
	uint32_t comp_vector; /* below the device's num_comp_vectors, else EINVAL */
};

/* RESIZE_CQ: the client must not poll meanwhile; urdmad moves unpolled completions to the new ring.
 * Response as for CREATE_CQ. */
struct urdma_abi_resize_cq {
	struct urdma_abi_header header;
	uint32_t handle;
	uint32_t cqe;
};

/* Descriptor 0, unless an earlier response had it: the memfd, which contains struct urdma_abi_cq_ring and
 * the entries. */
struct urdma_abi_cq_response {
	struct urdma_abi_header header;
	uint32_t handle;
	uint32_t entries;       /* power of two */
	uint32_t entries_offset;/* bytes from the ring's start to entry 0 */
	uint32_t bytes;         /* length of the memfd */
	uint32_t memfd;         /* number of the memfd; 0: only this queue is in it */
	uint32_t ring_offset;   /* offset of the ring in the memfd, a multiple of 64 */
};

struct urdma_abi_qp_cap {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline; /* bytes */
};

/* Fields for types of queue pairs that are not supported yet must be 0: EOPNOTSUPP. */
struct urdma_abi_create_qp {
	struct urdma_abi_header header;
	uint32_t pd;
	uint32_t qp_type;   /* enum ibv_qp_type */
	uint32_t send_cq;
	uint32_t recv_cq;   /* URDMA_ABI_NO_HANDLE for type XRC_SEND */
	uint32_t srq;          /* or URDMA_ABI_NO_HANDLE; with an SRQ, cap's receives must be 0 */
	uint32_t xrcd;         /* type XRC_RECV, which has no pd and no queues; else URDMA_ABI_NO_HANDLE */
	uint32_t create_flags; /* enum ibv_qp_create_flags; must be 0 */
	uint32_t source_qpn;   /* 0: urdmad chooses */
	uint32_t sq_sig_all;
	struct urdma_abi_qp_cap cap;
	uint64_t user_handle; /* chosen by the client; repeated in every completion */
};

/*
 * The position of a send or receive queue in its memfd: its head (struct urdma_abi_sq_ring or struct
 * urdma_abi_rq_ring) and its slots. All 0: there is no such queue.
 */
struct urdma_abi_queue_layout {
	uint32_t head_offset;  /* bytes, a multiple of 64 */
	uint32_t slots_offset; /* bytes, a multiple of 64 */
	uint32_t entries;      /* power of two */
	uint32_t stride;       /* bytes of a slot */
};

/* Descriptor 0, unless an earlier response had it: the memfd of the queues. A queue without work requests
 * is absent; a queue pair of type XRC_RECV has neither queue and no memfd. */
struct urdma_abi_qp_response {
	struct urdma_abi_header header;
	uint32_t handle;
	uint32_t qpn;
	struct urdma_abi_qp_cap cap; /* actual sizes, at least the requested ones */
	struct urdma_abi_queue_layout sq; /* entries >= cap.max_send_wr */
	struct urdma_abi_queue_layout rq; /* entries >= cap.max_recv_wr */
	uint32_t bytes;       /* length of the memfd */
	uint32_t worker;      /* number of its doorbell section and kick socket */
	uint32_t doorbell;    /* its doorbell bit, 0..4095 */
	uint32_t memfd;       /* number of the memfd; 0: only this queue pair is in it */
};

/* Response: urdma_abi_srq_response. */
struct urdma_abi_create_srq {
	struct urdma_abi_header header;
	uint32_t pd;
	uint32_t max_wr; /* at least 1 */
	uint32_t max_sge;
	uint32_t srq_limit;
	uint32_t srq_type; /* enum ibv_srq_type: 0 (BASIC) or 1 (XRC) */
	uint32_t xrcd;     /* type XRC, else URDMA_ABI_NO_HANDLE; likewise cq */
	uint32_t cq;       /* where its receives complete, with user_handle 0 */
	uint32_t pad;
};

/* Descriptor 0: the memfd of the queue. */
struct urdma_abi_srq_response {
	struct urdma_abi_header header;
	uint32_t handle;
	uint32_t max_wr; /* actual size */
	uint32_t max_sge;
	struct urdma_abi_queue_layout rq; /* entries >= max_wr */
	uint32_t bytes; /* length of the memfd */
	uint32_t srq_num; /* type XRC, else 0 */
	uint32_t pad;
};

/*
 * OPEN_XRCD: descriptor 0, if present, is a file of any kind. All clients that pass the same file (by
 * inode) share the domain; without a file the domain is the client's own. EAGAIN: the domain does not
 * exist, and oflags lacks O_CREAT. EINVAL: it exists, and oflags has O_EXCL. Response: urdma_abi_handle.
 */
struct urdma_abi_open_xrcd {
	struct urdma_abi_header header;
	uint32_t context;
	uint32_t oflags; /* O_CREAT, O_EXCL */
};

/*
 * OPEN_QP: another reference to a queue pair of type XRC_RECV, which exists until all references are
 * destroyed. Response: urdma_abi_handle.
 */
struct urdma_abi_open_qp {
	struct urdma_abi_header header;
	uint32_t xrcd;
	uint32_t qp_num;
};

/*
 * MODIFY_SRQ sets the limit. RESIZE_SRQ changes the size, and the limit if mask includes it: the client
 * must not post meanwhile; urdmad moves the receives not yet taken to a new ring, where they keep their
 * indices. EINVAL: the new size is smaller than the number of posted receives or the limit.
 */
struct urdma_abi_modify_srq {
	struct urdma_abi_header header;
	uint32_t handle;
	uint32_t mask;   /* enum ibv_srq_attr_mask */
	uint32_t max_wr; /* for RESIZE_SRQ */
	uint32_t srq_limit; /* one event is raised when fewer receives than this are posted; 0: no event */
};

/* Response of QUERY_SRQ (request: urdma_abi_handle). */
struct urdma_abi_query_srq_response {
	struct urdma_abi_header header;
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t srq_limit; /* also 0 after the event */
	uint32_t pad;
};

/* The fields of struct ibv_qp_attr that urdmad needs. Masks are enum ibv_qp_attr_mask. */
struct urdma_abi_qp_attr {
	uint32_t qp_state;
	uint32_t cur_qp_state;
	uint32_t path_mtu;
	uint32_t qkey;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t dest_qp_num;
	uint32_t qp_access_flags;
	uint32_t pkey_index;
	uint32_t port_num;
	uint32_t max_rd_atomic;
	uint32_t max_dest_rd_atomic;
	uint32_t min_rnr_timer;
	uint32_t timeout;
	uint32_t retry_cnt;
	uint32_t rnr_retry;
	uint32_t dlid;
	uint32_t sgid_index;
	uint8_t dgid[16];
	uint32_t is_global;
	uint32_t sq_draining;
	/* this and the fields up to ah_port_num come from the address handle; only traffic_class has an
	 * effect, the others are just stored */
	uint32_t flow_label;
	uint32_t hop_limit;
	uint32_t traffic_class;
	uint32_t sl;
	uint32_t static_rate;
	uint32_t src_path_bits;
	uint32_t ah_port_num;
	uint32_t en_sqd_async_notify;
};

struct urdma_abi_modify_qp {
	struct urdma_abi_header header;
	uint32_t handle;
	uint32_t mask;
	struct urdma_abi_qp_attr attr;
};

/* Response of QUERY_QP (request: urdma_abi_handle) and MODIFY_QP. */
struct urdma_abi_query_qp_response {
	struct urdma_abi_header header;
	struct urdma_abi_qp_attr attr;
	struct urdma_abi_qp_cap cap;
	uint32_t sq_sig_all;
	uint32_t unready;    /* 1: a message arrived before any receive had been posted */
	/* connected by number: Reads and atomics that the peer serves at a time; UINT32_MAX: not known */
	uint32_t peer_reads;
};

/* ---- looking inside ------------------------------------------------------ */

/*
 * INSPECT: the request is a bare header. Like CAPTURE it is allowed before or without HELLO. Descriptor 0
 * of the response: a sealed memfd with a snapshot of urdmad's objects as JSON (package inspect). A caller
 * with urdmad's uid, or root, sees everything; others see objects of clients with their own uid.
 */
struct urdma_abi_inspect_response {
	struct urdma_abi_header header;
	uint64_t bytes; /* length of the JSON text in the memfd */
};

/*
 * OPEN_UMAD: after the response the connection is an open /dev/infiniband/umadN, or with issm issmN, for
 * device number N. Each message is what the program writes or reads: struct ib_user_mad_hdr and a MAD (the
 * kernel's include/uapi/rdma/ib_user_mad.h). A message with a descriptor, a socket, is an ioctl and is
 * answered on that socket. EACCES: the caller has neither urdmad's uid nor root's.
 */
struct urdma_abi_open_umad {
	struct urdma_abi_header header;
	uint32_t device;
	uint32_t issm; /* 0 or 1 */
};

struct urdma_abi_umad_ioctl {
	uint32_t request;      /* ioctl(2)'s request; in the response: 0 or an errno value */
	uint8_t argument[44];  /* the data to which ioctl's argument points; in the response: as changed */
};

/*
 * OPEN_RDMA_NETLINK: the response is a bare header. Afterwards the connection stands for a program's socket
 * of family AF_NETLINK and protocol NETLINK_RDMA (netlink(7)): each message is a netlink message, to the
 * kernel or from it. Only what the kernel's nldev lets everybody read is answered, with the objects that
 * INSPECT would show.
 */
struct urdma_abi_open_rdma_netlink {
	struct urdma_abi_header header;
	struct urdma_abi_shown shown;
};

/*
 * CAPTURE: copies of the frames on urdmad's ports, from the response on until CAPTURE_STOP or the end of
 * the session, which can have one capture at a time. CAPTURE_STOP's request and response are bare headers;
 * after its response no more frames are added to the ring. Descriptor 0 of the response: a sealed memfd
 * with a urdma_abi_capture_ring and, at data_offset, data_bytes of records.
 *
 * A filter field that is 0 (device: NO_DEVICE; host: AF_UNSPEC; the port number in host: 0) matches
 * everything; a frame must match all fields. host is either end of a connection; its port number is
 * rdma_cm's or UDP's. A caller with urdmad's uid, or root, gets every matching frame; others get frames of
 * connections and listeners of clients with their own uid.
 *
 * A connection between two queue pairs of one urdmad sends no frames on a wire. urdmad makes up the frames
 * that a wire without loss would carry. Their device is the number of ports plus the port's device number.
 */
#define URDMA_ABI_CAPTURE_ALL 1u    /* flags: also frames that do not belong to urdmad's protocols */
#define URDMA_ABI_CAPTURE_EVENTS 2u /* flags: also events of programs, struct urdma_abi_trace_event */
/* flags, with EVENTS: only events of clients, states, links, asynchronous events and rdma_cm events, and
 * no frames */
#define URDMA_ABI_CAPTURE_CHANGES 4u
/* flags: only the events in urdmad's flight recorder; the ring is complete at once */
#define URDMA_ABI_CAPTURE_PAST 8u

struct urdma_abi_capture {
	struct urdma_abi_header header;
	uint32_t ring_bytes; /* requested size; the response has the actual size */
	uint32_t snap_bytes; /* maximum bytes recorded of each frame; 0: all */
	uint32_t device;
	uint32_t qpn;
	uint32_t pid; /* the client's pid, as urdmad sees it */
	uint32_t flags;
	struct urdma_abi_addr host;
};

struct urdma_abi_capture_response {
	struct urdma_abi_header header;
	uint32_t data_offset;
	uint32_t data_bytes; /* a power of two */
};

/*
 * A ring of bytes written by urdmad only. head and tail count bytes from the beginning and do not wrap;
 * the position of a byte is its count modulo data_bytes. urdmad stores head after the record (release) and
 * loads tail; the reader does the opposite. A frame for which there is no room is counted in lost.
 */
struct urdma_abi_capture_ring {
	uint64_t head; /* written by urdmad */
	uint64_t lost; /* written by urdmad: frames lost before head */
	uint64_t spent_ns; /* written by urdmad: time its worker spent on the capture */
	uint64_t pad0[5];
	uint64_t tail; /* written by the reader */
	uint64_t pad1[7];
};

enum urdma_abi_capture_kind {
	URDMA_ABI_CAPTURE_FRAME = 1,
	URDMA_ABI_CAPTURE_SKIP = 2, /* no data: the next record begins at the start of the ring */
	/* a struct urdma_abi_trace_event in place of a frame, perhaps with a text; a mark's text is in the
	 * note */
	URDMA_ABI_CAPTURE_EVENT = 3,
};

enum urdma_abi_capture_direction {
	URDMA_ABI_CAPTURE_UNKNOWN = 0,
	URDMA_ABI_CAPTURE_IN = 1,
	URDMA_ABI_CAPTURE_OUT = 2,
};

/*
 * Head of a record. The recorded bytes of the frame follow, then the note, a text that says why urdmad did
 * not simply accept the frame. Records are contiguous and begin at multiples of 8. A SKIP consists of kind
 * and bytes only and may be shorter than this head.
 */
struct urdma_abi_capture_record {
	uint32_t bytes; /* length of the record, this head included; a multiple of 8 */
	uint16_t kind;
	uint16_t direction;
	uint64_t time_ns;     /* since 1970-01-01 UTC */
	uint32_t frame_bytes; /* length on the wire, from the Ethernet header on */
	uint32_t kept_bytes;
	uint32_t note_bytes;
	uint32_t device;
	uint32_t qpn;       /* our queue pair to which the frame belongs (for a made-up frame: the sender); 0: not known */
	uint32_t other_qpn; /* for a made-up frame: the receiving queue pair */
};

enum urdma_abi_trace_kind {
	URDMA_ABI_TRACE_CALL = 1,       /* a request was answered; code: enum urdma_abi_type, status: errno */
	/* urdmad read a send from the queue; code: enum ibv_wr_opcode, status: enum ibv_wc_status with which
	 * it fails */
	URDMA_ABI_TRACE_SEND = 2,
	URDMA_ABI_TRACE_RECEIVE = 3,    /* a message begins to use a receive, which has room for length bytes */
	URDMA_ABI_TRACE_COMPLETION = 4, /* code: enum ibv_wc_opcode, status: enum ibv_wc_status */
	URDMA_ABI_TRACE_STATE = 5,      /* state of a queue pair; code: enum ibv_qp_state */
	URDMA_ABI_TRACE_ASYNC = 6,      /* code: enum ibv_event_type */
	URDMA_ABI_TRACE_RESENT = 7,     /* a lost segment is sent again; code: its PSN */
	URDMA_ABI_TRACE_NOT_READY = 8,  /* a message begins to wait for a receive */
	URDMA_ABI_TRACE_MARK = 9,       /* a mark of the program */
	URDMA_ABI_TRACE_CM = 10,        /* code: enum rdma_cm_event_type, status: errno, or reason of a rejection */
	URDMA_ABI_TRACE_CLIENT = 11,    /* a client came (code 1) or left (code 0); the note is its command */
	/* the link of a port came up (code 1) or went down (0); the note is the port's name */
	URDMA_ABI_TRACE_LINK = 12,
	URDMA_ABI_TRACE_REASON = 13,    /* why something failed; code: as in vendor_err, status: enum ibv_wc_status */
	/* length bytes of a message were written to memory; code: enum ibv_wc_opcode; wr_id: of the receive or
	 * Read; for a Write the address */
	URDMA_ABI_TRACE_PLACED = 14,
};

/* An event of a program. Fields that its kind does not use are 0. A reason may be followed by a text. */
struct urdma_abi_trace_event {
	uint32_t kind; /* enum urdma_abi_trace_kind */
	uint32_t pid;
	uint32_t qpn;
	uint32_t code;
	uint32_t status;
	uint32_t length; /* bytes */
	uint64_t wr_id;
	uint64_t duration_ns; /* of a CALL */
};

/* MARK: puts a mark into every capture that records events. Longer texts are truncated. */
#define URDMA_ABI_MARK_BYTES 96u

struct urdma_abi_mark {
	struct urdma_abi_header header;
	char text[URDMA_ABI_MARK_BYTES]; /* ends at the first 0 */
};

/*
 * ADMIN: an administrator's request. Descriptor 0 of the response: a sealed memfd with a text of so many
 * bytes that says what was done. RELOAD and LOG_LEVEL require urdmad's uid or root, otherwise EPERM.
 * END_QP and END_CLIENT require that the caller may see the object, otherwise ENOENT.
 */
enum urdma_abi_admin_op {
	URDMA_ABI_ADMIN_RELOAD = 1,     /* reloads the configuration, as SIGHUP does */
	URDMA_ABI_ADMIN_LOG_LEVEL = 2,  /* text: a value of log_level in urdma.json */
	URDMA_ABI_ADMIN_END_QP = 3,     /* object: the queue pair's number; it moves to ERR with IBV_EVENT_QP_FATAL */
	URDMA_ABI_ADMIN_END_CLIENT = 4, /* object: the client's id in a snapshot; the client sees urdmad end */
};

struct urdma_abi_admin {
	struct urdma_abi_header header;
	uint32_t op; /* enum urdma_abi_admin_op */
	uint32_t pad;
	uint64_t object;
	char text[16]; /* ends at the first 0 */
};

/*
 * EXPLAIN: why an operation of the session failed: the latest failure with a number (as in vendor_err),
 * and unless qpn is 0 of that queue pair. The text has some lines.
 */
#define URDMA_ABI_EXPLAIN_REFUSED 0x0600u   /* number: a request failed; add its errno value */
#define URDMA_ABI_EXPLAIN_EVENT 0x0700u     /* number: an asynchronous event came; add its enum ibv_event_type */
#define URDMA_ABI_EXPLAIN_CONNECTION 0x0580u /* number: a connection was not established */

struct urdma_abi_explain {
	struct urdma_abi_header header;
	uint32_t number;
	uint32_t qpn;
};

struct urdma_abi_explain_response {
	struct urdma_abi_header header;
	char text[2048]; /* ends at the first 0 */
};

/*
 * WARN: the program makes a mistake that has not caused a failure yet (URDMA_WARN). The response has the
 * lines to print on stderr.
 */
enum urdma_abi_pitfall {
	URDMA_ABI_PITFALL_UNSIGNALED = 0x0801,    /* unsignaled sends in a row, as many as the queue has slots */
	URDMA_ABI_PITFALL_SMALL_CQ = 0x0802,      /* more completions may come than the queue holds */
	URDMA_ABI_PITFALL_LOST_WAKEUP = 0x0803,   /* armed, then waited for the event without a poll in between */
	URDMA_ABI_PITFALL_UNACKNOWLEDGED = 0x0804, /* destroyed before its events were acknowledged */
	URDMA_ABI_PITFALL_AFTER_ERROR = 0x0805,   /* posts continue after an error was polled */
	URDMA_ABI_PITFALL_TIMEOUT = 0x0806,       /* timeout 0, which means for ever */
	URDMA_ABI_PITFALL_RETRY = 0x0807,         /* retry count 0 */
	URDMA_ABI_PITFALL_DEREGISTERED = 0x0808,  /* memory deregistered while posted requests use it */
	URDMA_ABI_PITFALL_NOT_ARMED = 0x0809,     /* waits for the event of a queue that is not armed */
	URDMA_ABI_PITFALL_OVERLAP = 0x080a,       /* posted receives use overlapping memory */
	URDMA_ABI_PITFALL_DESTROYED = 0x080b,     /* destroyed a queue pair with sends in progress */
	URDMA_ABI_PITFALL_UNREAD = 0x080c,        /* did not poll a completion with an error */
	URDMA_ABI_PITFALL_INLINE = 0x080d,        /* inline data longer than max_inline_data */
	URDMA_ABI_PITFALL_SGES = 0x080e,          /* more elements than max_send_sge or max_recv_sge */
	URDMA_ABI_PITFALL_STATE = 0x080f,         /* posted in a state that does not allow it */
	URDMA_ABI_PITFALL_FULL = 0x0810,          /* ENOMEM: the queue is full */
	URDMA_ABI_PITFALL_ATOMIC = 0x0811,        /* atomic not on 8 bytes, or not aligned */
	URDMA_ABI_PITFALL_EMPTY_SGE = 0x0812,     /* an element of length 0 */
	URDMA_ABI_PITFALL_GRH = 0x0813,           /* a receive for type UD without room for a GRH */
	URDMA_ABI_PITFALL_PSN = 0x0814,           /* both PSNs are 0 */
	URDMA_ABI_PITFALL_UNREADY = 0x0815,       /* a message came before a receive was posted */
	URDMA_ABI_PITFALL_RD_ATOMIC = 0x0816,     /* more outstanding Reads than the peer serves */
	URDMA_ABI_PITFALL_PRIVATE = 0x0817,       /* more private data than InfiniBand carries */
	URDMA_ABI_PITFALL_REGISTERS = 0x0818,     /* registers and deregisters memory in the data path */
	URDMA_ABI_PITFALL_TINY = 0x0819,          /* many tiny regions */
	URDMA_ABI_PITFALL_AH_DOMAIN = 0x081a,     /* an address handle of another protection domain */
	URDMA_ABI_PITFALL_FORKED = 0x081b,        /* a child uses an object of its parent */
	URDMA_ABI_PITFALL_FALLBACK = 0x081c,      /* a large region that urdmad can't map */
	/* a send waits for seconds for a receive; with rnr_retry 7 it waits for ever */
	URDMA_ABI_PITFALL_NO_RECEIVE = 0x081d,
};

#define URDMA_ABI_WARN_STATUS 86u /* exit status of a program that URDMA_WARN=error ends */

struct urdma_abi_warn {
	struct urdma_abi_header header;
	uint32_t number; /* enum urdma_abi_pitfall */
	uint32_t qpn;    /* queue pair number or 0 */
	char text[512];  /* the place in the program and the mistake, ends at the first 0 */
};

/*
 * INJECT: rules for faults, as text (package inject). A caller with urdmad's uid, or root, may affect all
 * clients; others only clients with their own uid. EPERM: not allowed for this object. ENOENT: no such
 * object. EINVAL: the text is malformed. EDQUOT: too many rules.
 */
#define URDMA_ABI_INJECT_OWN 1u   /* flags: only for this session's client, and removed at its end */
#define URDMA_ABI_INJECT_START 2u /* the same; the client has no objects yet, so that it may become strict */
#define URDMA_ABI_INJECT_BYTES 3072u
#define URDMA_ABI_INJECT_POSTS 8u

struct urdma_abi_inject {
	struct urdma_abi_header header;
	uint32_t flags; /* URDMA_ABI_INJECT_* */
	uint32_t pad;
	char text[URDMA_ABI_INJECT_BYTES]; /* ends at the first 0 */
};

/* A rule for posts, which the library itself makes fail, because urdmad sees a post only after the call. */
struct urdma_abi_post_fault {
	uint32_t number; /* of the rule */
	uint32_t pad;
	uint32_t call;   /* 0: ibv_post_send, 1: ibv_post_recv, 2: ibv_post_srq_recv */
	uint32_t error;  /* errno value */
	uint64_t nth;    /* number of the first matching call that fails, from 1 */
	uint64_t count;  /* number of calls that fail; 0: all */
	uint64_t chance; /* probability that one of them fails, times 2^32; 0: each fails */
	uint64_t seed;
};

/* Flags for strict behaviour (urdma exec --strict); package inject has their names. */
#define URDMA_ABI_STRICT_GARBAGE 0x1u     /* by the library: fills fields of a failed completion with random values */
#define URDMA_ABI_STRICT_SLOTS 0x2u       /* by the library: a send's slot is freed only by polling a completion */
#define URDMA_ABI_STRICT_LATE 0x4u        /* by the library: some polls find nothing although completions wait */
#define URDMA_ABI_STRICT_SRQ_ORDER 0x100u /* this and the following: by urdmad */
#define URDMA_ABI_STRICT_INLINE 0x200u
#define URDMA_ABI_STRICT_RNR 0x400u
#define URDMA_ABI_STRICT_SPURIOUS 0x800u
#define URDMA_ABI_STRICT_WRITE_ORDER 0x1000u
#define URDMA_ABI_STRICT_ATTRIBUTES 0x2000u
#define URDMA_ABI_STRICT_REUSE 0x4000u

struct urdma_abi_inject_response {
	struct urdma_abi_header header;
	uint32_t number; /* number of the first rule created; 0: none */
	uint32_t strict; /* URDMA_ABI_STRICT_*; with INJECT_START */
	uint64_t strict_seed;
	uint64_t hits;   /* of rule number asked; 0 for a rule for posts, which the library counts */
	uint32_t asked;  /* "hits NUMBER": NUMBER; 0: no such statement */
	uint32_t posts;  /* number of valid entries in post: the client's rules for posts; with OWN and START */
	struct urdma_abi_post_fault post[URDMA_ABI_INJECT_POSTS];
};

/* ---- rdma_cm ------------------------------------------------------------ */

struct urdma_abi_cm_create_id {
	struct urdma_abi_header header;
	uint32_t channel; /* handle of CM_CREATE_CHANNEL */
	uint32_t ps;      /* enum rdma_port_space */
};

/* CM_BIND: port number 0 chooses a free one. 0.0.0.0, :: and loopback addresses bind to every port of
 * urdmad with that family (:: to both families, unless option AFONLY was set). */
struct urdma_abi_cm_bind {
	struct urdma_abi_header header;
	uint32_t id;
	uint32_t pad;
	struct urdma_abi_addr addr;
};


/* Response of CM_BIND, CM_RESOLVE_ADDR and CM_LISTEN. */
struct urdma_abi_cm_bound {
	struct urdma_abi_header header;
	struct urdma_abi_addr local; /* with the port number chosen */
	uint32_t device;             /* URDMA_ABI_NO_DEVICE while bound to all devices */
	uint32_t pad;
};

/* CM_RESOLVE_ADDR: binds and responds at once; the event ADDR_RESOLVED or ADDR_ERROR follows. If src is
 * AF_UNSPEC or 0.0.0.0, urdmad chooses. */
struct urdma_abi_cm_resolve_addr {
	struct urdma_abi_header header;
	uint32_t id;
	uint32_t timeout_ms;
	struct urdma_abi_addr src;
	struct urdma_abi_addr dst;
};

/* CM_RESOLVE_ROUTE (value = timeout in ms), CM_LISTEN (value = backlog),
 * CM_MIGRATE_ID (value = channel handle). */
struct urdma_abi_cm_value {
	struct urdma_abi_header header;
	uint32_t id;
	uint32_t value;
};

struct urdma_abi_cm_param {
	uint32_t qp;                  /* handle of CREATE_QP, or NO_HANDLE */
	uint32_t qp_num;              /* if qp is NO_HANDLE: for display; for datagrams sent to the peer */
	uint32_t qkey;                /* for datagrams */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;
	uint16_t private_data_len;    /* 0..URDMA_ABI_MAX_PRIVATE */
	uint8_t private_data[URDMA_ABI_MAX_PRIVATE];
};

/* CM_CONNECT, CM_ACCEPT, CM_REJECT (which uses only the private data). */
struct urdma_abi_cm_conn {
	struct urdma_abi_header header;
	uint32_t id;
	uint32_t pad;
	struct urdma_abi_cm_param param;
};

struct urdma_abi_cm_set_option {
	struct urdma_abi_header header;
	uint32_t id;
	uint32_t level;
	uint32_t optname;
	uint32_t value;
};

/* ---- event messages ------------------------------------------------------ */

/* On a completion channel: names a completion queue with a new completion. If the client no longer knows
 * the handle, it must ignore the event. */
struct urdma_abi_comp_event {
	uint32_t cq;
	uint32_t pad;
};

/* On a context's asynchronous event socket. */
struct urdma_abi_async_event {
	uint32_t event_type; /* enum ibv_event_type */
	uint32_t handle;     /* the CQ, QP or SRQ; for port events the port number */
};

#define URDMA_ABI_CM_WAKE 0xffffffffu /* event: caused by CM_WAKE_CHANNEL */

/* On an rdma_cm event channel. */
struct urdma_abi_cm_event {
	uint32_t event;  /* enum rdma_cm_event_type, or CM_WAKE */
	int32_t status;  /* 0, -errno, or the reason for a refusal: from a REJ, or a SIDR_REP's status */
	uint32_t id;     /* the id; for CONNECT_REQUEST the listening id */
	uint32_t child;  /* CONNECT_REQUEST: handle of the new id, now owned by the client */
	uint32_t device; /* device of id (or of child) */
	uint32_t pad;
	struct urdma_abi_addr local;
	struct urdma_abi_addr peer;
	struct urdma_abi_cm_param param;
};

/* ---- shared memory: doorbells -------------------------------------------- */

#define URDMA_ABI_NUM_DOORBELLS 4096u /* doorbells of one worker */

/*
 * There is one section for each worker. To ring doorbell d the client, after publishing its producer
 * index, sets bit d%64 of bits[d/64], then bit d/64 of summary (both sequentially consistent
 * read-modify-writes, which it may omit if after publishing the index it finds both bits set), then loads
 * sleeping. If that is not 0 it exchanges it with 0 and, if it was still not 0, sends one byte on the
 * worker's kick socket with MSG_DONTWAIT. urdmad exchanges summary with 0, then each word named in it with
 * 0, then looks at the rings. Before it sleeps it stores sleeping = 1 and looks at summary once more. So
 * one side sees the other, and the worker never sleeps while a post waits.
 *
 * A client may poll in vain on the CPU that the worker, which is awake, needs, while sched_yield does not
 * run the worker because the two are in different scheduling groups. It then stores waits = 1, looks at
 * its queue once more, and waits on that word with futex(2), a fraction of a millisecond at most. After
 * urdmad has completed a request of the client or written to its memory, it exchanges waits with 0 and, if
 * it was not 0, wakes the client.
 */
struct urdma_abi_doorbells {
	uint64_t summary;
	/* written by the client: 1 + the CPU on which it polls an empty queue; 0: it does not poll. urdmad
	 * clears it */
	uint32_t poller;
	uint32_t waits;      /* see above */
	uint64_t pad0[6];
	uint32_t sleeping;   /* urdmad stores 1 or 0, the client exchanges it with 0 */
	/* written by urdmad. 1: call sched_yield after the first post since a poll, if core is the caller's
	 * CPU */
	uint32_t yield_post;
	uint32_t yield_poll; /* written by urdmad: call sched_yield after this many empty polls in a row; 0: never */
	uint32_t core;       /* written by urdmad: the CPU its worker runs on, numbered as by sched_getcpu() */
	/* written by urdmad: in a sched_yield shorter than this (ns) no other thread ran; 0: use 1000 */
	uint32_t yield_alone;
	uint32_t pad1[11];
	uint64_t bits[64];
	uint64_t pad2[432];  /* pads to 4096 bytes */
};

/* ---- shared memory: send and receive queues -------------------------------- */

/*
 * Send queue and receive queue have the same form and are independent. Indices wrap at 2^32; slot = index
 * & (entries - 1). The producer stores its index with release after writing the slot; the consumer loads
 * it with acquire. urdmad loads a client's index once for each look and keeps private copies of its own.
 * cons advances when a work request completes (with or without an entry in the completion queue), before
 * the completion can be seen.
 *
 * A completed slot is not yet free: as with hardware, a slot is free once the completion of its work
 * request, or of a later one in the same queue, was polled. The slot of an unsignaled send that succeeded,
 * which makes no completion, is free at once. So a program that does not poll runs out of slots before its
 * completion queue overruns; and if urdmad has died, the rings tell the client which work requests were
 * outstanding.
 *
 * When a queue pair fails, urdmad stores first_failed, then failed = 1 (release), then the indices of the
 * failed requests. The send with index first_failed and all later ones have completions, signaled or not.
 * Moving to RESET clears failed.
 */
struct urdma_abi_sq_ring {
	uint32_t prod; /* written by the client */
	uint32_t pad0[15];
	uint32_t cons;         /* written by urdmad */
	uint32_t failed;       /* written by urdmad: 1 or 0 */
	uint32_t first_failed; /* written by urdmad: an index; valid while failed is 1 */
	uint32_t pad1[13];
};

/*
 * A shared receive queue is a receive queue in a memfd of its own, with these differences. Its receives
 * are taken in order, but may complete in another order, because each queue pair completes its messages
 * independently. urdmad copies a slot when it takes the receive. So cons advances when a receive is taken,
 * not when it completes, and slots before cons are free. The index in a completion therefore says nothing
 * about slots. Receives that were posted but not taken when urdmad ends do not complete, as with hardware:
 * they belong to no queue pair. There is no doorbell: while a message waits for a receive, its queue pair
 * looks for one again within a millisecond.
 */
struct urdma_abi_rq_ring {
	uint32_t prod; /* written by the client */
	uint32_t pad0[15];
	uint32_t cons; /* written by urdmad */
	uint32_t pad1[15];
};

struct urdma_abi_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

/*
 * The operations, enum ibv_wr_opcode: O(name of the opcode, its completion's opcode, RDMAP message, access
 * right needed on the peer's memory, supported, reads local memory, writes it, may be inline, carries
 * immediate data, invalidates an STag, consumes a receive, atomic, also for type UD).
 *
 * supported: if not, posting it returns EOPNOTSUPP. invalidates: the peer's STag or, locally, our own.
 * consumes a receive: at the peer. atomic: uses compare_add and swap.
 */
#define URDMA_ABI_OPERATIONS(O) \
	O(RDMA_WRITE,           RDMA_WRITE,   WRITE,        REMOTE_WRITE,  1, 1, 0, 1, 0, 0, 0, 0, 0) \
	O(RDMA_WRITE_WITH_IMM,  RDMA_WRITE,   WRITE,        REMOTE_WRITE,  1, 1, 0, 1, 1, 0, 1, 0, 0) \
	O(SEND,                 SEND,         SEND,         NONE,          1, 1, 0, 1, 0, 0, 1, 0, 1) \
	O(SEND_WITH_IMM,        SEND,         SEND,         NONE,          1, 1, 0, 1, 1, 0, 1, 0, 1) \
	O(RDMA_READ,            RDMA_READ,    READ_REQUEST, REMOTE_READ,   1, 0, 1, 0, 0, 0, 0, 0, 0) \
	O(ATOMIC_CMP_AND_SWP,   COMP_SWAP,    ATOMIC,       REMOTE_ATOMIC, 1, 0, 1, 0, 0, 0, 0, 1, 0) \
	O(ATOMIC_FETCH_AND_ADD, FETCH_ADD,    ATOMIC,       REMOTE_ATOMIC, 1, 0, 1, 0, 0, 0, 0, 1, 0) \
	O(LOCAL_INV,            LOCAL_INV,    NONE,         NONE,          1, 0, 0, 0, 0, 1, 0, 0, 0) \
	O(BIND_MW,              BIND_MW,      NONE,         NONE,          1, 0, 0, 0, 0, 0, 0, 0, 0) \
	O(SEND_WITH_INV,        SEND,         SEND_INV,     NONE,          1, 1, 0, 1, 0, 1, 1, 0, 0) \
	O(TSO,                  TSO,          NONE,         NONE,          0, 1, 0, 0, 0, 0, 0, 0, 0) \
	O(ATOMIC_WRITE,         ATOMIC_WRITE, NONE,         REMOTE_WRITE,  0, 1, 0, 1, 0, 0, 0, 0, 0)

/*
 * A send queue slot: this head, then num_sge elements or inline_length bytes.
 *
 * LOCAL_INV: imm_or_stag is the window's rkey.
 *
 * BIND_MW: rkey is the window's new rkey, with the same upper 24 bits; imm_or_stag the region's lkey;
 * remote_addr and compare_add the window's address and length in bytes (0: a window of type 1 is unbound);
 * swap its enum ibv_access_flags.
 *
 * Queue pairs of type UD: remote_addr has the remote queue pair's number in its low 32 bits and the Q_Key
 * in its high ones; compare_add and swap are the 16 bytes of the destination's address in memory order
 * (IPv4 mapped into IPv6); rkey is the traffic class, which RoCEv2 packets carry.
 */
struct urdma_abi_sqe {
	uint64_t wr_id;
	uint32_t opcode;      /* enum ibv_wr_opcode */
	uint32_t flags;       /* enum ibv_send_flags */
	uint32_t imm_or_stag; /* imm_data (network order) or the STag to invalidate */
	uint32_t num_sge;
	uint32_t inline_length; /* bytes, if flags has IBV_SEND_INLINE */
	uint32_t rkey;
	uint64_t remote_addr;
	uint64_t compare_add;
	uint64_t swap;
	uint32_t remote_srqn; /* type XRC_SEND: the shared receive queue that receives the message */
	uint32_t pad;
	/* followed by struct urdma_abi_sge sge[] or uint8_t data[], at offset 64 */
};

/* A receive queue slot: this head, then num_sge elements. */
struct urdma_abi_rqe {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t pad;
	/* followed by struct urdma_abi_sge sge[], at offset 16 */
};

/* ---- shared memory: completion queue ring ---------------------------------- */

/*
 * arm: the client stores 1 (event for the next solicited or failed completion) or 2 (event for any next
 * completion), sequentially consistent, and then polls again; it never lowers 2 to 1. urdmad stores prod,
 * then loads arm (sequentially consistent); if it matches, it exchanges arm with 0 and sends one event. So
 * either urdmad sees the queue armed or the client's next poll sees the completion.
 *
 * A client that does not poll again would wait for ever for completions that came between its last poll
 * and the arming. Other adapters compare the consumer index given with the arming and send an event for
 * those at once, and programs rely on it. So if a client arms for any completion, has polled everything up
 * to told, and finds that more completions wait, it rings the doorbell of a queue pair that completes
 * here; urdmad then checks for them.
 */
struct urdma_abi_cq_ring {
	uint32_t prod; /* written by urdmad */
	uint32_t pad0[15];
	uint32_t cons; /* written by the client */
	uint32_t pad1[15];
	uint32_t arm;  /* written by the client, exchanged by urdmad */
	uint32_t told; /* written by urdmad: value of prod when it sent the last event */
	uint32_t pad2[14];
	uint32_t overrun; /* written by urdmad: 1 = completions were lost */
	uint32_t pad3[15];
};

/* vendor_err from here on: nothing has failed, the queue pair was ended in good order */
#define URDMA_ABI_ENDS_FIRST 0x0506u
#define URDMA_ABI_ENDS_LAST 0x0508u

struct urdma_abi_cqe {
	uint64_t wr_id;
	uint32_t status;      /* enum ibv_wc_status */
	uint32_t opcode;      /* enum ibv_wc_opcode */
	/* why it failed: a number of package reason; below 0x400 and from 0x1000 on the cause in a Terminate
	 * message (layer<<12|etype<<8|code); 0: no reason */
	uint32_t vendor_err;
	uint32_t byte_len;
	uint32_t imm_or_stag; /* depends on wc_flags */
	uint32_t qp_num;
	uint32_t src_qp;
	uint32_t wc_flags;    /* enum ibv_wc_flags */
	uint64_t timestamp;   /* ns, CLOCK_MONOTONIC, of the completion in urdmad */
	uint64_t user_handle; /* the queue pair's, from CREATE_QP */
	uint32_t index;       /* index of the work request in its queue: RQ if opcode has IBV_WC_RECV, else SQ */
	/* datagrams: the low 16 bits of the sender's address, as LIDs in docs/WIRE.md chapter 9; bit 16 is set
	 * if it came over IPv6 */
	uint32_t source_lid;
};

#pragma GCC diagnostic pop

#endif /* URDMA_ABI_H */
