/*
 * rsockets.h - rsockets (rsocket(7)): sockets of type SOCK_STREAM over a reliable connection, and of type
 * SOCK_DGRAM (datagrams/). They use the public interfaces of librdmacm and libibverbs, and include no
 * other header of this library.
 *
 * An rsocket's number is the descriptor of its rdma_cm event channel, so no other file can have that
 * number; table.c finds the socket for it. A service thread (service.c) serves listening sockets, because
 * connections are established, as TCP's are, whether or not the program is in raccept.
 *
 * A stream speaks the protocol of rdma-core's rsockets, so its peer may use any RDMA device. Each end has a
 * receive ring, which the peer fills with RDMA Writes, and a send ring, from which it sends. The ring is
 * granted to the peer in halves, alternately, and a half again when the program has read it. The private
 * data of the connection request and reply grants the first half; later grants are written into a table at
 * the peer, which has two entries for such grants, and further ones for buffers mapped by riomap.
 *
 * A message of 32 bits tells the peer what was written. Its upper three bits are its type:
 *
 *   DATA     29 bits  bytes written after the bytes of the previous DATA
 *   CREDITS  16 bits  number of the last DATA or IOMAP that may be sent; the table may have a new grant
 *   IOMAP    16 bits  the entry of the table of mapped buffers that was written
 *   CONTROL           the sender sends no more (SHUTDOWN), or has closed the connection (DISCONNECT)
 *
 * The message is the immediate data of the Write. iWARP has no immediate data: there a Send with the
 * message, in the sender's byte order, follows the Write. Each message consumes a receive, which is posted
 * again when the completion queue is processed. CREDITS and CONTROL need no credit, because they are few:
 * on InfiniBand and RoCE a message without a receive waits (RNR retries are unlimited), and on iWARP a few
 * more receives are posted than were granted, and as many of the peer's are left unused.
 *
 * rsend copies into the send ring and posts. Posted data needs no further action, so rclose only waits
 * until the peer's side has it. If a peer or its urdmad is killed the connection ends: receives are
 * flushed, and calls return the data that arrived before, then ECONNRESET.
 *
 * One lock for each socket guards its state. No thread holds it while it sleeps: a thread that waits
 * (wait.c) registers its own pipe with the socket, under the lock, and sleeps on that pipe, the completion
 * channel and the event channel. A thread that takes events from a queue writes to those pipes. So no
 * thread misses an event that another thread took, whether it waits in rrecv, rpoll or raccept.
 *
 * Signal handlers may call send(2), so they may call rsend and related functions. If a handler ran while
 * its own thread holds a lock it could wait for that lock for ever. So signals are blocked from before the
 * first lock of a call until after the last, except in ppoll, where no lock is held and the kernel applies
 * the program's mask. A handler that runs there may call any function, wait, or leave by longjmp (iperf3);
 * so no data that other threads use is on the stack of a sleeping thread. A call left by longjmp keeps its
 * reference to the socket, whose memory then stays until the process ends. Cancellation is blocked in the
 * same way: calls that wait can be cancelled only in ppoll, and rclose, riomap and riounmap not at all.
 * Cleanup handlers are found by unwind tables (-fexceptions), not by a list on the stack, which longjmp
 * would leave broken.
 *
 * A child of fork has none of its parent's connections. It can rclose its parent's rsockets; all other
 * calls on them fail with EBADF. It may create rsockets of its own; librspreload supports programs that
 * fork in this way.
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
	RS_CONNECTING, /* connecting, or accepted and not yet established */
	RS_CONNECTED,
	RS_FAILED, /* the attempt to connect failed */
	RS_DATAGRAM, /* type SOCK_DGRAM, bound, connected or neither */
};

/* Options set by rsetsockopt, rfcntl and the files in /etc/rdma/rsocket. An accepted socket inherits all
 * but nonblock from its listener. */
