/*
 * rsockets.h - rsockets (rsocket(7)): sockets of type SOCK_STREAM over a reliable
 * connection, and of type SOCK_DGRAM, which datagrams/ has. They stand on what
 * librdmacm and libibverbs offer any program, and include nothing else of this
 * library.
 *
 * Design
 * ------
 * The number of an rsocket is the descriptor of its rdma_cm event channel, so it
 * can't be another file's; table.c finds the socket behind it. A listening socket
 * is served by a thread (listen.c), because connections are established, as
 * TCP's are, whether or not the program is in raccept.
 *
 * Each end of a connection has a ring of memory for what it receives, which the
 * other end fills with RDMA Writes, and one for what it sends, out of which those
 * are made. A Write with immediate data says how many bytes it wrote; it takes a
 * receive, of which each end keeps a stock that it renews as it looks at its
 * completion queue. Immediate data is a message in 32 bits, its type in the upper
 * three:
 *
 *   DATA    29 bits  bytes written behind those of the last such message
 *   GRANT   12 bits  receives renewed, 17 bits  room in units of 64 bytes
 *   IOMAP   29 bits  an entry of the table of mapped buffers was written
 *   END              the sender sends no more (rshutdown, rclose)
 *
 * Flow control is by credits of two kinds, both given by GRANT: bytes of the
 * receiver's ring, and receives. Bytes are given back when half of the ring was
 * read, receives when half of them were taken. DATA needs both; the other messages
 * are few and need none, since a message without a receive waits (RNR retries
 * without end) and both ends renew receives whenever they look. An end gives
 * receives back for the other's GRANTs too, but only past half, so that two idle
 * ends don't answer each other for ever.
 *
 * rsend copies into its ring and posts; what was posted needs nobody's help, so
 * rclose has only to wait until the peer's side has it. A peer that is killed, or
 * whose urdmad is, ends the connection: receives are flushed, and calls answer
 * with what arrived before, then ECONNRESET.
 *
 * One lock a socket guards its state. Nobody holds it asleep: a thread that waits
 * (wait.c) leaves a pipe of its own with the socket, under the lock, and sleeps
 * on that, the completion channel and the event channel. A thread that looks at a queue
 * and finds something writes to those pipes. So no thread sleeps over news that
 * another thread took, whether it waits in rrecv, rpoll or raccept.
 *
 * send(2) and its kin may be called by signal handlers, so rsend and its kin may.
 * A handler that ran while its thread holds a lock could wait for that lock for ever:
 * signals are blocked from before the first lock of a call until after its last, but
 * for ppoll, which has no lock held and gives the program's mask to the kernel. A
 * handler that runs there may make any call, wait, or leave by longjmp (iperf3), so
 * nothing that others use lies on the stack of a thread that sleeps. Left by longjmp,
 * a call keeps its hold of the socket, whose memory stays until the process ends.
 * Cancellation waits likewise: calls that wait can be cancelled in ppoll alone,
 * but for rclose, riomap and riounmap. Cleanup handlers are found in the unwind tables
 * (-fexceptions), not by a list on the stack that longjmp would leave behind.
 *
 * A child of fork has none of its parent's connections: there it can rclose its
 * parent's rsockets, and everything else answers EBADF. It may make rsockets of
 * its own, which is how librspreload supports programs that fork.
 */
#ifndef URDMA_RSOCKETS_H
#define URDMA_RSOCKETS_H

#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define RS_EXPORT __attribute__((visibility("default")))

enum rs_state {
	RS_IDLE, /* bound or not */
	RS_LISTENING,
	RS_RESOLVING_ADDR,
	RS_RESOLVING_ROUTE,
	RS_CONNECTING, /* or accepted, and not yet established */
	RS_CONNECTED,
	RS_FAILED, /* no connection came about */
	RS_DATAGRAM, /* of type SOCK_DGRAM, bound, connected or neither */
};

/* What rsetsockopt, rfcntl and the files of /etc/rdma/rsocket say; an accepted
 * socket has its listener's, but for nonblock. */
