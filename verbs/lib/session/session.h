/*
 * session.h - the session of this process with urdmad: requests, responses, and the table from handles to
 * objects. It knows no objects of libibverbs or librdmacm.
 *
 * Errors: a function of type int returns 0 or an errno value unless its comment says otherwise; a function
 * that returns a pointer returns NULL and sets errno.
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

/* A raw system call: close(2) is a cancellation point, and locks may be held. Ignores -1. */
static inline void urdma_close(int fd)
{
	if (fd >= 0)
		syscall(SYS_close, fd);
}

/* ---- log.c --------------------------------------------------------------- */

/* Prints one line on stderr if URDMA_LOG=1; the format has no newline. */
void urdma_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints one line on stderr always: for errors that the user has to know. */
void urdma_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- explain.c ----------------------------------------------------------- */

struct urdma_client;

/* URDMA_EXPLAIN is set: failures are explained on stderr. */
extern bool urdma_explain_wanted;
/* Prints the lines of a text on stderr; modifies the text. */
void urdma_complain_lines(const char *before, char *text);
/* Asks urdmad for an explanation and prints it on stderr; number as in the EXPLAIN request, 0: print
 * nothing. Does not change errno. */
void urdma_explain(struct urdma_client *client, uint32_t qpn, uint32_t number);
/* Returns error, EINVAL or EFAULT, for an argument that is refused without asking urdmad. With
 * URDMA_EXPLAIN prints the call, the argument, its value and the values allowed. */
