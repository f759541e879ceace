/*
 * session.h - the session with urdmad: one connection of this process, its
 * requests and their answers, and which object a handle names. It knows no
 * object of libibverbs or librdmacm.
 *
 * Errors: a function that returns int returns 0 or an errno value unless its
 * comment says otherwise; one that returns a pointer returns NULL and sets
 * errno.
 */
#ifndef URDMA_SESSION_H
#define URDMA_SESSION_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../abi/urdma_abi.h"

/* close(2) is a cancellation point, and locks may be held. -1 is none. */
static inline void urdma_close(int fd)
{
	if (fd >= 0)
		syscall(SYS_close, fd);
}

/* ---- log.c --------------------------------------------------------------- */

/* One line on stderr if URDMA_LOG=1; no newline in the format. */
void urdma_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* One line on stderr always: for what the user must know to go on. */
void urdma_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- explain.c ----------------------------------------------------------- */

struct urdma_client;

/* URDMA_EXPLAIN is set: a failure that is found is explained. */
extern bool urdma_explain_wanted;
/* Writes a text's lines to stderr, and changes it. */
void urdma_complain_lines(const char *before, char *text);
/* Asks urdmad why, and writes its answer to stderr; number as of EXPLAIN, 0: nothing. Leaves errno
 * alone. */
void urdma_explain(struct urdma_client *client, uint32_t qpn, uint32_t number);
/* Returns error, EINVAL or EFAULT, for an argument that is refused without asking urdmad, and
 * explains it where that is wanted: the call, the argument, what it is and what is allowed. */
int urdma_wrong(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- warn.c -------------------------------------------------------------- */

/* URDMA_WARN is set: a mistake that has not failed yet is warned of. */
extern bool urdma_warn_wanted;
/* Warns of one, once for each place in the program: records it in urdmad, and writes what that
 * says of it to stderr; with URDMA_WARN=error the process ends. number: enum urdma_abi_pitfall;
 * qpn: or 0. client: NULL for the current one. Leaves errno alone. Makes a call. */
void urdma_warn(struct urdma_client *client, uint32_t qpn, uint32_t number, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

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

/* Facts about urdmad for a client that creates no objects. */
struct urdma_summary {
	char sysfs_path[256]; /* as ibv_get_sysfs_path(3) gives it */
	uint32_t devices;
	struct urdma_abi_device *info; /* of each */
};

/* Asked once a process; what urdmad said then. NULL and errno, as of
 * urdma_client_get. */
const struct urdma_summary *urdma_summary(void);

uint32_t urdma_client_devices(const struct urdma_client *client);

/* What urdmad says about device number device, read when the connection was
 * made; transport is already the one this process shows (URDMA_TRANSPORT). */
const struct urdma_abi_device *urdma_device_info(const struct urdma_client *client, uint32_t device);

/*
 * One request and its response. The caller fills all but the header of the
 * request; response may be NULL when only the status counts. Blocks until
 * urdmad answered; any thread may call. Returns 0 and leaves errno alone, or sets
 * it and returns: the errno value urdmad answered, EIO if the connection is over, EPROTO for an answer of the wrong
 * length.
 */
int urdma_call(struct urdma_client *client, enum urdma_abi_type type, void *request,
	       size_t request_length, void *response, size_t response_length);

/* The same with the sizes of what the pointers point to; and for a request that is
 * answered by a bare header. */
#define URDMA_ASK(client, type, request, response) \
	urdma_call(client, type, request, sizeof(*(request)), response, sizeof(*(response)))
#define URDMA_TELL(client, type, request) urdma_call(client, type, request, sizeof(*(request)), NULL, 0)

/* The same with descriptors: send_fd is passed along unless it is -1; exactly
 * want descriptors (<= URDMA_ABI_MAX_FDS) are expected in the answer and
 * stored in fds, close-on-exec; the caller owns them. */
int urdma_call_fds(struct urdma_client *client, enum urdma_abi_type type, void *request,
		   size_t request_length, void *response, size_t response_length, int send_fd,
		   int *fds, int want);

/* urdma_call for requests that are a struct urdma_abi_handle and are answered
 * by a bare header. */
int urdma_call_handle(struct urdma_client *client, enum urdma_abi_type type, uint32_t handle);

/* The same for a request that gives an object up: 0, too, once the connection is
 * over and the object with it. */
int urdma_call_destroy(struct urdma_client *client, enum urdma_abi_type type, uint32_t handle);

/* Ends a function that answers with an errno value: programs find it in errno as
 * well, as after the system call that it would be. */
static inline int urdma_status(int status)
{
	if (status)
		errno = status;
	return status;
}

/* End functions that fail so. */
static inline int urdma_fail(int error)
{
	errno = error;
	return -1;
}

static inline void *urdma_null(int error)
{
	errno = error;
	return NULL;
}

/*
 * Reads one event message of exactly size bytes from an event socket that
 * urdmad handed out. Returns 1 with an event; 0 when the socket hung up (then
 * call urdma_client_check and report the loss), in a child, whose parent's the
 * events are, and once the program has closed the socket; -1 with errno (EAGAIN if the program made the descriptor
 * non-blocking and nothing is there, EINTR). A message of any other size is dropped.
 */
struct urdma_kept;
int urdma_event_read(struct urdma_client *client, const struct urdma_kept *kept, void *event, size_t size);

/* ---- handles.c: handle to object, per connection ----------------------------- */

enum urdma_kind {
	URDMA_KIND_CQ,
	URDMA_KIND_QP,
	URDMA_KIND_SRQ,
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
/* Removes the handle and has urdmad destroy its object, which stays if that fails. */
int urdma_handles_destroy(struct urdma_client *client, enum urdma_kind kind, enum urdma_abi_type request, uint32_t handle,
			  void *object);
void urdma_handles_lock(struct urdma_client *client);
void urdma_handles_unlock(struct urdma_client *client);
/* NULL (no errno) for a handle this process does not know: a late event. */
void *urdma_handles_find(struct urdma_client *client, enum urdma_kind kind, uint32_t handle);

#endif /* URDMA_SESSION_H */