struct rs_options {
	uint32_t send_bytes, recv_bytes; /* of the rings */
	uint32_t sq_size, rq_size;       /* work requests */
	uint32_t inline_bytes;
	uint32_t iomaps;                 /* entries that the peer may fill */
	struct linger linger;
	uint32_t keep_idle, keep_interval, keep_count;
	uint32_t reuse, v6only, keepalive, nodelay, oob_inline; /* flags */
	bool nonblock;
};

/* A descriptor, and which file it is: a program that closes all descriptors may have
 * another file by its number since. Of files with an inode of their own. */
struct rs_file {
	int fd;
	dev_t device;
	ino_t inode;
};

/* A thread that waits, on the list of each socket that it waits for; with the lock
 * of waiters.c. */
struct rs_waiter {
	struct rs_waiter *next;
	struct rs *rs;
	struct rs_file wake; /* the end of its pipe that is written to */
};

/* Memory of the peer's, as it told us. */
struct rs_remote {
	uint64_t addr;
	uint32_t rkey;
	uint32_t bytes;
};

/* What we send: positions count bytes since the beginning. */
struct rs_tx {
	uint8_t *ring;
	struct ibv_mr *mr;
	uint32_t bytes;
	uint64_t posted, completed;   /* in our ring */
	struct rs_remote peer;        /* its receive ring */
	uint64_t written, granted;    /* in the peer's */
	uint32_t credits;             /* receives of the peer's that DATA may take */
	uint32_t outstanding, slots;  /* work requests in the send queue, and how many it has */
	bool ended;                   /* END was posted, or the program wants it to be */
};

/* What we receive. */
struct rs_rx {
	uint8_t *ring;
	struct ibv_mr *mr;
	uint32_t bytes;
	uint64_t arrived, read;
	uint64_t given;               /* of read: what the peer was told of */
	uint32_t renewed;             /* receives the peer was not told of */
	uint32_t receives;
	bool ended;                   /* the peer's END came */
};

/* An entry of a table of mapped buffers, as the peer writes it: in network byte
 * order, bytes 0 for none. */
struct rs_iomap {
	uint64_t offset, addr;
	uint32_t rkey;
	uint32_t bytes;
};

/* A buffer of ours that riomap mapped; index is its entry at the peer, or -1. */
struct rs_mapping {
	struct rs_mapping *next;
	struct ibv_mr *mr;
	void *buf;
	size_t length;
	int index;
};

struct rs_iomaps {
	struct rs_iomap *table; /* of the peer's buffers; the peer writes it */
	struct ibv_mr *mr;
	uint32_t entries;
	struct rs_remote peer;  /* its table */
	struct rs_mapping *mappings;
};

/* A listening socket's. */
struct rs_backlog {
	struct rs *first, **last; /* established, for raccept; by rs->next */
	uint32_t waiting, limit;
};

/* What a socket that is no stream does in its own way; with its lock. Those that give
 * int: 0 or -1 and errno. */
struct rs_kind {
	int type, protocol;
	void (*free)(struct rs *rs);
	int (*descriptor)(const struct rs *rs); /* readable with news of completion queues */
	bool (*progress)(struct rs *rs);
	void (*arm)(struct rs *rs);
	void (*take_events)(struct rs *rs);     /* what rdma_cm says, for the thread of listen.c */
	bool (*can_send)(struct rs *rs);
	bool (*can_receive)(struct rs *rs);
	int (*bind)(struct rs *rs, struct sockaddr *to);
	int (*connect)(struct rs *rs, const struct sockaddr *addr, socklen_t length);
	int (*shutdown)(struct rs *rs, int how);
	void (*finish)(struct rs *rs);          /* before it is closed */
	const struct sockaddr *(*peer_name)(const struct rs *rs); /* NULL: not connected */
	void (*own_name)(const struct rs *rs, struct sockaddr_storage *to);
	ssize_t (*send)(struct rs *rs, const struct iovec *iov, int count, int flags, const struct sockaddr *to, socklen_t length);
	ssize_t (*receive)(struct rs *rs, const struct iovec *iov, int count, int flags, struct sockaddr *from, socklen_t *length,
			   size_t *all); /* all: how long the message was */
};

struct rs_datagrams;

