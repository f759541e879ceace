/*
 * datagram.h - declarations shared by the files for sockets of type SOCK_DGRAM.
 *
 * A bound socket is an rdma_cm id of RDMA_PS_UDP that listens. The service thread (listen.c) answers
 * requests for the queue pair that belongs to its port number. The socket has one queue pair of type UD
 * for each device it uses. Before a socket sends to an address for the first time it requests the peer's
 * queue pair, and keeps the messages until the response comes (peers.c). A message that arrives also shows
 * how to reply to its sender.
 *
 * Each datagram begins with a header. It contains the sender's port number, which the GRH in front of the
 * datagram lacks, and says which part of which message this is. The sender's address is in the GRH; on
 * InfiniBand without a GRH it is derived from the sender's LID. A message is sent in as many datagrams as
 * it needs. If parts arrive out of order the message is dropped, as a network or a slow receiver may drop
 * any datagram. The port number is only as trustworthy as the library that sent it.
 */
#ifndef URDMA_RSOCKETS_DATAGRAM_H
#define URDMA_RSOCKETS_DATAGRAM_H

#include <netinet/in.h>

#include "../rsockets.h"

#define RS_LONGEST 65527u /* bytes: the longest message, as for UDP over IPv6 */
#define RS_LONGEST_IPV4 65507u
#define RS_SMALLEST 256u  /* bytes: a datagram that every port accepts; determines the number of sends */
#define RS_GRH 40u        /* bytes before a received datagram */
#define RS_BUCKETS 256u   /* hash buckets for peers */
#define RS_PARTIALS 16u   /* messages of which parts are missing */
#define RS_MAGIC 0x7275u  /* "ru" */
#define RS_RECEIVE (1ull << 32) /* flag in the wr_id of a receive, whose other bits are its index */

struct rs_header { /* network byte order */
	uint16_t magic, port;
	uint32_t number;          /* number of the message, counted by its sender */
	uint16_t offset, length;  /* of this part; of the whole message */
	uint32_t reserved;
	uint16_t largest;         /* the largest datagram that the sender accepts, header included */
	uint16_t unused;
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
	uint32_t number, length, got;
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
	uint32_t largest;         /* the largest datagram, header included */
	uint32_t receives, sends; /* number of buffers */
	uint32_t *free;           /* a stack of send buffers that are not in use */
	uint32_t free_count;
};

/* An address to which the socket has sent, or from which it has received. */
struct rs_peer {
	struct rs_peer *next;
	union rs_name name, local; /* local: source address; AF_UNSPEC until there was a response */
	struct rdma_cm_id *id;    /* id of the request under way, or NULL */
	struct rs_pair *pair;     /* queue pair to send from, with ah; NULL until there was a response */
	struct ibv_ah *ah;
	struct ibv_ah_attr path;  /* path of ah */
	uint32_t qpn, largest;
	int64_t sure_ns;          /* CLOCK_MONOTONIC: when the peer's queue pair was last confirmed */
	struct rs_messages waiting;
};

struct rs_datagrams {
	int poller;               /* epoll descriptor for all completion channels */
	bool listens;             /* the id is bound, and urdmad delivers requests for its port */
	bool stale;               /* the id is bound but can't listen */
	uint32_t number;          /* number of the last message sent */
	struct rs_pair *pairs;
	struct rs_peer *peers[RS_BUCKETS];
	uint32_t peer_count;
	struct rs_peer *connected;
	struct rs_messages arrived;
	struct rs_message *partial[RS_PARTIALS];
};

/* ---- names.c --------------------------------------------------------------------- */

/* Converts an address of any family; AF_UNSPEC if it is neither IPv4 nor IPv6. */
union rs_name rs_name_of(const struct sockaddr *from);
/* Returns the host that a GID or a LID denotes, as seen by the host with the address own. */
union rs_name rs_name_of_gid(const union ibv_gid *gid, in_port_t port, const union rs_name *own);
union rs_name rs_name_of_lid(uint16_t lid, in_port_t port, const union rs_name *own);
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
/* Processes a datagram that has arrived, once its sender's name is known; part is the data after its
 * header. */
void rs_message_part(struct rs *rs, const union rs_name *from, const struct rs_header *h, const uint8_t *part,
	uint32_t n);

/* ---- pairs.c --------------------------------------------------------------------- */

/* Returns the socket's queue pair on the device of an id, which has an address there; creates it if
 * necessary. NULL with errno set on failure. */
struct rs_pair *rs_pair_of(struct rs *rs, struct rdma_cm_id *id);
void rs_pair_free(struct rs_pair *pair);
/* Returns the address of receive buffer i, which begins with the GRH. */
uint8_t *rs_pair_receive_at(const struct rs_pair *pair, uint32_t i);
/* Returns 0 or an errno value. */
int rs_pair_post_receive(struct rs_pair *pair, uint32_t i);
/* Returns whether a message of any length can be sent now. */
bool rs_pair_has_room(const struct rs_pair *pair);
/* Posts one message in all its parts, after rs_pair_has_room returned true. Returns 0 or an errno value. */
int rs_pair_send(struct rs *rs, const struct rs_peer *to, const uint8_t *data, uint32_t length);

/* ---- peers.c --------------------------------------------------------------------- */

/* Finds or creates a peer. NULL: ENOMEM. */
struct rs_peer *rs_peer_of(struct rs *rs, const union rs_name *name);
/* Requests the peer's queue pair, unless it is known or already requested. Returns 0, or -1 with errno
 * set. */
int rs_peer_ask(struct rs *rs, struct rs_peer *peer);
/* Records the queue pair and path of a message from the peer. */
void rs_peer_heard(struct rs_peer *peer, struct rs_pair *pair, uint32_t qpn, uint32_t largest,
	struct ibv_ah_attr *path);
void rs_peers_free(struct rs *rs);
/* Handles rdma_cm events: requests of peers, and responses. */
void rs_datagram_take_events(struct rs *rs);

/* ---- arrivals.c ------------------------------------------------------------------ */

bool rs_datagram_progress(struct rs *rs);
void rs_datagram_arm(struct rs *rs);

#endif /* URDMA_RSOCKETS_DATAGRAM_H */
