/*
 * cm.h - declarations shared by the files of the librdmacm part.
 *
 * urdmad holds the state machine of each id, as the kernel's rdma_ucm does. This side holds the data that
 * a program can see: the public structures, the table from handles to ids, and the number of events of
 * each id that await acknowledgement.
 *
 * One mutex (cm_lock) guards the id table, the event counts and the channel lists. It is not held across a
 * blocking call, and cancellation is disabled while it is held, because programs cancel threads that wait
 * for events.
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

/* The return value of a public function: 0, or -1 with errno set. */
static inline int cm_result(int error)
{
	return error ? urdma_fail(error) : 0;
}

/* ---- devices.c: devices as ids see them ------------------------------------ */

/* Returns the protection domain, or the XRC domain, that ids of a context share if they have none of their
 * own; NULL with errno set on failure. */
struct ibv_pd *cm_shared_pd(struct ibv_context *verbs);
struct ibv_xrcd *cm_shared_xrcd(struct ibv_context *verbs);

/* Called in a child after fork: discards the domains, which belong to the parent, and initialises their
 * lock, which another thread of the parent may have held. */
void cm_devices_forked(void);

/* The maximum number of outstanding RDMA Reads in each direction on a queue pair of the device. */
uint8_t cm_device_depth(const struct ibv_context *verbs);

/* Returns whether the id's device is shown as InfiniBand or RoCE, whose connections are made by
 * InfiniBand's connection manager. The id must have a device. */
static inline bool cm_uses_ibcm(const struct rdma_cm_id *id)
{
	return id->verbs->device->transport_type == IBV_TRANSPORT_IB;
}

/* Bytes of private data in InfiniBand's messages after rdma_cm's header: in those for connections and
 * those for service ID resolution (the kernel's include/rdma/ib_cm.h). */
enum { CM_REQUEST = 56, CM_REPLY = 196, CM_REJECT = 148, CM_LOOKUP = 180, CM_FOUND = 136 };

/* ---- channel.c ------------------------------------------------------------ */

/* An event message that was read but not yet returned to the program. */
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
	bool hung_up;  /* urdmad has ended; the removal events were added to pending */
	struct urdma_readers readers; /* in rdma_get_cm_event */
	bool stale;    /* events of destroyed ids may be left in the socket */
	struct cm_pendings pending; /* what rdma_get_cm_event returns next */
};

struct cm_channel *cm_channel_of(struct rdma_event_channel *channel);

/* Returns NULL if there is no memory. */
struct cm_pending *cm_pending_new(const struct urdma_abi_cm_event *message);

/* Appends a message to the events that the channel returns next; cm_lock is held. The message is lost if
 * there is no memory. The caller must call cm_channel_wake afterwards, for threads that poll the socket. */
void cm_channel_push(struct cm_channel *channel,
		     const struct urdma_abi_cm_event *message);

/* Makes the channel's socket readable while events are pending; cm_lock is not held. */
void cm_channel_wake(struct cm_channel *channel);

/* A reader leaves; the last one to leave a destroyed channel frees it. */
void cm_channel_leave(void *channel);

/* Waits, as a reader, until the channel may have a message. Returns 0 or an errno value: EAGAIN on a
 * non-blocking channel, EINTR, or EBADF if the channel was destroyed. */
int cm_channel_wait(struct cm_channel *channel);

/* Takes the next message, pending or from the socket, without waiting; cm_lock is held. Returns 0 or an
 * errno value: EAGAIN if there is none, ENODEV if urdmad has ended and every removal event was returned. */
int cm_channel_poll(struct cm_channel *channel,
		    struct urdma_abi_cm_event *message);

/* Discards messages of unknown ids at the head of the socket, so that it is not readable because of them
 * alone; cm_lock is held. */
void cm_channel_skip_stale(struct cm_channel *channel);

/* Records the new id of a connection request that no listener will take; cm_lock is held.
 * cm_orphans_release destroys these ids in urdmad; cm_lock is not held then. */
void cm_orphan(struct cm_channel *channel,
	       const struct urdma_abi_cm_event *message);
void cm_orphans_release(void);

/* ---- id.c ------------------------------------------------------------------ */

struct cm_id {
	struct rdma_cm_id public; /* what the program holds */
	struct urdma_client *client;
	uint32_t handle;
	uint32_t device;          /* URDMA_ABI_NO_DEVICE while the id is not bound to one */
	struct cm_id *next;       /* next in its bucket of the table */
	struct cm_channel *moving; /* the channel to which rdma_migrate_id is moving the id, or NULL */
	struct cm_pendings arrived; /* events that came on the new channel before the move was complete */
	bool migrated;            /* the id has been migrated; connection requests to it may name the old channel */
	unsigned reported;        /* events that rdma_get_cm_event returned */
	unsigned acknowledged;    /* events acknowledged; reported and acknowledged are guarded by cm_lock */
	bool sync;                /* synchronous: calls wait for their event */
	bool connected;           /* ESTABLISHED was seen, DISCONNECTED was not */
	bool active;              /* rdma_connect was called */
	bool ipv6;                /* the program uses IPv6 addresses, possibly IPv4-mapped ones */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t ack_timeout;      /* RDMA_OPTION_ID_ACK_TIMEOUT; default 18, as the kernel has for RoCE */
	uint32_t peer_qp_num;     /* from the connection request or its reply */
	uint32_t qp_handle;       /* the queue pair named in connect or accept */
	struct ibv_qp_init_attr *passive_attr; /* from rdma_create_ep, for the queue pairs of connection requests */
	uint8_t *connect_data;    /* ai_connect, sent in front of the private data */
	size_t connect_length;
	struct cm_group *groups;  /* multicast groups that the id has joined */
};