struct rs {
	pthread_mutex_t lock;
	int fd;
	struct rs_file file; /* of fd */
	unsigned references; /* guarded by the table's lock */
	int domain;
	enum rs_state state;
	struct rs_options options;
	int error;           /* SO_ERROR */
	bool closed;         /* rclose was called */
	bool broken;         /* the connection is over */
	bool reset_told;     /* the program has heard that it ended too early */
	bool no_receive;     /* rshutdown(SHUT_RD) */
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_path_data *route; /* RDMA_ROUTE */
	socklen_t route_bytes;
	struct rs_waiter *waiters;
	struct rs_tx tx;
	struct rs_rx rx;
	struct rs_iomaps io;
	const struct rs_kind *kind;     /* NULL: a stream */
	struct rs_datagrams *datagrams; /* of type SOCK_DGRAM; else NULL */
	struct rs_backlog backlog;
	struct rs *listener, *next; /* while its listener has it */
	struct rs *next_served;     /* while the thread of listen.c looks at it, */
	bool served;                /* or is about to */
};

static inline int rs_fail(int error)
{
	errno = error;
	return -1;
}

/* ---- system.c -------------------------------------------------------------------- */

/* Signals of the program, and cancellation, wait between these, which don't nest. */
void rs_block_signals(void);
void rs_unblock_signals(void);
/* ppoll(2), during which they don't. */
int rs_sys_poll(struct pollfd *fds, nfds_t n, int64_t wait_ns);
int rs_raw_close(int fd);
struct rs_file rs_file_of(int fd);
bool rs_is_open(const struct rs_file *file);
int64_t rs_now_ns(void);

/* ---- table.c: sockets by descriptor ------------------------------------------ */

/* A socket that nobody knows yet, with an event channel; NULL and errno. */
struct rs *rs_new(int domain, const struct rs_options *options);
int rs_enter(struct rs *rs); /* 0 or -1 and errno */
/* The socket of a descriptor, locked and held, with signals blocked; NULL and EBADF. */
struct rs *rs_take(int fd);
/* The same, but only held; with signals blocked. */
struct rs *rs_hold(int fd);
void rs_drop(struct rs *rs);         /* unlocks, lets go and unblocks signals */
void rs_let_go(struct rs *rs);
void rs_leave_table(struct rs *rs);
void rs_free(struct rs *rs);         /* with all that was made for it */
/* Whether the descriptor is an rsocket that a parent of this process made. */
bool rs_inherited(int fd);

/* ---- defaults.c ---------------------------------------------------------------- */

const struct rs_options *rs_defaults(void);
unsigned rs_polling_us(void);
int rs_wake_interval_ms(void);

/* ---- setup.c: queues, memory and what the ends tell each other ------------------ */

struct rs_hello { /* private data of request and accept, network byte order */
	uint32_t magic;
	uint16_t version, credits;
	uint64_t ring_addr, table_addr;
	uint32_t ring_rkey, ring_bytes, table_rkey, table_bytes;
};

/* Registered memory of its own; NULL and errno. */
struct ibv_mr *rs_map_region(struct ibv_pd *pd, size_t bytes, int access);
void rs_unmap_region(struct ibv_mr *mr); /* NULL: none */
int rs_make_queues(struct rs *rs);   /* 0 or an errno value */
void rs_release_queues(struct rs *rs);
bool rs_hello_read(struct rs *rs, const struct rdma_conn_param *param);
void rs_fill_param(const struct rs *rs, struct rs_hello *hello, struct rdma_conn_param *param);

/* ---- events.c --------------------------------------------------------------------- */

/* Takes the connection's events that are there; with the lock. */
void rs_take_events(struct rs *rs);
/* The errno value of an event that ends an attempt to connect. */
int rs_event_error(const struct rdma_cm_event *event);

/* ---- progress.c: the completion queue; all with the lock ---------------------------- */

enum { RS_DATA, RS_GRANT, RS_IOMAP, RS_END };