struct rs_options {
	uint32_t send_bytes, recv_bytes; /* sizes of the rings */
	uint32_t sq_size, rq_size;       /* work requests */
	uint32_t inline_bytes;
	uint32_t iomaps;                 /* entries of the table that the peer may fill */
	struct linger linger;
	uint32_t keep_idle, keep_interval, keep_count;
	uint32_t tos;
	uint32_t reuse, v6only, keepalive, nodelay, oob_inline; /* flags */
	bool nonblock;
};

/* A descriptor and the identity of its file. A program that closes all descriptors may get another file
 * with the same number. Works for files with an inode of their own. */
struct rs_file {
	int fd;
	dev_t device;
	ino_t inode;
};

/* A waiting thread, in the list of each socket for which it waits; guarded by the lock of waiters.c. */
struct rs_waiter {
	struct rs_waiter *next;
	struct rs *rs;
	struct rs_file wake; /* the write end of its pipe */
};

/* The address and key of peer memory, as sent by the peer. Also the format of a grant in a table. */
struct rs_remote {
	uint64_t addr;
	uint32_t rkey;
	uint32_t bytes; /* entries, if it is a table */
};

/* State of the sending side. Positions count bytes since the connection began. */
struct rs_tx {
	uint8_t *ring;
	struct ibv_mr *mr;
	uint32_t bytes;
	uint64_t posted, completed;   /* positions in our ring */
	struct rs_remote target;      /* what is left of the half of the peer's ring that is being filled */
	uint32_t next_grant;          /* the entry of our table that will describe the next half */
	uint16_t sent, permitted;     /* number of the last DATA or IOMAP sent; and of the last that may be */
	uint32_t outstanding, slots;  /* work requests in the send queue; its size */
	bool ended;                   /* SHUTDOWN or DISCONNECT was posted, or will be */
};

/* State of the receiving side. */
struct rs_rx {
	uint8_t *ring;
	struct ibv_mr *mr;
	uint32_t bytes;
	uint64_t arrived, read;
	uint64_t granted;             /* position up to which the peer may write */
	struct rs_remote table;       /* the peer's table of grants */
	uint32_t next_grant;          /* its entry for the next grant */
	uint16_t messages;            /* number of the last DATA or IOMAP that arrived */
	uint32_t uncredited;          /* how many arrived since the last CREDITS */
	uint32_t receives;            /* messages that the peer may send before the next CREDITS */
	uint32_t *sends;              /* on iWARP, a buffer for each receive; the peer can't write there */
	bool ended;                   /* the peer sends no more */
};

struct rs_iomap {
	uint64_t offset;
	struct rs_remote buffer; /* bytes is 0 if the entry is unused */
};

#define RS_GRANTS 2u

/* The table that the peer writes, in this host's byte order. */
struct rs_table {
	struct rs_remote grants[RS_GRANTS];
	struct rs_iomap iomaps[];
};

/* A buffer mapped by riomap; index is its entry in the peer's table, or -1. */
struct rs_mapping {
	struct rs_mapping *next;
	struct ibv_mr *mr;
	void *buf;
	size_t length;
	int index;
};

struct rs_iomaps {
	struct rs_table *table;
	struct ibv_mr *mr;
	uint32_t entries;       /* for the peer's buffers */
	struct rs_remote peer;  /* the peer's table of our buffers */
	struct rs_mapping *mappings;
};

/* Backlog of a listening socket. */
struct rs_backlog {
	struct rs *first, **last; /* established sockets for raccept, linked by next */
	uint32_t waiting, limit;
};

/* Functions of socket types other than streams; the socket's lock is held. Functions of type int return 0,
 * or -1 with errno set. */
