/*
 * cm.h - what the files of the librdmacm half share.
 *
 * urdmad keeps the state machine of every id, as the kernel's rdma_ucm does;
 * this side keeps what a program can see: the public structures, which id a
 * handle means, and how many events of an id await their acknowledgement.
 *
 * One mutex (cm_lock) guards the id table, the event counts and the channel
 * lists. It is never held across a blocking call, and cancellation is off
 * while it is held: programs cancel threads that wait for events.
 */
#ifndef URDMA_CM_H
#define URDMA_CM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "../internal.h"
#include "../session/kept.h"
#include "../session/readers.h"

/* Ends a public call: 0, or -1 with errno. */
static inline int cm_result(int error)
{
	return error ? urdma_fail(error) : 0;
}

/* ---- devices.c: devices as ids see them ------------------------------------ */

/* The protection domain, and the XRC domain, of all ids of a context that bring none;
 * NULL: errno. */
struct ibv_pd *cm_shared_pd(struct ibv_context *verbs);
struct ibv_xrcd *cm_shared_xrcd(struct ibv_context *verbs);

/* In a child: those are its parent's, and another thread of that may have held their
 * lock. */
void cm_devices_forked(void);

/* The most RDMA Reads outstanding each way on one queue pair of the device. */
uint8_t cm_device_depth(const struct ibv_context *verbs);

/* Whether the id's device, which it has, is shown as one whose connections InfiniBand's
 * communication management makes: InfiniBand or RoCE. */
static inline bool cm_uses_ibcm(const struct rdma_cm_id *id)
{
	return id->verbs->device->transport_type == IBV_TRANSPORT_IB;
}

/* What its requests, replies and rejects have room for beside rdma_cm's header, in bytes: of
 * connections, and of lookups of datagrams' services (the kernel's include/rdma/ib_cm.h). */
enum { CM_REQUEST = 56, CM_REPLY = 196, CM_REJECT = 148, CM_LOOKUP = 180, CM_FOUND = 136 };

/* ---- channel.c ------------------------------------------------------------ */

/* An event message read already, waiting for its reader. */
struct cm_pending {
	STAILQ_ENTRY(cm_pending) next;
	struct urdma_abi_cm_event message;
};

STAILQ_HEAD(cm_pendings, cm_pending);

struct cm_channel {
	struct rdma_event_channel public; /* what the program holds */
	struct urdma_client *client;
	struct urdma_kept events; /* public.fd */
	uint32_t handle;
	bool hung_up;  /* urdmad is gone: removal events were made */
	struct urdma_readers readers; /* in rdma_get_cm_event */
	bool stale;    /* events of destroyed ids may lie in the socket */
	struct cm_pendings pending; /* what rdma_get_cm_event returns next */
};

struct cm_channel *cm_channel_of(struct rdma_event_channel *channel);

/* Out of memory: NULL. */
struct cm_pending *cm_pending_new(const struct urdma_abi_cm_event *message);

/* Appends a message to the events that the channel returns next; cm_lock held.
 * Out of memory loses it. A thread that polls the socket learns of it by cm_channel_wake. */
void cm_channel_push(struct cm_channel *channel,
		     const struct urdma_abi_cm_event *message);

/* Has the channel's socket be readable while events are pending; without cm_lock. */
void cm_channel_wake(struct cm_channel *channel);

/* A reader goes; the last one to leave an abandoned channel frees it. */
void cm_channel_leave(void *channel);

/* Waits, as a reader, until the channel may have a message. 0 or an errno
 * value: EAGAIN on a non-blocking channel, EINTR, EBADF on an abandoned one. */
int cm_channel_wait(struct cm_channel *channel);

/* Takes the next message, pending or from the socket, without waiting. 0 or an
 * errno value: EAGAIN when there is none, ENODEV once urdmad has gone and every
 * removal event was returned; cm_lock held. */
int cm_channel_poll(struct cm_channel *channel,
		    struct urdma_abi_cm_event *message);

/* Discards messages of unknown ids at the socket's head, so that a poll for
 * readability does not promise them; cm_lock held. */
void cm_channel_skip_stale(struct cm_channel *channel);

/* Notes a message that nobody will take, with cm_lock held: the new id of a
 * connection request is dropped in urdmad by the release, without it. */
void cm_orphan(struct cm_channel *channel,
	       const struct urdma_abi_cm_event *message);
void cm_orphans_release(void);

/* ---- id.c ------------------------------------------------------------------ */

