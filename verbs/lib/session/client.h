/* client.h - the structure of a session, for files that need more than session.h. */
#ifndef URDMA_CLIENT_H
#define URDMA_CLIENT_H

#include <pthread.h>

#include "kept.h"
#include "session.h"

enum urdma_client_state {
	URDMA_CLIENT_FORKED, /* this process is a child; the session is the parent's */
	URDMA_CLIENT_LIVE,
	URDMA_CLIENT_GONE,   /* urdmad has ended or violated the protocol */
};

/* An entry in a bucket of the handle table (handles.c). */
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

/* An entry of the table from names in completions to queue pairs (handles.c). */
struct urdma_pair {
	uint64_t name; /* 0: the entry must not be found */
	struct urdma_qp *qp; /* NULL: the entry is free */
};

/* A rule of urdma inject for posts, which the library applies, because urdmad sees a post only after the call. */
struct urdma_post_rule {
	struct urdma_abi_post_fault fault;
	uint64_t seen, hits;
};

struct urdma_client {
	/* enum urdma_client_state; atomic. The kernel zeroes its page in every child (MADV_WIPEONFORK), also
	 * in one created without fork handlers. */
	uint32_t *state;
	bool memory_given; /* urdmad has this process's /proc/self/mem */
	struct urdma_kept control;
	struct urdma_kept kicks[URDMA_ABI_MAX_WORKERS]; /* one for each worker */
	pthread_mutex_t call; /* held from a request until its response */
	uint32_t seq;
	bool silence_reported; /* guarded by call */

	struct urdma_abi_doorbells *bells; /* one section for each worker */
	uint32_t workers;

	uint32_t num_devices;
	struct urdma_abi_device *info;    /* num_devices entries */
	struct urdma_devices *devices;    /* NULL until the program asks for devices */
	pthread_mutex_t devices_lock;     /* guards devices */
	/* Called in a child: initialises the locks of the parent's objects. Set before there are any objects. */
	void (*forked)(struct urdma_client *client);
	char sysfs_path[256];

	pthread_mutex_t handles_lock; /* recursive */
	struct urdma_handle *handles[URDMA_HANDLE_BUCKETS];

	struct urdma_pair *pairs; /* changed only with handles_lock held */
	uint32_t max_pairs;       /* same as the number of doorbells */
	uint32_t pairs_made;

	pthread_mutex_t rings_lock; /* guards the mapped rings (rings.h) */
	struct urdma_rings *rings;

	pthread_mutex_t posts_lock; /* guards posts and num_posts; taken before call */
	struct urdma_post_rule posts[URDMA_ABI_INJECT_POSTS];
	uint32_t num_posts; /* atomic, for a look without the lock */
	uint32_t strict; /* URDMA_ABI_STRICT_* from URDMA_STRICT; constant once there are objects */
	uint64_t strict_seed;

	pthread_mutex_t file_lock;
	bool file_given;      /* urdmad has the memfd of this process's shared memory */
	uint32_t file_handle; /* urdmad's handle of it */
};

/* silence.c: sets a timeout after which recvmsg(2) fails with EAGAIN; if urdmad does not answer, the user
 * is told once for each session. */
void urdma_silence_watch(int fd);
void urdma_silence_tell(struct urdma_client *client);

/* call.c: returns 0 if there is room for one more descriptor, else an errno value. To be called before a
 * request that can't be undone if the descriptor in its response is lost. */
int urdma_call_room(struct urdma_client *client);

/* call.c: urdma_call_fds for a response with a variable number of descriptors, at most max. */
int urdma_call_any_fds(struct urdma_client *client, enum urdma_abi_type type, void *request, size_t request_length,
		       void *response, size_t response_length, int send_fd, int *fds, int max, int *got);

/* call.c: the same for a response of variable length. *length: size of the buffer; set to the bytes
 * received, 0 if there was no response. */
int urdma_call_whole(struct urdma_client *client, enum urdma_abi_type type, void *request, size_t request_length,
		     void *answer, size_t *length, int send_fd, int *fds, int max, int *got);

/* handles.c */
void urdma_handles_init(struct urdma_client *client);
/* Returns 0 or ENOMEM; client->workers must be set. */
int urdma_pairs_init(struct urdma_client *client);

/*
 * A completion identifies its queue pair by a name that is never reused, not by its address: urdmad may
 * write completions after the session has ended and the queue pair was freed. A thread that looks up a
 * name holds the lock of one of the queue pair's completion queues. A thread that destroys a queue pair
 * calls hide, takes and releases the locks of both queues, and calls forget.
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

/* locate.c: connects a SOCK_SEQPACKET socket to urdmad, trying the paths where its socket may be. Returns
 * 0, or -1 with errno set. */
int urdma_locate(int fd);

/* inject.c: sends urdmad the values of URDMA_INJECT and URDMA_STRICT. Returns 0 or an errno value. */
int urdma_inject_start(struct urdma_client *client);

/* transport.c: as what URDMA_PROFILE and URDMA_TRANSPORT request that this process's devices are shown. */
struct urdma_abi_shown urdma_shown_wish(void);
/* Sets sysfs_path to the subfolder of urdmad's sysfs folder, root, that shows the devices so. */
void urdma_shown_sysfs(struct urdma_client *client, const char *root);

/* call.c: called with the errno value of each request that urdmad refused; may be NULL. It may make calls
 * itself. */
extern void (*urdma_call_refused)(struct urdma_client *client, int status);

/* call.c: returns whether a descriptor still belongs to the session; if not, the session ends. */
bool urdma_client_has(struct urdma_client *client, const struct urdma_kept *kept);

/* Returns the state; used on the data path. */
static inline uint32_t urdma_client_state(const struct urdma_client *client)
{
	return __atomic_load_n(client->state, __ATOMIC_ACQUIRE);
}

/* requests.c: returns the type of the request that destroys the object which a request of this type
 * creates, or NONE. */
enum urdma_abi_type urdma_undoing(enum urdma_abi_type type);
/* The response contains a queue's new memory, whose descriptor must not be lost. */
bool urdma_moves_queue(enum urdma_abi_type type);
/* Returns the name of the public function that makes the request; the second function returns advice for
 * its error status, or "". */
const char *urdma_request_name(enum urdma_abi_type type);
const char *urdma_request_advice(int status);

#endif /* URDMA_CLIENT_H */