/* Take and release cm_lock; cancellation is disabled while it is held. */
void cm_lock(int *cancel_state);
void cm_unlock(int cancel_state);

struct cm_id *cm_id_of(struct rdma_cm_id *id);

/* Returns the id with this handle, or NULL; cm_lock is held. */
struct cm_id *cm_id_find(const struct urdma_client *client, uint32_t handle);

/* Sends a request that consists of the id's handle and a value, and whose response has no data. */
int cm_id_call(struct cm_id *id, enum urdma_abi_type type, uint32_t value);

/* Calls visit for each id; cm_lock is held. */
void cm_id_each(void (*visit)(struct cm_id *id, void *argument), void *argument);

/* Allocates a zeroed id with the given handle and enters it in the table. Returns NULL if there is no
 * memory. */
struct cm_id *cm_id_new(struct rdma_event_channel *channel, void *context,
			enum rdma_port_space ps, enum ibv_qp_type qp_type,
			uint32_t handle);

/* Removes an id from the table and frees it. urdmad has destroyed the id, and no event of it is left. */
void cm_id_free(struct cm_id *id);

/* Waits until every event of the id was acknowledged. cm_id_acknowledge counts one acknowledgement. */
void cm_id_wait_acknowledged(struct cm_id *id);
void cm_id_acknowledge(struct cm_id *id);

/* Like rdma_create_id, with an explicit queue pair type. */
int cm_id_create(struct rdma_event_channel *channel, struct rdma_cm_id **id,
		 void *context, enum rdma_port_space ps,
		 enum ibv_qp_type qp_type);

/* Binds the public id to a device: sets verbs, port_num and pd. Returns 0 or an errno value. */
int cm_id_attach(struct cm_id *id, uint32_t device);

/* ---- event.c ---------------------------------------------------------------- */

/* The end of a call that is completed by an event. In synchronous mode waits for the event, unless error
 * is set. Returns 0, or -1 with errno set, as public functions do. */
int cm_complete(struct cm_id *id, int error);

/* Acknowledges the event that a synchronous id still holds. */
void cm_drop_event(struct rdma_cm_id *id);

/* ---- address.c --------------------------------------------------------------- */

/* Reads the address to bind to or to resolve; an IPv4-mapped one becomes IPv4. Returns 0, EINVAL if there
 * is no address, or EAFNOSUPPORT for other families. */
int cm_address_read(const struct sockaddr *from, struct urdma_abi_addr *to);

void cm_address_write(const struct urdma_abi_addr *from, struct sockaddr *to);

/* Converts an address to a GID; an IPv4 address is mapped into IPv6. */
void cm_address_gid(const struct urdma_abi_addr *from, uint8_t gid[16]);

/* Writes the id's own address to the public id, in the family that the program uses. */
void cm_address_local(struct cm_id *id, const struct urdma_abi_addr *local);

/* Stores the response to CM_BIND or CM_LISTEN in the id: address, port number, device. */
int cm_address_bound(struct cm_id *id, const struct urdma_abi_cm_bound *bound);

/* ---- datagram.c --------------------------------------------------------------- */

/* Whether the id's queue pairs are of type UD. */
bool cm_is_datagram(const struct rdma_cm_id *id);
/* Fills in the path to an address: by LID or by GID, depending on how the device is shown. */
void cm_path_to(const struct rdma_cm_id *id, const struct urdma_abi_addr *peer, struct ibv_ah_attr *attr);

/* Returns the states through which a new queue pair of the id is moved. */
void cm_first_moves(const struct rdma_cm_id *id, struct urdma_queues *wanted);

/* Copies the connection parameters of a datagram id's message, without the private data. */
void cm_datagram_param(const struct rdma_cm_id *id, const struct urdma_abi_cm_event *message, struct rdma_ud_param *to);

/* ---- multicast.c -------------------------------------------------------------- */

/* Fills in the event's parameters from a MULTICAST_JOIN message. */
void cm_group_joined(const struct rdma_cm_id *id, const struct urdma_abi_cm_event *message, struct rdma_ud_param *to);

/* Detaches the id's queue pair from its groups: before the queue pair or the id is destroyed. */
void cm_groups_detach(struct rdma_cm_id *id);
void cm_groups_free(struct cm_id *id);

/* ---- qpstate.c ---------------------------------------------------------------- */

/* Returns the handle of the id's queue pair. If it has none, returns the handle of this process's queue
 * pair with number qp_num, or NO_HANDLE. */
uint32_t cm_qp_named(struct cm_id *id, uint32_t qp_num);

/* Records the state to which urdmad moved the connection's queue pair, if that still exists. */
void cm_qp_moved(struct cm_id *id, enum ibv_qp_state state);

/* ---- qp.c ---------------------------------------------------------------------- */

/* Returns the attributes, and their mask, that move a queue pair of the id to INIT. */
void cm_init_attr(const struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask);

#endif /* URDMA_CM_H */