struct rs_kind {
	int type, protocol;
	void (*free)(struct rs *rs);
	int (*descriptor)(const struct rs *rs); /* becomes readable when there are completions */
	bool (*progress)(struct rs *rs);
	void (*arm)(struct rs *rs);
	void (*take_events)(struct rs *rs);     /* handles rdma_cm events, on the service thread (service.c) */
	bool (*can_send)(struct rs *rs);
	bool (*can_receive)(struct rs *rs);
	int (*bind)(struct rs *rs, struct sockaddr *to);
	int (*connect)(struct rs *rs, const struct sockaddr *addr, socklen_t length);
	int (*shutdown)(struct rs *rs, int how);
	void (*finish)(struct rs *rs);          /* called before the socket is closed */
	const struct sockaddr *(*peer_name)(const struct rs *rs); /* NULL: not connected */
	void (*own_name)(const struct rs *rs, struct sockaddr_storage *to);
	ssize_t (*send)(struct rs *rs, const struct iovec *iov, int count, int flags, const struct sockaddr *to,
		socklen_t length);
	ssize_t (*receive)(struct rs *rs, const struct iovec *iov, int count, int flags, struct sockaddr *from,
		socklen_t *length,
			   size_t *all); /* all: full length of the message */
};

struct rs_datagrams;

struct rs {
	pthread_mutex_t lock;
	int fd;
	struct rs_file file; /* identifies fd */
	int second;          /* a descriptor for the service thread: a datagram socket's UDP socket, a stream's keepalive
			      * timer; or -1 */
	unsigned references; /* guarded by the table's lock */
	int domain;
	enum rs_state state;
	struct rs_options options;
	int error;           /* SO_ERROR */
	bool closed;         /* rclose was called */
	bool broken;         /* the connection has ended */
	bool iwarp;
	bool silent;         /* who accepts on iWARP sends nothing before the peer has (RFC 5044 section 7.1.1) */
	bool swapped;        /* the peer has the other byte order */
	bool reset_reported;     /* ECONNRESET was reported to the program */
	bool no_receive;     /* rshutdown(SHUT_RD) */
	bool disconnecting;  /* DISCONNECT was posted */
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_path_data *route; /* RDMA_ROUTE */
	socklen_t route_bytes;
	struct rs_waiter *waiters;
	struct rs_tx tx;
	struct rs_rx rx;
	struct rs_iomaps io;
	const struct rs_kind *kind;     /* NULL: a stream */
	struct rs_datagrams *datagrams; /* type SOCK_DGRAM; else NULL */
	struct rs_backlog backlog;
	struct rs *listener, *next; /* while it is in its listener's backlog */
	struct rs *next_served;     /* while the service thread (service.c) serves the socket, */
	bool served;                /* or is about to */
};

static inline int rs_fail(int error)
{
	errno = error;
	return -1;
}

/* ---- system.c -------------------------------------------------------------------- */

/* Between these calls signals and cancellation are blocked; they don't nest. */
void rs_block_signals(void);
void rs_unblock_signals(void);
/* ppoll(2) with signals and cancellation unblocked. */
int rs_sys_poll(struct pollfd *fds, nfds_t n, int64_t wait_ns);
int rs_raw_close(int fd);
struct rs_file rs_file_of(int fd);
bool rs_is_open(const struct rs_file *file);
int64_t rs_now_ns(void);

/* ---- table.c: sockets by descriptor ------------------------------------------ */

/* Allocates a socket with an event channel, not yet in the table; NULL with errno set on failure. */
struct rs *rs_new(int domain, const struct rs_options *options);
int rs_enter(struct rs *rs); /* 0, or -1 with errno set */
/* Finds the socket of a descriptor, takes a reference and its lock, and blocks signals; NULL with EBADF if
 * there is none. */
struct rs *rs_take(int fd);
/* Like rs_take, without the lock. */
struct rs *rs_hold(int fd);
void rs_drop(struct rs *rs);         /* releases lock and reference, unblocks signals */
void rs_release(struct rs *rs);
void rs_leave_table(struct rs *rs);
void rs_free(struct rs *rs);         /* with everything that it owns */
/* Returns whether the descriptor is an rsocket created by a parent of this process. */
bool rs_inherited(int fd);

/* ---- defaults.c ---------------------------------------------------------------- */

const struct rs_options *rs_defaults(void);
unsigned rs_polling_us(void);
int rs_wake_interval_ms(void);