struct cm_id {
	struct rdma_cm_id public; /* what the program holds */
	struct urdma_client *client;
	uint32_t handle;
	uint32_t device;          /* URDMA_ABI_NO_DEVICE while not bound to one */
	struct cm_id *next;       /* in its bucket of the table */
	struct cm_channel *moving; /* where rdma_migrate_id is taking it, or NULL */
	struct cm_pendings arrived; /* events that came there ahead of it */
	bool migrated;            /* it was once; requests to it may name the old channel */
	unsigned reported;        /* events that rdma_get_cm_event returned */
	unsigned acknowledged;    /* of those; both guarded by cm_lock */
	bool sync;                /* calls wait for their event */
	bool connected;           /* ESTABLISHED seen, DISCONNECTED not */
	bool active;              /* rdma_connect was called */
	bool ipv6;                /* its program gave, and reads, addresses of IPv6 */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t ack_timeout;      /* RDMA_OPTION_ID_ACK_TIMEOUT, or 18: what the kernel takes for RoCE */
	uint32_t peer_qp_num;     /* as the request or its answer told it */
	uint32_t qp_handle;       /* of the queue pair that was connected or accepted */
	struct ibv_qp_init_attr *passive_attr; /* of rdma_create_ep, for requests */
	uint8_t *connect_data;    /* ai_connect, sent ahead of private data */
	size_t connect_length;
	struct cm_group *groups;  /* joined */
};

/* Take and release cm_lock; cancellation is off in between. */
void cm_lock(int *cancel_state);
void cm_unlock(int cancel_state);

struct cm_id *cm_id_of(struct rdma_cm_id *id);

/* The id with a handle on a connection, or NULL; cm_lock held. */
struct cm_id *cm_id_find(const struct urdma_client *client, uint32_t handle);

/* A request that carries the id and a value, answered by a bare header. */
int cm_id_call(struct cm_id *id, enum urdma_abi_type type, uint32_t value);

/* Calls visit for each id; cm_lock held. */
void cm_id_each(void (*visit)(struct cm_id *id, void *argument), void *argument);

/* A zeroed id with a handle of urdmad's, entered in the table; NULL: no memory. */
struct cm_id *cm_id_new(struct rdma_event_channel *channel, void *context,
			enum rdma_port_space ps, enum ibv_qp_type qp_type,
			uint32_t handle);

/* Takes an id out of the table and frees it; urdmad and its events are done. */
void cm_id_free(struct cm_id *id);

/* Waits until every event of the id was acknowledged; counts one that was. */
void cm_id_wait_acknowledged(struct cm_id *id);
void cm_id_acknowledge(struct cm_id *id);

/* Creates an id as rdma_create_id does, with a queue pair type of its own. */
int cm_id_create(struct rdma_event_channel *channel, struct rdma_cm_id **id,
		 void *context, enum rdma_port_space ps,
		 enum ibv_qp_type qp_type);

/* Binds the public id to a device: verbs, port_num, pd. 0 or an errno value. */
int cm_id_attach(struct cm_id *id, uint32_t device);

/* ---- event.c ---------------------------------------------------------------- */

/* Ends a call that an event answers, unless it failed already: waits for that in
 * synchronous mode. Returns 0 or -1 with errno, as every public call does. */
int cm_complete(struct cm_id *id, int error);

/* Acknowledges the event that a synchronous id holds. */
void cm_drop_event(struct rdma_cm_id *id);

/* ---- address.c --------------------------------------------------------------- */

/* Reads a program's address, to bind to or to resolve; an IPv4-mapped one is that of
 * IPv4. 0, EINVAL for no address at all, EAFNOSUPPORT for another family. */
int cm_address_read(const struct sockaddr *from, struct urdma_abi_addr *to);

void cm_address_write(const struct urdma_abi_addr *from, struct sockaddr *to);

/* The GID that an address is, one of IPv4 mapped. */
void cm_address_gid(const struct urdma_abi_addr *from, uint8_t gid[16]);

/* Writes the id's own address, in the family that its program uses. */
void cm_address_local(struct cm_id *id, const struct urdma_abi_addr *local);

/* Adopts what CM_BIND and CM_LISTEN answered: address, port number, device. */
int cm_address_bound(struct cm_id *id, const struct urdma_abi_cm_bound *bound);

/* ---- datagram.c --------------------------------------------------------------- */

/* Whether the id's queue pairs are of type UD. */
bool cm_is_datagram(const struct rdma_cm_id *id);

/* The states that a fresh queue pair of the id is moved to. */
void cm_first_moves(const struct rdma_cm_id *id, struct urdma_queues *wanted);

/* What of a message a program is told but the private data. */
void cm_datagram_param(const struct rdma_cm_id *id, const struct urdma_abi_cm_event *message, struct rdma_ud_param *to);

/* ---- multicast.c -------------------------------------------------------------- */

/* What MULTICAST_JOIN tells a program. */
void cm_group_joined(const struct rdma_cm_id *id, const struct urdma_abi_cm_event *message, struct rdma_ud_param *to);

/* Before the id's queue pair goes, and before the id does. */
void cm_groups_detach(struct rdma_cm_id *id);
void cm_groups_free(struct cm_id *id);

/* ---- qpstate.c ---------------------------------------------------------------- */

/* The handle of the id's queue pair, or of the one of this process that has
 * the number, or NO_HANDLE. */
uint32_t cm_qp_named(struct cm_id *id, uint32_t qp_num);

/* Reflects in the connection's queue pair, if it still exists, where urdmad
 * moved it. */
void cm_qp_moved(struct cm_id *id, enum ibv_qp_state state);

/* ---- qp.c ---------------------------------------------------------------------- */

/* The attributes that move a queue pair of the id to INIT, and their mask. */
void cm_init_attr(const struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask);

#endif /* URDMA_CM_H */
