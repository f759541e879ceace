/*
 * urdma_abi.h - everything urdmad and its client processes share.
 *
 * Three things cross the border:
 *   1. control messages on a SOCK_SEQPACKET Unix socket, one request and one
 *      response each, file descriptors as SCM_RIGHTS;
 *   2. event messages on socketpairs that urdmad hands out (completion
 *      channels, asynchronous events, rdma_cm event channels);
 *   3. rings in memfds that urdmad creates and seals, and a page of doorbells.
 *
 * All integers are in the machine's byte order unless a name ends in _be
 * (network byte order). All structures have fixed-width fields, named padding
 * and natural alignment, so C and Go lay them out alike: a structure that the compiler
 * would have to pad is an error. Go's side is generated from this file (go generate
 * ./verbs/abi), and a test holds its layout against gcc's.
 *
 * Numbers that libibverbs or librdmacm define (opcodes, states, access flags,
 * completion status, event types, attribute masks) have the same values here.
 */
#ifndef URDMA_ABI_H
#define URDMA_ABI_H

#include <stdint.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"

#define URDMA_ABI_VERSION 8u

#define URDMA_ABI_MAX_MESSAGE 4096u /* bytes of one control or event message */
#define URDMA_ABI_MAX_FDS (1u + URDMA_ABI_MAX_WORKERS) /* of one control message */
#define URDMA_ABI_MAX_WORKERS 64u
#define URDMA_ABI_MAX_PRIVATE 256u
#define URDMA_ABI_NO_HANDLE 0u /* no object has this handle */
#define URDMA_ABI_MAX_BATCH 16u /* requests in one BATCH */
#define URDMA_ABI_BATCH_MADE 0xffffff00u /* nor has any one from here on: see BATCH */
#define URDMA_ABI_NO_DEVICE 0xffffffffu

/*
 * The address of a device, or of one end of a connection. One of IPv6 that is
 * link-local has the index of the interface below the device as scope_id.
 */
struct urdma_abi_addr {
	uint16_t family;   /* AF_UNSPEC: no address; AF_INET; AF_INET6 */
	uint16_t port_be;  /* 0 where none is meant */
	uint32_t scope_id; /* as sin6_scope_id; 0 unless AF_INET6 */
	uint8_t addr[16];  /* network byte order; AF_INET: the first 4 bytes, the others 0 */
};

/* ---- control messages -------------------------------------------------- */

/* How a request may be sent, and what its answer means for the client. */
enum urdma_abi_way {
	URDMA_ABI_BATCHED = 0, /* by itself, or in a BATCH */
	URDMA_ABI_ALONE = 1,   /* not in a BATCH */
	URDMA_ABI_MOVES = 2,   /* not in a BATCH; its answer's descriptor is a queue's new memory: a client that can't take it ends the connection */
	URDMA_ABI_LOOKS = 3,   /* not in a BATCH; also before HELLO, or without it */
};

/*
 * The requests, one a row: R(number, name, object, request, answer, undo, way, call, text).
 *
 * object: what it is for. Unless that is the session, the request's first field is
 *   the object's handle. urdmad's handler is a method of the object; a request that LOOKS
 *   is answered by a feature that is attached (control.Server.Attach).
 * request, answer: structures of this file without urdma_abi_; header: nothing follows it.
 * undo: the request that destroys what it makes, which the answer begins with; or NONE.
 * way: enum urdma_abi_way.
 * call, text: what the messages of liburdma.so and of package verbs call it.
 *
 * From this table come enum urdma_abi_type, the library's tables (verbs/lib/session/requests.c),
 * and Go's, written by verbs/abi/generate.
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
	R(10, CREATE_CHANNEL, context, handle, handle, DESTROY_CHANNEL, BATCHED, "ibv_create_comp_channel", "creating a completion channel") \
	R(11, DESTROY_CHANNEL, channel, handle, header, NONE, BATCHED, "ibv_destroy_comp_channel", "destroying a completion channel") \
	R(12, CREATE_CQ, context, create_cq, cq_response, DESTROY_CQ, BATCHED, "ibv_create_cq", "creating a completion queue") \
	R(13, RESIZE_CQ, cq, resize_cq, cq_response, NONE, MOVES, "ibv_resize_cq", "resizing a completion queue") \
	R(14, DESTROY_CQ, cq, handle, header, NONE, BATCHED, "ibv_destroy_cq", "destroying a completion queue") \
	R(15, CREATE_QP, session, create_qp, qp_response, DESTROY_QP, BATCHED, "ibv_create_qp", "creating a queue pair") \
	R(16, MODIFY_QP, qp, modify_qp, query_qp_response, NONE, BATCHED, "ibv_modify_qp", "modifying a queue pair") \
	R(17, QUERY_QP, qp, handle, query_qp_response, NONE, BATCHED, "ibv_query_qp", "querying a queue pair") \
	R(18, DESTROY_QP, qp, handle, header, NONE, BATCHED, "ibv_destroy_qp", "destroying a queue pair") \
	R(19, CREATE_SRQ, pd, create_srq, srq_response, DESTROY_SRQ, BATCHED, "ibv_create_srq", "creating a shared receive queue") \
	R(20, MODIFY_SRQ, srq, modify_srq, header, NONE, BATCHED, "ibv_modify_srq", "modifying a shared receive queue") \
	R(21, QUERY_SRQ, srq, handle, query_srq_response, NONE, BATCHED, "ibv_query_srq", "querying a shared receive queue") \
	R(22, DESTROY_SRQ, srq, handle, header, NONE, BATCHED, "ibv_destroy_srq", "destroying a shared receive queue") \
	R(23, OPEN_XRCD, context, open_xrcd, handle, CLOSE_XRCD, ALONE, "ibv_open_xrcd", "opening an XRC domain") \
	R(24, CLOSE_XRCD, xrcd, handle, header, NONE, BATCHED, "ibv_close_xrcd", "closing an XRC domain") \
	R(25, OPEN_QP, xrcd, open_qp, handle, DESTROY_QP, BATCHED, "ibv_open_qp", "opening a queue pair") \
	R(26, RESIZE_SRQ, srq, modify_srq, srq_response, NONE, MOVES, "ibv_modify_srq", "resizing a shared receive queue") \
	R(27, BATCH, session, batch, batch_response, NONE, ALONE, "rdma_create_qp, rdma_destroy_qp", "carrying out several requests") \
	R(32, CM_CREATE_CHANNEL, session, header, handle, CM_DESTROY_CHANNEL, BATCHED, "rdma_create_event_channel", "creating an event channel") \
	R(33, CM_DESTROY_CHANNEL, cm_channel, handle, header, NONE, BATCHED, "rdma_destroy_event_channel", "destroying an event channel") \
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
	R(64, INSPECT, session, header, inspect_response, NONE, LOOKS, "urdma show", "looking inside") \
	R(65, CAPTURE, session, capture, capture_response, NONE, LOOKS, "urdma capture", "beginning a capture") \
	R(66, CAPTURE_STOP, session, header, header, NONE, LOOKS, "urdma capture", "ending a capture") \
	R(67, MARK, session, mark, header, NONE, LOOKS, "urdma trace --mark", "setting a bookmark") \
	R(68, ADMIN, session, admin, inspect_response, NONE, LOOKS, "urdma reload, log, end", "administering urdmad") \
	R(69, EXPLAIN, session, explain, explain_response, NONE, LOOKS, "urdma explain", "asking why something failed") \
	R(70, WARN, session, warn, explain_response, NONE, LOOKS, "URDMA_WARN", "warning of a mistake") \
	R(72, INJECT, session, inject, inject_response, NONE, LOOKS, "urdma inject", "injecting faults") \
	R(73, OPEN_UMAD, session, open_umad, header, NONE, LOOKS, "open of /dev/infiniband/umad", "opening a management device")

#define URDMA_ABI_ENUMERATOR(number, name, ...) URDMA_ABI_##name = number,

enum urdma_abi_type {
	URDMA_ABI_NONE = 0, /* no request */
	URDMA_ABI_REQUESTS(URDMA_ABI_ENUMERATOR)
};