/* Looks at completions; true if there was news. */
bool rs_progress(struct rs *rs);
/* Has a completion make the completion channel readable. */
void rs_arm(struct rs *rs);
void rs_arm_queue(struct ibv_cq *cq, struct ibv_comp_channel *channel);
int rs_post(struct rs *rs, struct ibv_send_wr *wr);
int rs_post_receive(struct rs *rs);
void rs_post_message(struct rs *rs, unsigned type, uint32_t value);
/* Gives the peer what has accumulated. */
void rs_grant(struct rs *rs);
uint32_t rs_send_room(const struct rs *rs);    /* of the next DATA; 0: none */
uint32_t rs_local_room(const struct rs *rs);   /* of our ring in one piece, with a work request to send it */
void rs_break(struct rs *rs, int error);       /* the connection is over, and why if that was too early */

#define RS_CONTROL_SLOTS 8u /* of the send queue, for other messages than DATA */

/* ---- waiters.c ---------------------------------------------------------------- */

/* This thread is about to wait for so many sockets at most: its pipe, or -1 and
 * errno. What it waited for before is over, as is a wait that a handler interrupts. */
int rs_begin_wait(size_t sockets);
void rs_add_waiter(struct rs *rs); /* with the socket's lock */
void rs_end_wait(void);
void rs_drain(void);               /* of this thread's pipe */
void rs_signal(struct rs *rs);     /* wakes all that wait; with the socket's lock */

/* ---- wait.c --------------------------------------------------------------------------- */

/* Waits, without the lock, until ready(rs) or rs->closed. until_ns: of
 * CLOCK_MONOTONIC, -1 for ever. 0, ETIMEDOUT, EINTR or another errno value. */
int rs_wait(struct rs *rs, bool (*ready)(struct rs *rs), int64_t until_ns);
/* Whether a call with these flags of send(2) doesn't wait. */
bool rs_at_once(const struct rs *rs, int flags);
/* Waits for ever, or does not, as such a call does: EAGAIN. */
int rs_wait_unless(struct rs *rs, bool (*ready)(struct rs *rs), int flags);
/* A socket's descriptors whose readability is news, at most two. */
int rs_descriptors(const struct rs *rs, int fds[2]);
static inline bool rs_is_connecting(const struct rs *rs)
{
	return rs->state == RS_RESOLVING_ADDR || rs->state == RS_RESOLVING_ROUTE || rs->state == RS_CONNECTING;
}

/* ---- vectors.c ------------------------------------------------------------------------ */

/* Where in a program's vectors the next byte is. */
struct rs_cursor {
	const struct iovec *iov;
	int left;      /* vectors, iov among them */
	size_t offset; /* in iov */
};

/* Takes n bytes, at most what there is, out of flat memory or to it. */
size_t rs_move(struct rs_cursor *c, uint8_t *flat, size_t n, bool out);
/* The bytes of all vectors; -1 and errno. */
ssize_t rs_length(const struct iovec *iov, int count);

/* ---- stream.c ------------------------------------------------------------------------- */

/* Waits for the end of an attempt to connect, as a call with these flags does. */
int rs_await_connection(struct rs *rs, int flags);
ssize_t rs_send(struct rs *rs, const struct iovec *iov, int count, int flags);
ssize_t rs_receive(struct rs *rs, const struct iovec *iov, int count, int flags);
bool rs_can_send(struct rs *rs);
bool rs_can_receive(struct rs *rs);
/* Copies into our send ring, n bytes of which are free in one piece. */
void *rs_stage(struct rs *rs, const void *from, uint32_t n);

/* ---- socket.c ------------------------------------------------------------------------- */

bool rs_all_sent(struct rs *rs); /* or nothing more can be */

/* ---- listen.c ------------------------------------------------------------------------- */

/* Has the thread look at a socket, whose lock is let go of meanwhile: the thread's comes
 * first. 0 or -1 and errno. */
int rs_serve(struct rs *rs);
void rs_stop_serving(struct rs *listener);

/* ---- names.c ------------------------------------------------------------------------- */

void rs_write_name(const struct rs *rs, const struct sockaddr *from, struct sockaddr *to, socklen_t *length);
/* An address of a program's; false: too short. */
bool rs_read_name(const struct sockaddr *from, socklen_t length, struct sockaddr_storage *to);

/* ---- datagrams/ ---------------------------------------------------------------------------- */

/* Gives a new socket a kind of its own. 0 or -1 and errno. */
int rs_datagram_make(struct rs *rs);

#endif /* URDMA_RSOCKETS_H */
