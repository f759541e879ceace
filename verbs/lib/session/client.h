/*
 * client.h - what a connection is, beyond session.h.
 */
#ifndef URDMA_CLIENT_H
#define URDMA_CLIENT_H

#include <pthread.h>

#include "kept.h"
#include "session.h"

enum urdma_client_state {
	URDMA_CLIENT_FORKED, /* this is a child; the connection is the parent's */
	URDMA_CLIENT_LIVE,
	URDMA_CLIENT_GONE,   /* urdmad died or broke the protocol */
};

/* One bucket entry of the handle table (handles.c). */
struct urdma_handle {
	struct urdma_handle *next;
	enum urdma_kind kind;
	uint32_t handle;
	void *object;
};

#define URDMA_HANDLE_BUCKETS 1024u

struct urdma_devices;
struct urdma_rings;
struct urdma_qp;

/* A queue pair as completions name it (handles.c). */
struct urdma_pair {
	uint64_t name; /* 0: nobody is found here */
	struct urdma_qp *qp; /* NULL: the entry is free */
};

/* A rule of URDMA_INJECT for posts. */
struct urdma_post_rule {
	struct urdma_abi_post_fault fault;
	uint64_t seen, hits; /* atomic */
};

struct urdma_client {
	/* enum urdma_client_state; loaded and stored atomically. The kernel zeroes its page in
	 * every child (MADV_WIPEONFORK), also in one that no handler of fork's runs in. */
	uint32_t *state;
	struct urdma_kept control;
	struct urdma_kept kicks[URDMA_ABI_MAX_WORKERS]; /* workers of them */
	pthread_mutex_t call; /* one request and its response at a time */
	uint32_t seq;
	bool silence_told; /* under call */

	struct urdma_abi_doorbells *bells; /* workers sections */
	uint32_t workers;

	uint32_t num_devices;
	struct urdma_abi_device *info;    /* num_devices of them */
	struct urdma_devices *devices;    /* made when they are first shown to the program; NULL before */
	pthread_mutex_t devices_lock;     /* of devices */
	/* In a child: frees the locks of the parent's objects. Set before there are any. */
	void (*forked)(struct urdma_client *client);
	char sysfs_path[256];

	pthread_mutex_t handles_lock; /* recursive */
	struct urdma_handle *handles[URDMA_HANDLE_BUCKETS];

	struct urdma_pair *pairs; /* written under handles_lock */
	uint32_t max_pairs;       /* as many as there are doorbells */
	uint32_t pairs_made;

	pthread_mutex_t rings_lock; /* of rings (rings.h) */
	struct urdma_rings *rings;

	struct urdma_post_rule *posts; /* num_posts of them; NULL: none */
	uint32_t num_posts;
	uint32_t strict; /* URDMA_ABI_STRICT_* of URDMA_STRICT; constant once there are objects */
	uint64_t strict_seed;

	pthread_mutex_t file_lock;
	bool file_given;      /* urdmad has the memfd of the process's own memory */
	uint32_t file_handle; /* its handle there */
};

/* silence.c: makes recvmsg(2) end with EAGAIN when urdmad is silent, and tells the user
 * once for each connection. */
void urdma_silence_watch(int fd);
void urdma_silence_tell(struct urdma_client *client);

/* call.c: 0 if there is room for one more descriptor, else an errno; asked before
 * what can't be undone if the descriptor that answers it finds none. */
int urdma_call_room(struct urdma_client *client);

/* call.c: urdma_call_fds for an answer that says itself how many descriptors it
 * has, at most max. */
int urdma_call_any_fds(struct urdma_client *client, enum urdma_abi_type type, void *request, size_t request_length,
		       void *response, size_t response_length, int send_fd, int *fds, int max, int *got);

/* call.c: the same for an answer whose length the caller looks at. *length: the bytes
 * that answer has room for; out: those received, 0 where nothing was. */
int urdma_call_whole(struct urdma_client *client, enum urdma_abi_type type, void *request, size_t request_length,
		     void *answer, size_t *length, int send_fd, int *fds, int max, int *got);

/* handles.c */
void urdma_handles_init(struct urdma_client *client);
/* 0 or ENOMEM; once client->workers is known. */
int urdma_pairs_init(struct urdma_client *client);

/*
 * A completion names its queue pair by a number that no other has had, never by
 * its address: urdmad can still push completions after the connection is over
 * and the queue pair freed. A thread that looks one up holds the lock of a completion
 * queue of the queue pair. One that destroys it calls hide, takes and drops the locks
 * of both, and calls forget.
 */
int urdma_pairs_add(struct urdma_client *client, struct urdma_qp *qp, uint64_t *name);
void urdma_pairs_hide(struct urdma_client *client, uint64_t name);
void urdma_pairs_forget(struct urdma_client *client, uint64_t name);

static inline struct urdma_qp *urdma_pairs_find(const struct urdma_client *client, uint64_t name)
{
	const struct urdma_pair *pair;

	if ((uint32_t)name >= client->max_pairs)
		return NULL;
	pair = &client->pairs[(uint32_t)name];
	return __atomic_load_n(&pair->name, __ATOMIC_ACQUIRE) == name ? __atomic_load_n(&pair->qp, __ATOMIC_RELAXED) : NULL;
}

/* locate.c: connects a socket of type SOCK_SEQPACKET to urdmad, of the places where its
 * may be. 0, or -1 and errno. */
int urdma_locate(int fd);

/* inject.c: tells urdmad what URDMA_INJECT and URDMA_STRICT say. 0 or an errno value. */
int urdma_inject(struct urdma_client *client);

/* transport.c: as which this process wishes to show devices. */
uint32_t urdma_transport_wish(void);
/* The tree below urdmad's sysfs path in which devices are shown so. */
void urdma_transport_sysfs(char *path, size_t size, const char *root);

/* call.c: told of each request that urdmad refused, with the errno value; NULL: nobody
 * wants to know. It may make calls. */
extern void (*urdma_call_refused)(struct urdma_client *client, int status);

/* call.c: the connection is over, for this reason, if it was not yet. */
void urdma_client_lose(struct urdma_client *client, const char *why);
/* call.c: whether a descriptor of the connection's is still that; else it is over. */
bool urdma_client_has(struct urdma_client *client, const struct urdma_kept *kept);

/* The state, for the hot paths. */
static inline uint32_t urdma_client_state(const struct urdma_client *client)
{
	return __atomic_load_n(client->state, __ATOMIC_ACQUIRE);
}

/* requests.c: the request that destroys what one has made, or NONE. */
enum urdma_abi_type urdma_undoing(enum urdma_abi_type type);
/* The answer has a queue's new memory, whose descriptor must not be lost. */
bool urdma_moves_queue(enum urdma_abi_type type);
/* The function that programs call to make a request, and what helps against its status, or "". */
const char *urdma_request_name(enum urdma_abi_type type);
const char *urdma_request_advice(int status);

#endif /* URDMA_CLIENT_H */