/*
 * Head of every control message. A response repeats type and seq; status is 0
 * or an errno value, and then the response is this header alone.
 */
struct urdma_abi_header {
	uint32_t type;   /* enum urdma_abi_type */
	uint32_t length; /* bytes of the whole message, this header included */
	uint32_t seq;    /* chosen by the client */
	int32_t status;  /* request: 0 */
};

/*
 * HELLO is the first message. Descriptor 0: the client's own /proc/self/mem,
 * opened read-write (may be missing: then only shared memory can be
 * registered). Any version mismatch is answered with EPROTO and a
 * hello_response that says urdmad's version.
 */
struct urdma_abi_hello {
	struct urdma_abi_header header;
	uint32_t abi_version;
	uint32_t pid;       /* as the client sees itself; for display only */
	char command[64];   /* program name, NUL-terminated; for display only */
	uint32_t flags;     /* URDMA_ABI_HELLO_* */
};

/*
 * The memfds that CREATE_CQ and CREATE_QP answer with hold many queues. Each has a
 * number, from 1, that no other of the session has had. Its descriptor comes with the
 * first queue in it alone, and urdmad forgets it when the last was destroyed: so does
 * the client. A queue may still get a memfd of its own, whose number is 0.
 */
#define URDMA_ABI_HELLO_POOL 1u

/*
 * Descriptor 0: doorbell memfd, doorbell_bytes long. Descriptors 1 to workers:
 * the kick socket of each worker, in the order of their doorbell sections. There
 * is one worker so far.
 */
struct urdma_abi_hello_response {
	struct urdma_abi_header header;
	uint32_t abi_version;
	uint32_t num_devices;    /* device numbers are 0 .. num_devices-1; each is of a port, see urdma_abi_device */
	uint32_t doorbell_bytes; /* workers * sizeof(struct urdma_abi_doorbells) */
	uint32_t workers;        /* 1 to URDMA_ABI_MAX_WORKERS */
	char sysfs_path[256];    /* what ibv_get_sysfs_path() should return */
};

enum urdma_abi_transport {
	URDMA_ABI_TRANSPORT_IWARP = 0,
	URDMA_ABI_TRANSPORT_IB = 1,
	URDMA_ABI_TRANSPORT_ROCE = 2,
};

#define URDMA_ABI_TRANSPORT_DEFAULT 0xffffffffu /* the one that urdma.json says */

/* QUERY_DEVICE: request. Response: struct urdma_abi_device. */
struct urdma_abi_query_device {
	struct urdma_abi_header header;
	uint32_t device;
	uint32_t transport; /* as which the caller shows it: enum urdma_abi_transport, or TRANSPORT_DEFAULT */
};

/*
 * A device of several ports has a number for each, one behind the other: OPEN_DEVICE takes any of
 * them and opens the whole, rdma_cm's messages name the port by it. What a program may have is of the device, the
 * addresses, limits of packets and the link are of the port.
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
	uint32_t transport;        /* enum urdma_abi_transport; from here to lid: what a device shown so has */
	uint32_t node_type;        /* enum ibv_node_type */
	uint32_t transport_type;   /* enum ibv_transport_type */
	uint32_t link_layer;       /* IBV_LINK_LAYER_* */
	uint32_t gid_type;         /* enum ibv_gid_type */
	uint8_t gid[16];           /* entry 0 of the port's table, the only one */
	uint32_t lid;              /* link layer InfiniBand: 0 if the address gives none; else 0 */
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
	uint32_t version;          /* urdma's version, major<<16|minor<<8|patch: fw_ver */
	uint32_t max_datagram;     /* bytes of the longest message of a queue pair of type UD */
	uint64_t max_mr_size;      /* bytes */
	uint64_t max_msg;          /* bytes of the longest message */
	uint32_t max_srq;
	uint32_t max_srq_wr;
	uint32_t max_srq_sge;
	uint32_t max_mw;
	uint32_t port_num;         /* of the port on its device, from 1 */
	uint32_t num_ports;        /* of the device */
};

/* OPEN_DEVICE. Response: urdma_abi_handle, descriptor 0: async event socket. */
struct urdma_abi_open_device {
	struct urdma_abi_header header;
	uint32_t device;
	uint32_t pad;
};

/*
 * One object's handle. A request that names the object and nothing else:
 * CLOSE_DEVICE, DEALLOC_PD, DEREG_MR (EBUSY while a window is bound to it), DEALLOC_MW,
 * DESTROY_*, QUERY_QP, CREATE_CHANNEL and ALLOC_PD (the context's), CM_DESTROY_ID, CM_DESTROY_CHANNEL, CM_DISCONNECT,
 * CM_WAKE_CHANNEL (sends an event of no id, URDMA_ABI_CM_WAKE: whoever waits for
 * the channel's socket finds it readable); the
 * response is the header alone unless said otherwise. And the response of
 * ALLOC_PD, OPEN_DEVICE, CREATE_CHANNEL (descriptor 0: the channel's socket),
 * CM_CREATE_CHANNEL (likewise), CM_CREATE_ID, ADD_FILE.
 */
