/*
 * internal.h - what the parts of liburdma.so promise one another. The
 * libibverbs part (this folder) provides it; the librdmacm part (cm/) builds
 * on it; pages/ needs none of it.
 *
 * Errors: a function that returns int returns 0 or an errno value unless its
 * comment says otherwise; one that returns a pointer returns NULL and sets
 * errno.
 */
#ifndef URDMA_INTERNAL_H
#define URDMA_INTERNAL_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../abi/urdma_abi.h"
#include "lock.h"

/* A function that programs may call. The library is built with hidden
 * visibility; liburdma.map gives the symbol its version node. */
#define URDMA_EXPORT __attribute__((visibility("default")))

/* close(2) is a cancellation point, and locks may be held. */
static inline void urdma_close(int fd)
{
	syscall(SYS_close, fd);
}

/* ---- log.c --------------------------------------------------------------- */

/* One line on stderr if URDMA_LOG=1; no newline in the format. */
void urdma_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* One line on stderr always: for what the user must know to go on. */
void urdma_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- client.c: the connection to urdmad ----------------------------------- */

/*
 * One connection of this process to urdmad. It is never freed: objects made
 * through it keep the pointer. When urdmad dies or in the child after fork()
 * the connection is over; every call on it then fails, and the next
 * urdma_client_get makes a new one with no objects in it.
 */
struct urdma_client;

/* The current connection, made if need be. NULL and errno (ENODEV: no urdmad,
 * EPROTO: it speaks another version). */
struct urdma_client *urdma_client_get(void);

/* False once urdmad is known to be gone, and in a child after fork(). A load. */
bool urdma_client_alive(const struct urdma_client *client);

/* Asks the control socket whether urdmad still lives (one poll(2)); marks the
 * connection over if not. */
bool urdma_client_probe(struct urdma_client *client);

/* The same when an event socket hung up: gives the control socket 0.2 s to do
 * so too. */
bool urdma_client_check(struct urdma_client *client);

uint32_t urdma_client_devices(const struct urdma_client *client);

/*
 * One request and its response. The caller fills all but the header of the
 * request; response may be NULL when only the status counts. Blocks until
 * urdmad answered; any thread may call. Returns 0, the errno value urdmad
 * answered, EIO if the connection is over, EPROTO for an answer of the wrong
 * length.
 */
int urdma_call(struct urdma_client *client, enum urdma_abi_type type, void *request,
	       size_t request_length, void *response, size_t response_length);

/* The same with descriptors: send_fd is passed along unless it is -1; exactly
 * want descriptors (<= URDMA_ABI_MAX_FDS) are expected in the answer and
 * stored in fds, close-on-exec; the caller owns them. */
int urdma_call_fds(struct urdma_client *client, enum urdma_abi_type type, void *request,
		   size_t request_length, void *response, size_t response_length, int send_fd,
		   int *fds, int want);

/* urdma_call for requests that are a struct urdma_abi_handle and are answered
 * by a bare header. */
int urdma_call_handle(struct urdma_client *client, enum urdma_abi_type type, uint32_t handle);

/*
 * Reads one event message of exactly size bytes from an event socket that
 * urdmad handed out. Returns 1 with an event; 0 when the socket hung up (then
 * call urdma_client_check and report the loss); -1 with errno (EAGAIN if the
 * program made the descriptor non-blocking and nothing is there, EINTR).
 * A message of any other size is dropped.
 */
int urdma_event_read(int fd, void *event, size_t size);

/* ---- handles.c: handle to object, per connection ----------------------------- */

enum urdma_kind {
	URDMA_KIND_CQ,
	URDMA_KIND_QP,
	URDMA_KIND_SRQ,
	URDMA_KIND_CM_ID,
	URDMA_KIND_CM_CHANNEL,
};

/*
 * An event names an object by its handle. To use what find returns while
 * another thread may destroy it: lock, find, count the event in the object,
 * unlock; the destroyer removes the handle first and then waits until every
 * counted event was acknowledged. add, remove and find take the lock (which is
 * recursive for find between lock and unlock).
 */
int urdma_handles_add(struct urdma_client *client, enum urdma_kind kind, uint32_t handle, void *object);
void urdma_handles_remove(struct urdma_client *client, enum urdma_kind kind, uint32_t handle);
void urdma_handles_lock(struct urdma_client *client);
void urdma_handles_unlock(struct urdma_client *client);
/* NULL (no errno) for a handle this process does not know: a late event. */
void *urdma_handles_find(struct urdma_client *client, enum urdma_kind kind, uint32_t handle);

/* ---- device.c, context.c -------------------------------------------------------- */

/* What urdmad says about device number device, read when the connection was
 * made; transport is already the one this process shows (URDMA_TRANSPORT). */
const struct urdma_abi_device *urdma_device_info(const struct urdma_client *client, uint32_t device);

/* The context of a device that rdma_cm uses: opened at the first call, shared
 * by all ids, never closed. What cm_id->verbs points to. */
struct ibv_context *urdma_device_context(struct urdma_client *client, uint32_t device);

struct urdma_client *urdma_context_client(const struct ibv_context *context);
uint32_t urdma_context_device(const struct ibv_context *context);
const struct urdma_abi_device *urdma_context_info(const struct ibv_context *context);

/* Entry index of the port's GID table as this process shows it. EINVAL past the end. */
int urdma_context_gid(const struct ibv_context *context, uint32_t index, union ibv_gid *gid);

/* ---- objects ----------------------------------------------------------------------- */

/*
 * pd->handle, cq->handle, qp->handle and mr->handle are urdmad's handles, and
 * qp->qp_num is the QPN on the wire. An object belongs to the connection of
 * its context: urdma_context_client(qp->context).
 */
static inline uint32_t urdma_qp_handle(const struct ibv_qp *qp)
{
	return qp ? qp->handle : URDMA_ABI_NO_HANDLE;
}

/*
 * Records a state that urdmad already moved the queue pair to (no request is
 * sent). rdma_cm: INIT when rdma_create_qp returns, RTS when accept was sent
 * or ESTABLISHED arrived, ERR on disconnect. Without it nothing breaks: a post
 * to a queue pair that looks unconnected asks urdmad first.
 */
void urdma_qp_set_state(struct ibv_qp *qp, enum ibv_qp_state state);

/*
 * Locks, outermost first: rdma_cm's own; a completion queue's lock (lock.h; only
 * ibv_resize_cq holds one across a request); the mutex inside urdma_call*. A
 * queue pair's locks are held across no other. The handle table's lock may be
 * held across find and the counting of an event, nothing else.
 */

#endif /* URDMA_INTERNAL_H */
