/*
 * datagram.h - sockets of type SOCK_DGRAM; what the files about them share.
 *
 * A socket that is bound is an rdma_cm id of RDMA_PS_UDP that listens: the thread
 * of listen.c answers those who ask for the queue pair behind the port number. There
 * is one of type UD for each device that the socket has met. A socket that sends to an
 * address for the first time asks so, and keeps what it sends until the answer
 * comes (peers.c). A message that arrives also tells how to answer it.
 *
 * Each datagram begins with a header: the port number of its sender, which the
 * GRH in front of it lacks, and which part of which message this is. The sender's
 * address is the GRH's, or where InfiniBand's LIDs stand for addresses, the one that
 * its LID stands for. A message is sent in as many datagrams as it takes; parts that
 * come out of order are dropped with their message, as anything may be that a network
 * or a slow reader loses. That a port number is the sender's own, only its library says.
 */
#ifndef URDMA_RSOCKETS_DATAGRAM_H
#define URDMA_RSOCKETS_DATAGRAM_H

#include <netinet/in.h>

#include "../rsockets.h"

#define RS_LONGEST 65527u /* message, as UDP has it over IPv6 */
#define RS_LONGEST_IPV4 65507u
#define RS_SMALLEST 256u  /* datagram that every port takes: sends are as many as that needs */
#define RS_GRH 40u        /* bytes in front of a datagram that arrives */
#define RS_BUCKETS 256u   /* of peers */
#define RS_PARTIALS 16u   /* messages whose parts are coming */
#define RS_MAGIC 0x7275u  /* "ru" */
#define RS_RECEIVE (1ull << 32) /* in the wr_id of a receive, beside its index */

struct rs_header { /* network byte order */
	uint16_t magic, port;
	uint32_t number;          /* of the message, among its sender's */
	uint16_t offset, length;  /* of this part, and of the whole message */
	uint32_t reserved;
	uint16_t largest;         /* datagram that the sender takes, header included */
	uint16_t unused;
};

/* An address and a port number: of IPv4 as struct sockaddr_in, never mapped. Of IPv6
 * ones sin6_flowinfo is 0, and sin6_scope_id that of a link-local address. */
union rs_name {
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
};

struct rs_message {
	struct rs_message *next;
	union rs_name from;       /* of one to be sent: not used */
	uint32_t number, length, got;
	uint8_t data[];
};

struct rs_messages {
	struct rs_message *first, **last;
	size_t bytes;
};

/* A queue pair and its memory, mr: receives, each behind room for a GRH, then sends. */
struct rs_pair {
	struct rs_pair *next;
	struct ibv_context *verbs;
	uint8_t port;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union rs_name own;        /* as peers know it, without a port number; of no family until known */
	uint32_t largest;         /* datagram, header included */
	uint32_t receives, sends; /* how many there is memory for */
	uint32_t *free;           /* a stack of sends that are not under way */
	uint32_t free_count;
};

/* An address that was sent to, or heard from. */
struct rs_peer {
	struct rs_peer *next;
	union rs_name name, local; /* local: of no family until there was an answer */
	struct rdma_cm_id *id;    /* that asks; NULL if none does */
	struct rs_pair *pair;     /* to send from, with ah; NULL until there was an answer */
	struct ibv_ah *ah;
	struct ibv_ah_attr path;  /* that ah is of */
	uint32_t qpn, largest;
	int64_t sure_ns;          /* when that was right last, CLOCK_MONOTONIC */
	struct rs_messages waiting;
};

struct rs_datagrams {
	int poller;               /* of all completion channels */
	bool listens;             /* is bound, and urdmad passes requests for it on */
	bool stale;               /* the id is bound, and can't listen */
	uint32_t number;          /* of the last message sent */
	struct rs_pair *pairs;
	struct rs_peer *peers[RS_BUCKETS];
	uint32_t peer_count;
	struct rs_peer *connected;
	struct rs_messages arrived;
	struct rs_message *partial[RS_PARTIALS];
};

/* ---- names.c --------------------------------------------------------------------- */

/* Of any family; AF_UNSPEC for those that are neither IPv4's nor IPv6's. */
union rs_name rs_name_of(const struct sockaddr *from);
/* The host that a GID or a LID names to the host with the address own. */
union rs_name rs_name_of_gid(const union ibv_gid *gid, in_port_t port, const union rs_name *own);
union rs_name rs_name_of_lid(uint16_t lid, in_port_t port, const union rs_name *own);
bool rs_name_is_loopback(const union rs_name *name);
bool rs_name_is_any(const union rs_name *name);
bool rs_name_equal(const union rs_name *a, const union rs_name *b);
uint32_t rs_name_hash(const union rs_name *name);
/* The destination that a program gives, if the socket can send there; 0 or -1 and errno. */
int rs_name_read(const struct rs *rs, const struct sockaddr *from, socklen_t length, union rs_name *to);

/* ---- messages.c ------------------------------------------------------------------ */

struct rs_message *rs_message_new(uint32_t length);
void rs_message_append(struct rs_messages *list, struct rs_message *m);
struct rs_message *rs_message_take(struct rs_messages *list);
void rs_messages_drop(struct rs_messages *list);
/* What arrived for a socket whose sender's name is known; part has the bytes behind
 * its header. */
void rs_message_part(struct rs *rs, const union rs_name *from, const struct rs_header *h, const uint8_t *part, uint32_t n);

/* ---- pairs.c --------------------------------------------------------------------- */

/* The socket's queue pair on the device of an id that has an address there, made if
 * need be; NULL and errno. */
struct rs_pair *rs_pair_of(struct rs *rs, struct rdma_cm_id *id);
void rs_pair_free(struct rs_pair *pair);
/* Where a datagram that arrives lies, its GRH first. */
uint8_t *rs_pair_receive_at(const struct rs_pair *pair, uint32_t i);
/* 0 or an errno value. */
int rs_pair_post_receive(struct rs_pair *pair, uint32_t i);
/* Whether any message can be sent now. */
bool rs_pair_has_room(const struct rs_pair *pair);
/* Posts one message in all its parts; rs_pair_has_room said yes. 0 or an errno value. */
int rs_pair_send(struct rs *rs, const struct rs_peer *to, const uint8_t *data, uint32_t length);

/* ---- peers.c --------------------------------------------------------------------- */

/* NULL: ENOMEM. */
struct rs_peer *rs_peer_of(struct rs *rs, const union rs_name *name);
/* Asks a peer for its queue pair, unless that is known or being asked. 0 or -1 and errno. */
int rs_peer_ask(struct rs *rs, struct rs_peer *peer);
/* A message from the peer came with these. */
void rs_peer_heard(struct rs_peer *peer, struct rs_pair *pair, uint32_t qpn, uint32_t largest, struct ibv_ah_attr *path);
void rs_peers_free(struct rs *rs);
/* Takes what rdma_cm says: questions and answers. */
void rs_datagram_take_events(struct rs *rs);

/* ---- arrivals.c ------------------------------------------------------------------ */

bool rs_datagram_progress(struct rs *rs);
void rs_datagram_arm(struct rs *rs);

#endif /* URDMA_RSOCKETS_DATAGRAM_H */