struct urdma_abi_handle {
	struct urdma_abi_header header;
	uint32_t handle;
	uint32_t pad;
};

/*
 * BATCH: requests, each whole with its header, one behind the other, which urdmad
 * carries out in order until it refuses one. A handle in them may be BATCH_MADE + i:
 * that of what the i-th request, from 0, has made.
 *
 * A status in the header of the answer means that the message is wrong, and that
 * nothing was done.
 */
struct urdma_abi_batch {
	struct urdma_abi_header header;
	uint32_t count; /* 0 to URDMA_ABI_MAX_BATCH */
	uint32_t pad;
	/* the requests */
};

struct urdma_abi_batch_response {
	struct urdma_abi_header header;
	uint32_t done;   /* requests carried out: answered below, in order */
	int32_t refused; /* errno value of the one after them; 0: there is none */
	uint8_t fds[URDMA_ABI_MAX_BATCH]; /* how many of the descriptors belong to each answer */
	/* the answers, each whole with its header, one behind the other */
};

/* ADD_FILE: a memfd with registered memory in it. Descriptor 0: the memfd,
 * which must be sealed with F_SEAL_SHRINK. Request: header alone.
 * Response: urdma_abi_handle. */

enum urdma_abi_path {
	URDMA_ABI_PATH_SHARED = 0,   /* pages of a file both sides map */
	URDMA_ABI_PATH_FALLBACK = 1, /* urdmad reads and writes /proc/self/mem */
	URDMA_ABI_PATH_NULL = 2,     /* no memory: reads give 0, writes are lost; all but pd is 0, and peers can't name it */
	URDMA_ABI_PATH_FILE = 3,     /* as SHARED, pages of a file that the program itself maps shared. Descriptor 0:
	                              * the file, on tmpfs (memfd, /dev/shm, System V) or hugetlbfs, or a dma-buf of
	                              * udmabuf, open for reading and writing */
};

struct urdma_abi_reg_mr {
	struct urdma_abi_header header;
	uint32_t pd;
	uint32_t access;      /* enum ibv_access_flags */
	uint64_t addr;        /* in the client's address space */
	uint64_t length;      /* bytes */
	uint64_t iova;        /* address that peers and work requests use */
	uint32_t path;        /* enum urdma_abi_path */
	uint32_t file;        /* SHARED: handle of ADD_FILE */
	uint64_t file_offset; /* SHARED, FILE: where addr lies in the file, bytes */
	uint32_t replaces;    /* handle of the region that this one takes the place and the keys of; 0: none */
	uint32_t pad;
	uint64_t inode;       /* FILE: of the file that is meant; the descriptor is the program's, who may close it */
	uint32_t major;       /* likewise, its device */
	uint32_t minor;
	char why[80];         /* FALLBACK: the reason, up to the first 0 */
};

struct urdma_abi_reg_mr_response {
	struct urdma_abi_header header;
	uint32_t handle;
	uint32_t lkey;
	uint32_t rkey;
	uint32_t pad;
};

/* ATTACH_MCAST, DETACH_MCAST: a queue pair of type UD and a group. */
struct urdma_abi_mcast {
	struct urdma_abi_header header;
	uint32_t qp;
	uint32_t pad;
	struct urdma_abi_addr group;
};

/* A memory window, which work requests bind and unbind (struct urdma_abi_sqe). */
struct urdma_abi_alloc_mw {
	struct urdma_abi_header header;
	uint32_t pd;
	uint32_t type; /* enum ibv_mw_type */
};

struct urdma_abi_alloc_mw_response {
	struct urdma_abi_header header;
	uint32_t handle;
	uint32_t rkey; /* names nothing yet; the upper 24 bits are the window's for its life */
};

struct urdma_abi_create_cq {
	struct urdma_abi_header header;
	uint32_t context;
	uint32_t channel; /* URDMA_ABI_NO_HANDLE: none */
	uint32_t cqe;     /* entries wanted, at least 1 */
	uint32_t comp_vector; /* below the device's num_comp_vectors, else EINVAL */
};

/* RESIZE_CQ: the client must have stopped polling; completions not yet polled
 * are moved to the new ring by urdmad. Response as for CREATE_CQ. */
struct urdma_abi_resize_cq {
	struct urdma_abi_header header;
	uint32_t handle;
	uint32_t cqe;
};

/* Descriptor 0, unless a response before had it: the ring's memfd: struct
 * urdma_abi_cq_ring, then entries. */
struct urdma_abi_cq_response {
	struct urdma_abi_header header;
	uint32_t handle;
	uint32_t entries;       /* power of two */
	uint32_t entries_offset;/* bytes from the ring's start to entry 0 */
	uint32_t bytes;         /* of the memfd */
	uint32_t memfd;         /* its number; 0: it is this queue's alone */
	uint32_t ring_offset;   /* bytes from the memfd's start to the ring's, a multiple of 64 */
};

struct urdma_abi_qp_cap {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline; /* bytes */
};

/* What a type of queue pair to come will use must be 0 until then: EOPNOTSUPP. */
struct urdma_abi_create_qp {
	struct urdma_abi_header header;
	uint32_t pd;
	uint32_t qp_type;   /* enum ibv_qp_type */
	uint32_t send_cq;
	uint32_t recv_cq;   /* URDMA_ABI_NO_HANDLE of type XRC_SEND */
	uint32_t srq;          /* or URDMA_ABI_NO_HANDLE; with one, cap's receives must be 0 */
	uint32_t xrcd;         /* of type XRC_RECV, which has no pd and no queues; else URDMA_ABI_NO_HANDLE */
	uint32_t create_flags; /* enum ibv_qp_create_flags; 0 */
	uint32_t source_qpn;   /* 0: urdmad chooses */
	uint32_t sq_sig_all;
	struct urdma_abi_qp_cap cap;
	uint64_t user_handle; /* chosen by the client; comes back in every completion */
};

/*
 * Where a send or receive queue lies in its memfd: its head, struct
 * urdma_abi_sq_ring or struct urdma_abi_rq_ring, and its slots. All 0: there is
 * no such queue.
 */