int urdma_wrong(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- warn.c -------------------------------------------------------------- */

/* URDMA_WARN is set: mistakes that have not caused a failure yet are reported on stderr. */
extern bool urdma_warn_wanted;
/* Reports a mistake, once for each place in the program: records it in urdmad and prints urdmad's text on
 * stderr; with URDMA_WARN=error ends the process. number: enum urdma_abi_pitfall. qpn: the queue pair or
 * 0. client: NULL for the current session. Does not change errno. Makes a request. */
void urdma_warn(struct urdma_client *client, uint32_t qpn, uint32_t number, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* ---- client.c: the session with urdmad ----------------------------------- */

/*
 * A session of this process with urdmad. It is never freed, because objects keep a pointer to it. It ends
 * when urdmad dies, and in a child after fork(2): every call on it then fails, and the next
 * urdma_client_get establishes a new session without objects.
 */
struct urdma_client;

/* Returns the current session, established if necessary. NULL with errno set on failure (ENODEV: urdmad
 * does not run; EPROTO: it has another version). */
struct urdma_client *urdma_client_get(void);

/* Returns the current session, NULL if there is none. */
struct urdma_client *urdma_client_current(void);

/* Returns false once urdmad is known to have ended, and in a child after fork(2). Costs a load. */
bool urdma_client_alive(const struct urdma_client *client);

/* Checks by poll(2) on the control socket whether urdmad still runs; if not, the session ends. */
bool urdma_client_probe(struct urdma_client *client);

/* The same after an event socket was closed: waits up to 0.2 s for the control socket to be closed, too. */
bool urdma_client_check(struct urdma_client *client);

/* call.c: ends the session, with a reason to print if it was not over. */
void urdma_client_lose(struct urdma_client *client, const char *why);

/* Facts about urdmad for a client that creates no objects. */
struct urdma_summary {
	char sysfs_path[256]; /* returned by ibv_get_sysfs_path(3) */
	uint32_t devices;
	struct urdma_abi_device *info; /* an array of num_devices */
};

/* Asks urdmad once in each process and keeps the answer. NULL with errno set, as urdma_client_get. */
const struct urdma_summary *urdma_summary(void);

uint32_t urdma_client_devices(const struct urdma_client *client);

/* Returns urdmad's description of a port, read when the session was established; transport is already the
 * one shown by this process (URDMA_TRANSPORT). */
const struct urdma_abi_device *urdma_device_info(const struct urdma_client *client, uint32_t device);

/*
 * Makes a request and waits for the response. The caller fills in the request except for its header;
 * response may be NULL if only the status matters. Any thread may call. Returns 0 and leaves errno alone,
 * or sets errno and returns it: urdmad's errno value, EIO if the session is over, EPROTO for a response of
 * the wrong length.
 */
int urdma_call(struct urdma_client *client, enum urdma_abi_type type, void *request,
	       size_t request_length, void *response, size_t response_length);

/* The same, with sizes taken from the pointers' types; TELL is for a request whose response is a bare
 * header. */
#define URDMA_ASK(client, type, request, response) \
	urdma_call(client, type, request, sizeof(*(request)), response, sizeof(*(response)))
#define URDMA_TELL(client, type, request) urdma_call(client, type, request, sizeof(*(request)), NULL, 0)

/* The same with descriptors: sends send_fd unless it is -1. The response must have exactly want (<=
 * URDMA_ABI_MAX_FDS) descriptors, which are stored in fds, close-on-exec; the caller owns them. */
int urdma_call_fds(struct urdma_client *client, enum urdma_abi_type type, void *request,
		   size_t request_length, void *response, size_t response_length, int send_fd,
		   int *fds, int want);

/* inject.c: carries out statements of urdma inject for this client's objects. *said: the number of their first rule, 0
 * for none; for "hits" the number of hits. */
int urdma_inject_own(struct urdma_client *client, const char *text, int64_t *said);

/* urdma_call for requests of type struct urdma_abi_handle whose response is a bare header. */
int urdma_call_handle(struct urdma_client *client, enum urdma_abi_type type, uint32_t handle);

/* The same for a request that destroys an object. Also returns 0 if the session, and so the object, is
 * over. */
int urdma_call_destroy(struct urdma_client *client, enum urdma_abi_type type, uint32_t handle);

/* The return value of a function that returns an errno value: sets errno, too, as a system call would,
 * because programs read it there. */
static inline int urdma_status(int status)
{
	if (status)
		errno = status;
	return status;
}

/* Returns the status in an answer of urdmad: 0 or an errno value, EPROTO for any other number (the kernel's limit,
 * MAX_ERRNO). */
static inline int urdma_answer_status(int32_t status)
{
	return status < 0 || status > 4095 ? EPROTO : status;
}

/* Return values of functions that fail. */
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
 * Reads one event message of exactly size bytes from an event socket. Returns 1 if there was an event.
 * Returns 0 if the socket was closed by urdmad (then call urdma_client_check and report the loss) or by
 * the program, and in a child, because the events are the parent's. Returns -1 with errno set (EAGAIN if
 * the descriptor is non-blocking and there is no event; EINTR). A message of another size ends the session.
 */
struct urdma_kept;
int urdma_event_read(struct urdma_client *client, const struct urdma_kept *kept, void *event, size_t size);

/* ---- handles.c: the table from handles to objects ----------------------------- */

enum urdma_kind {
	URDMA_KIND_CQ,
	URDMA_KIND_QP,
	URDMA_KIND_SRQ,
	URDMA_KIND_ON_DEMAND, /* a region with on-demand paging, by its lkey */
};

/*
 * Events name objects by handle. To use an object while another thread may destroy it: lock, find, count
 * the event in the object, unlock. The destroying thread first removes the handle, then waits until every
 * counted event is acknowledged. add, remove and find take the lock, which is recursive so that find may
 * be called between lock and unlock.
 */
int urdma_handles_add(struct urdma_client *client, enum urdma_kind kind, uint32_t handle, void *object);
void urdma_handles_remove(struct urdma_client *client, enum urdma_kind kind, uint32_t handle);
/* Removes the handle and asks urdmad to destroy the object; if that fails the handle is kept. */
int urdma_handles_destroy(struct urdma_client *client, enum urdma_kind kind, enum urdma_abi_type request,
	uint32_t handle,
			  void *object);
void urdma_handles_lock(struct urdma_client *client);
void urdma_handles_unlock(struct urdma_client *client);
/* Returns NULL, without errno, for an unknown handle: a late event. */
void *urdma_handles_find(struct urdma_client *client, enum urdma_kind kind, uint32_t handle);

#endif /* URDMA_SESSION_H */