/* ---- setup.c: queues, memory and the private data exchanged by the ends ------------------ */

struct rs_hello { /* private data of connection request and reply, in network byte order */
	uint8_t version, flags;
	uint16_t credits;
	uint8_t reserved[3], iomaps;  /* iomaps: see setup.c */
	struct rs_remote table, ring; /* the table of grants; the first half of the ring */
};

/* Allocates and registers memory; NULL with errno set on failure. */
struct ibv_mr *rs_map_region(struct ibv_pd *pd, size_t bytes, int access);
void rs_unmap_region(struct ibv_mr *mr); /* mr may be NULL */
int rs_make_queues(struct rs *rs);   /* returns 0 or an errno value */
void rs_release_queues(struct rs *rs);
/* Takes over what the peer states; false if it is not an rsocket. */
bool rs_hello_read(struct rs *rs, const struct rdma_conn_param *param);
void rs_fill_param(const struct rs *rs, struct rs_hello *hello, struct rdma_conn_param *param);

/* ---- events.c --------------------------------------------------------------------- */

/* Handles the connection's events that have arrived; the lock is held. */
void rs_take_events(struct rs *rs);
/* Returns the errno value for an event that ends an attempt to connect. */
int rs_event_error(const struct rdma_cm_event *event);

/* ---- progress.c: the completion queue; the lock is held ---------------------------- */

enum { RS_DATA, RS_CREDITS = 4, RS_IOMAP = 6, RS_CONTROL = 7 }; /* types of messages */
enum { RS_DISCONNECT, RS_SHUTDOWN = 2 };                         /* of type CONTROL; 1 is ignored */

/* Processes completions; returns true if there were any. */
bool rs_progress(struct rs *rs);
/* Arms the completion queue, so that a completion makes the channel readable. */
void rs_arm(struct rs *rs);
void rs_arm_queue(struct ibv_cq *cq, struct ibv_comp_channel *channel);
/* The functions that post return 0 or an errno value; after an error the connection has ended. */
int rs_post(struct rs *rs, struct ibv_send_wr *wr);
int rs_post_receive(struct rs *rs, uint64_t i);
/* Posts a Write, which may be empty, and a message. */
int rs_post_message(struct rs *rs, struct ibv_send_wr *write, unsigned type, uint32_t value);
int rs_post_control(struct rs *rs, uint32_t value);
/* Posts an empty Write without a message, unless it has to wait. */
void rs_post_keepalive(struct rs *rs);
/* Writes a grant or an iomap, of so many bytes, into the peer's table, and posts a message. */
int rs_post_entry(struct rs *rs, void *entry, uint32_t bytes, const struct rs_remote *table, uint32_t index,
	unsigned type, uint32_t value);
struct rs_remote rs_swap(struct rs_remote r, bool swap); /* reverses the byte order if swap is set */
/* Grants the peer half of the ring, if it was read, and credits, if half of them were used. */
void rs_grant(struct rs *rs);
uint32_t rs_credits(const struct rs *rs);      /* DATA and IOMAP messages that may be sent */
uint32_t rs_send_room(const struct rs *rs);    /* bytes that the next DATA may have; 0: none */
/* contiguous free bytes of our ring; 0 if no work request can be posted */
uint32_t rs_local_room(const struct rs *rs);
void rs_break(struct rs *rs, int error);       /* ends the connection; error says why, if it ended too early */

#define RS_CONTROL_SLOTS 8u  /* send queue slots for messages other than DATA */
#define RS_SPARE_RECEIVES 8u /* on iWARP, receives for such messages */

/* The number of receives, and of their buffers. */
static inline uint32_t rs_receives(const struct rs *rs)
{
	return rs->rx.receives + (rs->iwarp ? RS_SPARE_RECEIVES : 0);
}

/* ---- waiters.c ---------------------------------------------------------------- */

/* Prepares this thread to wait for at most so many sockets. Returns its pipe, or -1 with errno set. Ends
 * an earlier wait of this thread, also one that a signal handler has interrupted. */