struct urdma_abi_queue_layout {
	uint32_t head_offset;  /* bytes, a multiple of 64 */
	uint32_t slots_offset; /* bytes, a multiple of 64 */
	uint32_t entries;      /* power of two */
	uint32_t stride;       /* bytes of a slot */
};

/* Descriptor 0, unless a response before had it: the memfd of the queues. One that was asked to hold no work
 * requests is absent; a queue pair of type XRC_RECV has neither, and no memfd. */
struct urdma_abi_qp_response {
	struct urdma_abi_header header;
	uint32_t handle;
	uint32_t qpn;
	struct urdma_abi_qp_cap cap; /* what was given, at least what was asked */
	struct urdma_abi_queue_layout sq; /* entries >= cap.max_send_wr */
	struct urdma_abi_queue_layout rq; /* entries >= cap.max_recv_wr */
	uint32_t bytes;       /* of the memfd */
	uint32_t worker;      /* which doorbell section and kick socket */
	uint32_t doorbell;    /* which doorbell bit, 0..4095 */
	uint32_t memfd;       /* its number; 0: it is this queue pair's alone */
};

/* Response: urdma_abi_srq_response. */
struct urdma_abi_create_srq {
	struct urdma_abi_header header;
	uint32_t pd;
	uint32_t max_wr; /* at least 1 */
	uint32_t max_sge;
	uint32_t srq_limit;
	uint32_t srq_type; /* enum ibv_srq_type: 0 (BASIC) or 1 (XRC) */
	uint32_t xrcd;     /* of type XRC, else URDMA_ABI_NO_HANDLE; likewise cq */
	uint32_t cq;       /* where its receives complete, with a user_handle of 0 */
	uint32_t pad;
};

/* Descriptor 0: the memfd of the queue. */
struct urdma_abi_srq_response {
	struct urdma_abi_header header;
	uint32_t handle;
	uint32_t max_wr; /* what was given */
	uint32_t max_sge;
	struct urdma_abi_queue_layout rq; /* entries >= max_wr */
	uint32_t bytes; /* of the memfd */
	uint32_t srq_num; /* of type XRC, else 0 */
	uint32_t pad;
};

/*
 * Descriptor 0, which may be missing: a file, of any kind. All who bring the same
 * one (by inode) share the domain; without one it is the client's own. EAGAIN:
 * there is none, and oflags has no O_CREAT; EINVAL: there is one, and it has
 * O_EXCL. Response: urdma_abi_handle.
 */
struct urdma_abi_open_xrcd {
	struct urdma_abi_header header;
	uint32_t context;
	uint32_t oflags; /* O_CREAT, O_EXCL */
};

/*
 * A further reference to a queue pair of type XRC_RECV: it lives until the last
 * was destroyed. Response: urdma_abi_handle.
 */
struct urdma_abi_open_qp {
	struct urdma_abi_header header;
	uint32_t xrcd;
	uint32_t qp_num;
};

/*
 * MODIFY_SRQ sets the limit. RESIZE_SRQ changes the size, and the limit if mask has
 * that: the client must have stopped posting; urdmad moves the receives not yet taken
 * to a new ring, where they have the same indices. EINVAL: the new size is below what
 * is posted, or below the limit.
 */
struct urdma_abi_modify_srq {
	struct urdma_abi_header header;
	uint32_t handle;
	uint32_t mask;   /* enum ibv_srq_attr_mask */
	uint32_t max_wr; /* of RESIZE_SRQ */
	uint32_t srq_limit; /* fewer receives than this raise one event; 0: none does */
};

/* Response of QUERY_SRQ (request: urdma_abi_handle). */
struct urdma_abi_query_srq_response {
	struct urdma_abi_header header;
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t srq_limit; /* 0 also after the event */
	uint32_t pad;
};

/* The part of struct ibv_qp_attr that crosses. Masks are enum ibv_qp_attr_mask. */
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
	uint32_t flow_label; /* from here to ah_port_num: of the address handle; kept, and all but traffic_class of no effect */
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
	uint32_t unready;    /* 1: a message came when no receive had ever been posted */
	uint32_t peer_reads; /* Reads and atomics that the peer of a connection by number serves at once; UINT32_MAX: not known */
};

/* ---- looking inside ------------------------------------------------------ */

/*
 * INSPECT: request: the header alone. It and CAPTURE may come before HELLO, or
 * without it. Descriptor 0 of the response: a sealed memfd
 * that holds a snapshot of urdmad's objects as JSON (package inspect). A
 * caller with urdmad's uid, or root, sees all; others see what belongs to
 * clients of their own uid.
 */
struct urdma_abi_inspect_response {
	struct urdma_abi_header header;
	uint64_t bytes; /* of JSON in the memfd */
};

/*
 * OPEN_UMAD: from the response on the connection is an open /dev/infiniband/umadN, or
 * with issm issmN, of device number N. The client sends what the program writes and is
 * sent what it reads, a message each: struct ib_user_mad_hdr and a MAD (the kernel's
 * include/uapi/rdma/ib_user_mad.h). A message that brings a descriptor, a socket, is
 * an ioctl, and is answered there. EACCES: the caller has neither urdmad's uid nor root's.
 */
struct urdma_abi_open_umad {
	struct urdma_abi_header header;
	uint32_t device;
	uint32_t issm; /* 0 or 1 */
};

struct urdma_abi_umad_ioctl {
	uint32_t request;      /* as given to ioctl(2); the answer: 0 or an errno value */
	uint8_t argument[44];  /* what the argument points to, as changed in the answer */
};

/*
 * CAPTURE: copies of the frames of urdmad's ports, from the response on until
 * CAPTURE_STOP (request and response: the header alone; when it is answered the
 * ring has all there will be) or the end of the session, which has one capture
 * at a time. Descriptor 0 of the response: a sealed memfd that holds a
 * urdma_abi_capture_ring and behind it, at data_offset, data_bytes of records.
 *
 * A field of the filter that is 0 (device: NO_DEVICE; host: AF_UNSPEC, and
 * apart from it its port 0) admits everything; a frame has to pass them all. Host
 * is either end of a connection, its port number that of rdma_cm or that of UDP. A caller with urdmad's uid, or root,
 * is given every frame that passes; others those of connections and listeners
 * of clients of their own uid.
 *
 * Connections between two queue pairs of one urdmad put no frame on a wire.
 * For them urdmad makes up the frames a wire would carry, loss excluded; their
 * device is the number of ports plus that of the port.
 */
