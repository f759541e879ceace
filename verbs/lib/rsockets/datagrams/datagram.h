/*
 * datagram.h - declarations shared by the files for sockets of type SOCK_DGRAM.
 *
 * The socket has one queue pair of type UD for each device it uses. Each datagram is a message, behind the
 * header of rdma-core's sockets: the sender's address and port number. The address must be the one in the GRH,
 * if there is a GRH; the port number is only as trustworthy as the library that sent it.
 *
 * Before a socket sends to an address for the first time it requests the peer's queue pair, and keeps the
 * messages until the response comes (peers.c). Sockets of this library are asked through rdma_cm: a bound
 * socket is an id of RDMA_PS_UDP that listens, and the service thread (service.c) answers. That works on every
 * port, also if the kernel does not have its address. Sockets of rdma-core are asked by UDP messages of the
 * kernel (udp.c), if rdma_cm finds nobody. A message that arrives also shows how to reply to its sender.
 */
#ifndef URDMA_RSOCKETS_DATAGRAM_H
#define URDMA_RSOCKETS_DATAGRAM_H

#include <netinet/in.h>

#include "../rsockets.h"

#define RS_LARGEST 2048u  /* bytes: the largest datagram that a socket of rdma-core receives */
#define RS_GRH 40u        /* bytes before a received datagram */
#define RS_BUCKETS 256u   /* hash buckets for peers */
#define RS_RECEIVE (1ull << 32) /* flag in the wr_id of a receive, whose other bits are its index */

struct rs_header { /* network byte order */
	uint8_t version, length; /* 4 and 8, or 6 and 24: of the header */
	uint16_t port;
	uint8_t address[20];     /* version 6: behind the flow information */
};

/* An address and a port number. IPv4 is a struct sockaddr_in, never mapped. For IPv6, sin6_flowinfo is 0,
 * and sin6_scope_id is set only for link-local addresses. */
union rs_name {
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
};

struct rs_message {
	struct rs_message *next;
	union rs_name from;       /* not used for messages to be sent */
	uint32_t length;
	uint8_t data[];
};

struct rs_messages {
	struct rs_message *first, **last;
	size_t bytes;
};

/* A queue pair and its memory, mr: first the receives, each preceded by room for a GRH, then the sends. */
struct rs_pair {
	struct rs_pair *next;
	struct ibv_context *verbs;
	uint8_t port;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union rs_name own;        /* the address under which peers know it, without a port number; AF_UNSPEC until known */
	uint32_t largest;         /* the largest datagram, header included; at most RS_LARGEST */
	uint32_t receives, sends; /* number of buffers */
	uint32_t *free;           /* a stack of send buffers that are not in use */
	uint32_t free_count;
};

/* An address to which the socket has sent, or from which it has received. */
struct rs_peer {
	struct rs_peer *next;
	union rs_name name, local; /* local: source address; AF_UNSPEC until known */
	struct rdma_cm_id *id;    /* id of the request under way, or NULL */
	struct rs_pair *pair;     /* queue pair to send from, with ah; NULL until there was a response */
	struct ibv_ah *ah;
	struct ibv_ah_attr path;  /* path of ah */
	uint32_t qpn;
	int64_t sure_ns;          /* CLOCK_MONOTONIC: when the peer's queue pair was last confirmed */
	struct rs_pair *announced; /* queue pair that UDP messages to the peer announce; NULL: rdma_cm finds the peer */
	uint32_t told;            /* number of its queue pair by a UDP message, until the path to it is resolved; or 0 */
	bool owed;                /* a UDP message in response, when the path is resolved */
	struct rs_messages waiting;
};

struct rs_datagrams {
	int poller;               /* epoll descriptor for all completion channels */
	bool listens;             /* the id is bound, and urdmad delivers requests for its port */
	bool stale;               /* the id is bound but can't listen */
	struct rs_file udp;       /* the kernel's socket for UDP messages; fd is -1 if the kernel lacks the address */
	struct rs_pair *pairs;
	struct rs_peer *peers[RS_BUCKETS];
	uint32_t peer_count, resolving; /* resolving: peers that have an id */
	struct rs_peer *connected;
	struct rs_messages arrived;
};

/* ---- names.c --------------------------------------------------------------------- */