int rs_begin_wait(size_t sockets);
void rs_add_waiter(struct rs *rs); /* the socket's lock is held */
void rs_end_wait(void);
void rs_drain(void);               /* empties this thread's pipe */
void rs_signal(struct rs *rs);     /* wakes all threads that wait; the socket's lock is held */

/* ---- wait.c --------------------------------------------------------------------------- */

/* Waits, without the lock, until ready(rs) or rs->closed. until_ns: CLOCK_MONOTONIC, -1 for ever. Returns
 * 0, ETIMEDOUT, EINTR or another errno value. */
int rs_wait(struct rs *rs, bool (*ready)(struct rs *rs), int64_t until_ns);
/* Returns whether a call with these flags of send(2) must not wait. */
bool rs_at_once(const struct rs *rs, int flags);
/* Waits for ever, or returns EAGAIN if a call with these flags must not wait. */
int rs_wait_unless(struct rs *rs, bool (*ready)(struct rs *rs), int flags);
/* Returns the descriptors, at most two, that become readable when the socket has events. */
int rs_descriptors(const struct rs *rs, int fds[2]);
static inline bool rs_is_connecting(const struct rs *rs)
{
	return rs->state == RS_RESOLVING_ADDR || rs->state == RS_RESOLVING_ROUTE || rs->state == RS_CONNECTING;
}

/* ---- vectors.c ------------------------------------------------------------------------ */

/* The position of the next byte in the program's vectors. */
struct rs_cursor {
	const struct iovec *iov;
	int left;      /* vectors left, iov included */
	size_t offset; /* offset in iov */
};

/* Copies up to n bytes from or to contiguous memory. Returns the number of bytes. */
size_t rs_move(struct rs_cursor *c, uint8_t *flat, size_t n, bool out);
/* Returns the number of bytes in all vectors; -1 with errno set on failure. */
ssize_t rs_length(const struct iovec *iov, int count);

/* ---- stream.c ------------------------------------------------------------------------- */

/* Waits until the attempt to connect ends, or returns EAGAIN if a call with these flags must not wait. */
int rs_await_connection(struct rs *rs, int flags);
ssize_t rs_send(struct rs *rs, const struct iovec *iov, int count, int flags);
ssize_t rs_receive(struct rs *rs, const struct iovec *iov, int count, int flags);
bool rs_can_send(struct rs *rs);
bool rs_can_receive(struct rs *rs);
/* Copies n bytes into our send ring, which has that much contiguous space. */
void *rs_stage(struct rs *rs, const void *from, uint32_t n);

/* ---- socket.c ------------------------------------------------------------------------- */

bool rs_all_sent(struct rs *rs); /* also true if nothing more can be sent */

/* ---- service.c ------------------------------------------------------------------------ */

/* Lets the service thread serve a socket. The socket's lock is released meanwhile, because the thread's
 * lock must be taken first. Returns 0, or -1 with errno set. */
int rs_serve(struct rs *rs);
void rs_stop_serving(struct rs *listener);
/* Has the thread answer requests for a listener as long as its backlog has room. */
void rs_watch_backlog(struct rs *listener);

/* ---- keepalive.c --------------------------------------------------------------------- */

/* Has the service thread send keepalives of a stream as its options say. The lock is released meanwhile (rs_serve).
 * Returns 0, or -1 with errno set. */
int rs_set_keepalive(struct rs *rs);

/* ---- names.c ------------------------------------------------------------------------- */

void rs_write_name(const struct rs *rs, const struct sockaddr *from, struct sockaddr *to, socklen_t *length);
/* Reads an address given by the program; false if it is too short. */
bool rs_read_name(const struct sockaddr *from, socklen_t length, struct sockaddr_storage *to);

/* ---- datagrams/ ---------------------------------------------------------------------------- */

/* Makes a new socket a datagram socket. Returns 0, or -1 with errno set. */
int rs_datagram_make(struct rs *rs);

#endif /* URDMA_RSOCKETS_H */