#define URDMA_ABI_CAPTURE_ALL 1u    /* flags: also what is none of urdmad's business */
#define URDMA_ABI_CAPTURE_EVENTS 2u /* flags: also events of programs, struct urdma_abi_trace_event */
#define URDMA_ABI_CAPTURE_CHANGES 4u /* flags, with EVENTS: those of clients, states, links, asynchronous and of rdma_cm alone, and no frames */
#define URDMA_ABI_CAPTURE_PAST 8u   /* flags: the events that urdmad's flight recorder has, and nothing else; the ring is complete */

struct urdma_abi_capture {
	struct urdma_abi_header header;
	uint32_t ring_bytes; /* wanted; the response says how many it is */
	uint32_t snap_bytes; /* bytes kept of each frame; 0: all */
	uint32_t device;
	uint32_t qpn;
	uint32_t pid; /* of the client, as urdmad sees it */
	uint32_t flags;
	struct urdma_abi_addr host;
};

struct urdma_abi_capture_response {
	struct urdma_abi_header header;
	uint32_t data_offset;
	uint32_t data_bytes; /* a power of two */
};

/*
 * A ring of bytes with one writer, urdmad. head and tail count bytes since the
 * beginning and don't wrap; a byte's place is its count modulo data_bytes.
 * urdmad stores head after the record (release) and loads tail; the reader the
 * other way round. A frame that finds no room is lost and counted.
 */
struct urdma_abi_capture_ring {
	uint64_t head; /* written by urdmad */
	uint64_t lost; /* frames, by urdmad, before head */
	uint64_t spent_ns; /* by urdmad's worker on the capture */
	uint64_t pad0[5];
	uint64_t tail; /* written by the reader */
	uint64_t pad1[7];
};

enum urdma_abi_capture_kind {
	URDMA_ABI_CAPTURE_FRAME = 1,
	URDMA_ABI_CAPTURE_SKIP = 2, /* nothing: the next record begins at the ring's start */
	URDMA_ABI_CAPTURE_EVENT = 3, /* a struct urdma_abi_trace_event in the frame's place, and perhaps a text; the note of a bookmark is its text */
};

enum urdma_abi_capture_direction {
	URDMA_ABI_CAPTURE_UNKNOWN = 0,
	URDMA_ABI_CAPTURE_IN = 1,
	URDMA_ABI_CAPTURE_OUT = 2,
};

/*
 * Head of a record; the frame's kept bytes follow it, then the note, a text
 * that says what urdmad made of a frame it did not simply take. Records are
 * contiguous and begin at multiples of 8. A SKIP has kind and bytes alone and
 * may end before this head would.
 */
struct urdma_abi_capture_record {
	uint32_t bytes; /* of the record, this head included; a multiple of 8 */
	uint16_t kind;
	uint16_t direction;
	uint64_t time_ns;     /* since 1970-01-01 UTC */
	uint32_t frame_bytes; /* on the wire, from the Ethernet header on */
	uint32_t kept_bytes;
	uint32_t note_bytes;
	uint32_t device;
	uint32_t qpn;       /* our queue pair that a frame belongs to, of one that urdmad made up its sender; 0: none that is known */
	uint32_t other_qpn; /* of a frame that urdmad made up: its receiver */
};

enum urdma_abi_trace_kind {
	URDMA_ABI_TRACE_CALL = 1,       /* a request was answered; code: enum urdma_abi_type, status: errno */
	URDMA_ABI_TRACE_SEND = 2,       /* a send was taken; code: enum ibv_wr_opcode, status: enum ibv_wc_status it fails with */
	URDMA_ABI_TRACE_RECEIVE = 3,    /* a message begins to fill a receive, which has room for length bytes */
	URDMA_ABI_TRACE_COMPLETION = 4, /* code: enum ibv_wc_opcode, status: enum ibv_wc_status */
	URDMA_ABI_TRACE_STATE = 5,      /* of a queue pair; code: enum ibv_qp_state */
	URDMA_ABI_TRACE_ASYNC = 6,      /* code: enum ibv_event_type */
	URDMA_ABI_TRACE_RESENT = 7,     /* a lost segment goes again; code: its PSN */
	URDMA_ABI_TRACE_NOT_READY = 8,  /* a message begins to wait for a receive */
	URDMA_ABI_TRACE_MARK = 9,       /* a bookmark */
	URDMA_ABI_TRACE_CM = 10,        /* code: enum rdma_cm_event_type, status: errno, or reason of a rejection */
	URDMA_ABI_TRACE_CLIENT = 11,    /* came (code 1) or has gone (0); the note is its command */
	URDMA_ABI_TRACE_LINK = 12,      /* of a port came up (code 1) or went down (0); the note is its name */
	URDMA_ABI_TRACE_REASON = 13,    /* why something failed; code: as in vendor_err, status: enum ibv_wc_status */
	URDMA_ABI_TRACE_PLACED = 14,    /* length bytes of a message were written to memory; code: enum ibv_wc_opcode; wr_id: of the receive or the Read; of a Write the address */
};

/* An event of a program. Fields that its kind does not name are 0. A text may follow, of a reason. */
struct urdma_abi_trace_event {
	uint32_t kind; /* enum urdma_abi_trace_kind */
	uint32_t pid;
	uint32_t qpn;
	uint32_t code;
	uint32_t status;
	uint32_t length; /* bytes */
	uint64_t wr_id;
	uint64_t duration_ns; /* of a call */
};

/* MARK: a bookmark for every capture that has events. Longer texts are cut. */
#define URDMA_ABI_MARK_BYTES 96u

struct urdma_abi_mark {
	struct urdma_abi_header header;
	char text[URDMA_ABI_MARK_BYTES]; /* up to the first 0 */
};

/*
 * ADMIN: what a user has urdmad do. Descriptor 0 of the response: a sealed memfd that
 * holds a text, what was done, of so many bytes. RELOAD and LOG_LEVEL are for urdmad's
 * user and root, EPERM; END_QP and END_CLIENT for who may see the object, ENOENT.
 */
enum urdma_abi_admin_op {
	URDMA_ABI_ADMIN_RELOAD = 1,     /* the configuration, as SIGHUP does */
	URDMA_ABI_ADMIN_LOG_LEVEL = 2,  /* text: as log_level in urdma.json */
	URDMA_ABI_ADMIN_END_QP = 3,     /* object: its number; it moves to ERR with IBV_EVENT_QP_FATAL */
	URDMA_ABI_ADMIN_END_CLIENT = 4, /* object: its id in a snapshot; as if urdmad were gone for it */
};