/* Converts an address of any family; AF_UNSPEC if it is neither IPv4 nor IPv6. */
union rs_name rs_name_of(const struct sockaddr *from);
/* Returns the host that a GID denotes, as seen by the host with the address own. */
union rs_name rs_name_of_gid(const union ibv_gid *gid, in_port_t port, const union rs_name *own);
bool rs_name_is_loopback(const union rs_name *name);
bool rs_name_is_any(const union rs_name *name);
bool rs_name_equal(const union rs_name *a, const union rs_name *b);
uint32_t rs_name_hash(const union rs_name *name);
/* Reads a destination address, and checks that the socket can send there. Returns 0, or -1 with errno set. */
int rs_name_read(const struct rs *rs, const struct sockaddr *from, socklen_t length, union rs_name *to);

/* ---- messages.c ------------------------------------------------------------------ */

struct rs_message *rs_message_new(uint32_t length);
void rs_message_append(struct rs_messages *list, struct rs_message *m);
struct rs_message *rs_message_take(struct rs_messages *list);
void rs_messages_drop(struct rs_messages *list);
/* Queues a message that has arrived for the reader, if there is room. */
void rs_message_arrived(struct rs *rs, const union rs_name *from, const uint8_t *data, uint32_t n);

/* ---- pairs.c --------------------------------------------------------------------- */

/* Returns the socket's queue pair on the device of an id, which has an address there; creates it if
 * necessary. NULL with errno set on failure. */
struct rs_pair *rs_pair_of(struct rs *rs, struct rdma_cm_id *id);
void rs_pair_free(struct rs_pair *pair);
/* Returns the address of receive buffer i, which begins with the GRH. */
uint8_t *rs_pair_receive_at(const struct rs_pair *pair, uint32_t i);
/* Returns 0 or an errno value. */
int rs_pair_post_receive(struct rs_pair *pair, uint32_t i);
bool rs_pair_has_room(const struct rs_pair *pair);
/* Posts one message, after rs_pair_has_room returned true. Returns 0 or an errno value. */
int rs_pair_send(struct rs *rs, const struct rs_peer *to, const uint8_t *data, uint32_t length);

/* ---- peers.c --------------------------------------------------------------------- */

/* Returns a peer, or NULL. */
struct rs_peer *rs_peer_find(struct rs *rs, const union rs_name *name);
/* Finds or creates a peer. NULL with ENOMEM or ENOBUFS: there are too many. */
struct rs_peer *rs_peer_of(struct rs *rs, const union rs_name *name);
/* Requests the peer's queue pair, unless it is known or already requested. Returns 0, or -1 with errno
 * set. */
int rs_peer_ask(struct rs *rs, struct rs_peer *peer);
/* Records the queue pair and path of a message from the peer to our address local. */
void rs_peer_heard(struct rs_peer *peer, struct rs_pair *pair, uint32_t qpn, const union rs_name *local,
	struct ibv_ah_attr *path);
void rs_peers_free(struct rs *rs);
/* Handles rdma_cm events, requests of peers and responses, and UDP messages. */
void rs_datagram_take_events(struct rs *rs);

/* ---- udp.c ----------------------------------------------------------------------- */

/* Makes the kernel's socket for UDP messages and binds it, if the kernel has the address; a port number 0 is
 * replaced by the one that the kernel chooses. Returns 0, or -1 with errno set. */
int rs_udp_open(struct rs *rs, struct sockaddr_storage *at);
void rs_udp_close(struct rs *rs);
/* Returns whether messages can go out from this address. */
bool rs_udp_has(const struct rs *rs, const union rs_name *local);
/* Sends a message and the number of our queue pair; without data, only that. Losses are not reported. */
void rs_udp_send(struct rs *rs, const struct rs_peer *to, const struct rs_message *m);

struct rs_udp_message {
	union rs_name from;
	uint32_t qpn; /* the sender's queue pair */
	bool is_data; /* the sender awaits ours; data has a message of the program */
	uint32_t length;
	const uint8_t *data;
	uint8_t buffer[RS_LARGEST + 1];
};

/* Receives a message. Returns 1; 0 if it is malformed; -1 if none waits. */
int rs_udp_receive(struct rs *rs, struct rs_udp_message *m);

/* ---- arrivals.c ------------------------------------------------------------------ */

bool rs_datagram_progress(struct rs *rs);
void rs_datagram_arm(struct rs *rs);

#endif /* URDMA_RSOCKETS_DATAGRAM_H */