struct urdma_abi_admin {
	struct urdma_abi_header header;
	uint32_t op; /* enum urdma_abi_admin_op */
	uint32_t pad;
	uint64_t object;
	char text[16]; /* up to the first 0 */
};

/*
 * EXPLAIN: why something of the session's failed: the last time with a number (as in
 * vendor_err), and of a queue pair unless qpn is 0. The text has some lines.
 */
#define URDMA_ABI_EXPLAIN_REFUSED 0x0600u   /* number: a request was refused with the errno that is added */
#define URDMA_ABI_EXPLAIN_EVENT 0x0700u     /* number: the enum ibv_event_type that is added came */
#define URDMA_ABI_EXPLAIN_CONNECTION 0x0580u /* number: no connection came to be */

struct urdma_abi_explain {
	struct urdma_abi_header header;
	uint32_t number;
	uint32_t qpn;
};

struct urdma_abi_explain_response {
	struct urdma_abi_header header;
	char text[2048]; /* up to the first 0 */
};

/*
 * WARN: the program makes a mistake that has not failed yet (URDMA_WARN). The answer is
 * what URDMA_WARN writes to stderr, some lines.
 */
enum urdma_abi_pitfall {
	URDMA_ABI_PITFALL_UNSIGNALED = 0x0801,    /* as many sends as the queue holds in a row, none signaled */
	URDMA_ABI_PITFALL_SMALL_CQ = 0x0802,      /* more may complete than the queue holds */
	URDMA_ABI_PITFALL_LOST_WAKEUP = 0x0803,   /* armed, and waited for the event without a poll between */
	URDMA_ABI_PITFALL_UNACKNOWLEDGED = 0x0804, /* destroyed before its events were acknowledged */
	URDMA_ABI_PITFALL_AFTER_ERROR = 0x0805,   /* posts go on after an error was polled */
	URDMA_ABI_PITFALL_TIMEOUT = 0x0806,       /* of 0, which is for ever */
	URDMA_ABI_PITFALL_RETRY = 0x0807,         /* of 0 */
	URDMA_ABI_PITFALL_DEREGISTERED = 0x0808,  /* while posted */
	URDMA_ABI_PITFALL_NOT_ARMED = 0x0809,     /* waits for the event of a queue that is not armed */
	URDMA_ABI_PITFALL_OVERLAP = 0x080a,       /* of posted receives */
	URDMA_ABI_PITFALL_DESTROYED = 0x080b,     /* a queue pair with sends under way */
	URDMA_ABI_PITFALL_UNREAD = 0x080c,        /* an error that nobody has polled */
	URDMA_ABI_PITFALL_INLINE = 0x080d,        /* longer than max_inline_data */
	URDMA_ABI_PITFALL_SGES = 0x080e,          /* more than max_send_sge, max_recv_sge */
	URDMA_ABI_PITFALL_STATE = 0x080f,         /* posted too early */
	URDMA_ABI_PITFALL_FULL = 0x0810,          /* ENOMEM: the queue */
	URDMA_ABI_PITFALL_ATOMIC = 0x0811,        /* not 8 bytes, or not aligned */
	URDMA_ABI_PITFALL_EMPTY_SGE = 0x0812,     /* of length 0 */
	URDMA_ABI_PITFALL_GRH = 0x0813,           /* a receive of type UD without room for one */
	URDMA_ABI_PITFALL_PSN = 0x0814,           /* 0 both ways */
	URDMA_ABI_PITFALL_UNREADY = 0x0815,       /* a message came before a receive was posted */
	URDMA_ABI_PITFALL_RD_ATOMIC = 0x0816,     /* more than the peer serves */
	URDMA_ABI_PITFALL_PRIVATE = 0x0817,       /* data longer than InfiniBand carries */
	URDMA_ABI_PITFALL_REGISTERS = 0x0818,     /* and deregisters in the data path */
	URDMA_ABI_PITFALL_TINY = 0x0819,          /* regions, and many */
	URDMA_ABI_PITFALL_AH_DOMAIN = 0x081a,     /* an address handle of another protection domain */
	URDMA_ABI_PITFALL_FORKED = 0x081b,        /* an object of the parent's is used in a child */
	URDMA_ABI_PITFALL_FALLBACK = 0x081c,      /* memory that urdmad can't map, and much of it */
	URDMA_ABI_PITFALL_NO_RECEIVE = 0x081d,    /* a send waits for seconds, with rnr_retry 7 for ever */
};

#define URDMA_ABI_WARN_STATUS 86u /* exit status of a program that URDMA_WARN=error ends */

struct urdma_abi_warn {
	struct urdma_abi_header header;
	uint32_t number; /* enum urdma_abi_pitfall */
	uint32_t qpn;    /* or 0 */
	char text[512];  /* where it is and what is wrong, up to the first 0 */
};

/*
 * INJECT: what is to go wrong on purpose, as text (package inject). A caller with urdmad's
 * uid, or root, does that to all; others to clients of their own uid. EPERM: not the
 * caller's to break; ENOENT: no such object; EINVAL: the text; EDQUOT: too many rules.
 */
#define URDMA_ABI_INJECT_OWN 1u /* flags: for this session's client alone, and gone with it */
#define URDMA_ABI_INJECT_BYTES 3072u
#define URDMA_ABI_INJECT_POSTS 8u

struct urdma_abi_inject {
	struct urdma_abi_header header;
	uint32_t flags; /* URDMA_ABI_INJECT_* */
	uint32_t pad;
	char text[URDMA_ABI_INJECT_BYTES]; /* up to the first 0 */
};

/* What the library refuses by itself: posts, of which urdmad hears too late. */
struct urdma_abi_post_fault {
	uint32_t call;   /* 0: ibv_post_send, 1: ibv_post_recv, 2: ibv_post_srq_recv */
	uint32_t error;  /* errno value */
	uint64_t nth;    /* the first call that it refuses, from 1 */
	uint64_t count;  /* how many it refuses; 0: all */
	uint64_t chance; /* that one of them is, of 2^32; 0: each */
	uint64_t seed;
};

/* What strict has (urdma exec --strict); package inject names them. */
#define URDMA_ABI_STRICT_GARBAGE 0x1u     /* the library's: fields of a failed completion */
#define URDMA_ABI_STRICT_SLOTS 0x2u       /* the library's: a send's slot is free once a completion was polled */
#define URDMA_ABI_STRICT_LATE 0x4u        /* the library's: polls that find nothing yet */
#define URDMA_ABI_STRICT_SRQ_ORDER 0x100u /* urdmad's, as those below */
#define URDMA_ABI_STRICT_INLINE 0x200u
#define URDMA_ABI_STRICT_RNR 0x400u
#define URDMA_ABI_STRICT_SPURIOUS 0x800u
#define URDMA_ABI_STRICT_WRITE_ORDER 0x1000u
#define URDMA_ABI_STRICT_ATTRIBUTES 0x2000u
#define URDMA_ABI_STRICT_REUSE 0x4000u

struct urdma_abi_inject_response {
	struct urdma_abi_header header;
	uint32_t number; /* of the first rule that was made; 0: none */
	uint32_t strict; /* URDMA_ABI_STRICT_*; of INJECT_OWN */
	uint64_t strict_seed;
	uint32_t pad;
	uint32_t posts;  /* of post, those that count; of INJECT_OWN */
	struct urdma_abi_post_fault post[URDMA_ABI_INJECT_POSTS];
};

/* ---- rdma_cm ------------------------------------------------------------ */

struct urdma_abi_cm_create_id {
	struct urdma_abi_header header;
	uint32_t channel; /* handle of CM_CREATE_CHANNEL */
	uint32_t ps;      /* enum rdma_port_space */
};

/* CM_BIND: port 0 chooses one; 0.0.0.0, :: and loopback addresses bind to every
 * port of urdmad of that family (:: to both, unless option AFONLY was set). */
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
	uint32_t device;             /* URDMA_ABI_NO_DEVICE while bound to any */
	uint32_t pad;
};

/* CM_RESOLVE_ADDR: binds and answers at once; the event ADDR_RESOLVED or
 * ADDR_ERROR follows. src AF_UNSPEC or 0.0.0.0: urdmad chooses. */
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
	uint32_t qp_num;              /* when qp is NO_HANDLE: for display; with datagrams what the peer is told */
	uint32_t qkey;                /* with datagrams */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;
	uint16_t private_data_len;    /* 0..URDMA_ABI_MAX_PRIVATE */
	uint8_t private_data[URDMA_ABI_MAX_PRIVATE];
};

/* CM_CONNECT, CM_ACCEPT, CM_REJECT (only the private data counts). */
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

/* On a completion channel: the completion queue that got a completion. A
 * handle that the client no longer knows is a late event: drop it. */
struct urdma_abi_comp_event {
	uint32_t cq;
	uint32_t pad;
};

/* On a context's asynchronous event socket. */
struct urdma_abi_async_event {
	uint32_t event_type; /* enum ibv_event_type */
	uint32_t handle;     /* of the CQ, QP or SRQ concerned; port number for port events */
};

#define URDMA_ABI_CM_WAKE 0xffffffffu /* event: asked for by CM_WAKE_CHANNEL */

/* On an rdma_cm event channel. */
struct urdma_abi_cm_event {
	uint32_t event;  /* enum rdma_cm_event_type, or CM_WAKE */
	int32_t status;  /* 0, -errno, or the reason of a refusal: of a REJ, or a SIDR_REP's status */
	uint32_t id;     /* the id concerned; CONNECT_REQUEST: the listening id */
	uint32_t child;  /* CONNECT_REQUEST: handle of the new id, which the client owns now */
	uint32_t device; /* of id (or of child) */
	uint32_t pad;
	struct urdma_abi_addr local;
	struct urdma_abi_addr peer;
	struct urdma_abi_cm_param param;
};

/* ---- shared memory: doorbells -------------------------------------------- */

#define URDMA_ABI_NUM_DOORBELLS 4096u /* of one worker */

/*
 * One section a worker. To ring doorbell d the client, after publishing its
 * producer index: sets bit d%64 of bits[d/64], then bit d/64 of summary (both
 * sequentially consistent read-modify-writes, which it may leave out if, the index
 * published, it finds both bits set), then loads sleeping; if it is
 * not 0, exchanges it with 0 and, if it was still not 0, sends one byte on the
 * worker's kick socket with MSG_DONTWAIT. urdmad exchanges
 * summary with 0, then each named word with 0, then looks at the rings; before
 * it sleeps it stores sleeping = 1 and looks at summary once more. One side
 * therefore sees the other: no post is slept over.
 *
 * A client that polls in vain on the CPU that the awake worker needs, and whose
 * sched_yield finds nobody (the two are in different scheduling groups), stores
 * waits = 1, looks at its queue once more, and waits for that word in futex(2), a
 * fraction of a millisecond at most. urdmad, having completed something of the
 * client's or written to its memory, exchanges waits with 0 and, if it was not 0,
 * wakes it.
 */
struct urdma_abi_doorbells {
	uint64_t summary;
	uint32_t poller;     /* client writes: 1 + the CPU on which it polls an empty queue; 0 = it does not. urdmad takes it away */
	uint32_t waits;      /* see below */
	uint64_t pad0[6];
	uint32_t sleeping;   /* urdmad stores 1 or 0, the client exchanges with 0 */
	uint32_t yield_post; /* urdmad writes: 1 = sched_yield after the first post since a poll, if core is the caller's */
	uint32_t yield_poll; /* urdmad writes: sched_yield after this many empty polls in a row; 0 never */
	uint32_t core;       /* urdmad writes: the CPU its worker runs on, as sched_getcpu() counts */
	uint32_t yield_alone; /* urdmad writes: ns; a shorter sched_yield let nobody else run here; 0 = not told, 1000 */
	uint32_t pad1[11];
	uint64_t bits[64];
	uint64_t pad2[432];  /* to 4096 bytes */
};

/* ---- shared memory: send and receive queues -------------------------------- */

/*
 * A send queue and a receive queue are alike and independent. Indices run freely
 * and wrap at 2^32; slot = index & (entries - 1). The producer stores its index
 * with release after writing the slot; the consumer loads it with acquire. urdmad
 * loads each client index once a look and keeps private copies of its own. cons
 * moves when a work request completes (with or without a completion queue
 * entry), before the completion can be seen.
 *
 * Completed is not free: as with hardware, a slot is free once the completion
 * of its work request, or of a later one of its queue, was polled. A send that
 * urdmad completed without a completion queue entry (unsignaled, successful) is
 * free at once. So a program that does not poll runs out of slots before its
 * completion queue overruns, and the rings tell a client whose urdmad has died
 * which work requests it owes a completion.
 *
 * When a queue pair fails, urdmad stores first_failed, then failed = 1 (release),
 * then the indices of what has failed: the send with index first_failed and those
 * after it complete with an entry, signaled or not. Moving to RESET clears
 * failed.
 */
struct urdma_abi_sq_ring {
	uint32_t prod; /* client writes */
	uint32_t pad0[15];
	uint32_t cons;         /* urdmad writes */
	uint32_t failed;       /* urdmad writes: 1 or 0 */
	uint32_t first_failed; /* urdmad writes: an index; counts while failed is 1 */
	uint32_t pad1[13];
};

/*
 * A shared receive queue is a receive queue in a memfd of its own, with two
 * differences. Its receives complete in another order than they were posted,
 * as each queue pair ends its messages when it does; but they are taken in order,
 * and urdmad copies a slot out when it takes it. So cons moves when a receive is
 * taken, not when it completes, and a slot before cons is free: nobody looks at it
 * again. The index of a completion then says nothing about slots. What was posted
 * and not taken when urdmad ends completes nowhere, as with hardware: no queue
 * pair stands for it. And there is no doorbell: a queue pair whose message waits
 * for a receive looks for one again, at the latest after a millisecond.
 */
struct urdma_abi_rq_ring {
	uint32_t prod; /* client writes */
	uint32_t pad0[15];
	uint32_t cons; /* urdmad writes */
	uint32_t pad1[15];
};

struct urdma_abi_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

/*
 * What posts do, enum ibv_wr_opcode: O(name of the opcode, its completion's opcode, RDMAP
 * message, right that the peer's memory needs, supported, reads local memory, writes it,
 * may be inline, carries immediate data, invalidates an STag, takes a receive, atomic,
 * also of type UD).
 *
 * supported: else posting it answers EOPNOTSUPP. invalidates: the peer's STag or, locally,
 * ours. takes a receive: completes one at the peer. atomic: uses compare_add and swap.
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
 * A send queue slot: this head, then num_sge entries or inline_length bytes.
 * LOCAL_INV: imm_or_stag is the window's rkey. BIND_MW: rkey is the window's from
 * now on, its upper 24 bits as they were; imm_or_stag the lkey of the region,
 * remote_addr and compare_add where the window begins and how many bytes it has (0:
 * a window of type 1 is bound to nothing), swap its enum ibv_access_flags. Of a
 * queue pair of type UD, remote_addr has the remote queue pair's number in its low
 * 32 bits and the Q_Key in its high ones; compare_add and swap, as they lie in
 * memory, are the 16 bytes of the destination's address, one of IPv4 mapped into
 * IPv6; rkey is the traffic class, which packets of RoCEv2 have.
 */
struct urdma_abi_sqe {
	uint64_t wr_id;
	uint32_t opcode;      /* enum ibv_wr_opcode */
	uint32_t flags;       /* enum ibv_send_flags */
	uint32_t imm_or_stag; /* imm_data (network order) or the STag to invalidate */
	uint32_t num_sge;
	uint32_t inline_length; /* bytes, when flags has IBV_SEND_INLINE */
	uint32_t rkey;
	uint64_t remote_addr;
	uint64_t compare_add;
	uint64_t swap;
	uint32_t remote_srqn; /* of type XRC_SEND: the shared receive queue that a message is for */
	uint32_t pad;
	/* struct urdma_abi_sge sge[] or uint8_t data[] at offset 64 */
};

/* A receive queue slot: this head, then num_sge entries. */
struct urdma_abi_rqe {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t pad;
	/* struct urdma_abi_sge sge[] at offset 16 */
};

/* ---- shared memory: completion queue ring ---------------------------------- */

/*
 * arm: the client stores 1 (next solicited or error completion) or 2 (any next
 * completion), sequentially consistent, and then polls again; it never lowers
 * 2 to 1. urdmad stores prod, then (sequentially consistent) loads arm and, if
 * it matches, exchanges it with 0 and sends one event. Either urdmad sees the
 * arm or the client's next poll sees the completion.
 *
 * A client that does not poll again would wait for ever for completions that came
 * between its last poll and the arm. Adapters that compare the consumer index they
 * are armed with send an event for those at once, so programs leave it at that. Who
 * arms for any completion, has polled all that an event told of (told), and finds
 * more rings the doorbell of a queue pair that completes there; urdmad then looks.
 */
struct urdma_abi_cq_ring {
	uint32_t prod; /* urdmad writes */
	uint32_t pad0[15];
	uint32_t cons; /* client writes */
	uint32_t pad1[15];
	uint32_t arm;  /* client writes, urdmad exchanges */
	uint32_t told; /* urdmad writes: prod when it sent the last event */
	uint32_t pad2[14];
	uint32_t overrun; /* urdmad writes: 1 = completions were lost */
	uint32_t pad3[15];
};

#define URDMA_ABI_ENDS_FIRST 0x0506u /* vendor_err from here on: nothing has failed, the queue pair was ended in good order */
#define URDMA_ABI_ENDS_LAST 0x0508u

struct urdma_abi_cqe {
	uint64_t wr_id;
	uint32_t status;      /* enum ibv_wc_status */
	uint32_t opcode;      /* enum ibv_wc_opcode */
	uint32_t vendor_err;  /* why it failed: a number of package reason, which below 0x400 and from 0x1000 on is the cause of a
			       * Terminate (layer<<12|etype<<8|code); 0 none */
	uint32_t byte_len;
	uint32_t imm_or_stag; /* as wc_flags says */
	uint32_t qp_num;
	uint32_t src_qp;
	uint32_t wc_flags;    /* enum ibv_wc_flags */
	uint64_t timestamp;   /* ns, CLOCK_MONOTONIC, when urdmad completed it */
	uint64_t user_handle; /* of the queue pair, as CREATE_QP had it */
	uint32_t index;       /* of the work request in its queue: RQ if opcode has IBV_WC_RECV, else SQ */
	uint32_t source_lid;  /* of a datagram: the low 16 bits of the sender's address, as docs/WIRE.md chapter 9 has LIDs; and
			       * bit 16 if it came over IPv6 */
};

#pragma GCC diagnostic pop

#endif /* URDMA_ABI_H */
