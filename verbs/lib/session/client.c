/* client.c - establishes this process's session with urdmad, and ends it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client.h"
#include "rings.h"

/* connecting: held by the thread that connects, as long as urdmad takes to answer. published: guards the
 * pointers below; held only briefly, so that a fork, which takes it, does not wait for urdmad. Order:
 * connecting, published. */
static pthread_mutex_t connecting = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t published = PTHREAD_MUTEX_INITIALIZER;
static struct urdma_client *current;
static struct urdma_client *making; /* the session being established, from before its socket is connected */

static void close_kicks(struct urdma_client *client)
{
	for (uint32_t i = 0; i < client->workers; i++)
		urdma_kept_close(&client->kicks[i]);
}

static void before_fork(void)
{
	pthread_mutex_lock(&published);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&published);
}

static void init_locks(struct urdma_client *client)
{
	pthread_mutex_init(&client->call, NULL);
	pthread_mutex_init(&client->posts_lock, NULL);
	pthread_mutex_init(&client->devices_lock, NULL);
	pthread_mutex_init(&client->file_lock, NULL);
	pthread_mutex_init(&client->rings_lock, NULL);
	urdma_handles_init(client);
}

/* The child closes its copy of the control socket, so that urdmad notices the parent's end even if the
 * child lives on. Before Linux 4.14 the kernel can't wipe the page of state, so it is set here. */
static void leave_to_parent(struct urdma_client *client)
{
	__atomic_store_n(client->state, URDMA_CLIENT_FORKED, __ATOMIC_RELEASE);
	urdma_kept_close(&client->control);
	close_kicks(client);
	init_locks(client);
	if (client->forked)
		client->forked(client);
}

/* The child has its own copy of all memory; other threads of the parent may have held any lock but
 * published. */
static void after_fork_child(void)
{
	pthread_mutex_init(&connecting, NULL);
	pthread_mutex_init(&published, NULL);
	if (making)
		leave_to_parent(making);
	if (current)
		leave_to_parent(current);
	current = making = NULL;
}

/* Registered at load: a handler added while another thread forks does not run for that fork. */
__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

static int map_doorbells(struct urdma_client *client, int fd, uint32_t bytes)
{
	void *at;
	int status;

	if (bytes / sizeof(struct urdma_abi_doorbells) < client->workers)
		return EPROTO;
	status = urdma_map_shared(fd, bytes, &at);
	if (!status)
		client->bells = at;
	return status;
}

/* Takes the descriptors of the response to HELLO: the doorbells', then one for each worker. */
static int take_kicks(struct urdma_client *client, uint32_t workers, const int *fds, int got)
{
	if (!workers || workers > URDMA_ABI_MAX_WORKERS || got != (int)workers + 1) {
		for (int i = 0; i < got; i++)
			urdma_close(fds[i]);
		return EPROTO;
	}
	for (uint32_t i = 0; i < workers; i++)
		urdma_keep(&client->kicks[i], fds[1 + i]);
	client->workers = workers;
	return 0;
}

/* More than any urdmad has. */
#define MAX_DEVICES 1024

static int greet(struct urdma_client *client)
{
	struct urdma_abi_hello request = { .abi_version = URDMA_ABI_VERSION, .pid = (uint32_t)getpid(),
					   .flags = URDMA_ABI_HELLO_POOL };
	struct urdma_abi_hello_response response = { .abi_version = 0 };
	int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	int fds[URDMA_ABI_MAX_FDS], got, status;

	if (memory < 0 && (errno == EMFILE || errno == ENFILE))
		return errno;
	strncpy(request.command, program_invocation_short_name, sizeof(request.command) - 1);
	status = urdma_call_any_fds(client, URDMA_ABI_HELLO, &request, sizeof(request), &response, sizeof(response),
				    memory, fds, URDMA_ABI_MAX_FDS, &got);
	client->memory_given = memory >= 0;
	if (memory >= 0)
		urdma_close(memory);
	if (status == EPROTO && response.abi_version && response.abi_version != URDMA_ABI_VERSION)
		urdma_complain("urdmad speaks ABI version %u, this liburdma.so speaks version %u: "
			       "restart urdmad if it is older than what is installed (systemctl restart urdmad; "
			       "systemctl --user restart urdmad), or else use the library that came with it", response.abi_version,
			       URDMA_ABI_VERSION);
	if (status == EDQUOT)
		urdma_complain("urdmad serves as many programs as limits.clients in its urdma.json allows");
	if (status)
		return status;
	status = take_kicks(client, response.workers, fds, got);
	if (status)
		return status;
	if (response.num_devices > MAX_DEVICES) {
		urdma_close(fds[0]);
		return EPROTO;
	}
	client->num_devices = response.num_devices;
	response.sysfs_path[sizeof(response.sysfs_path) - 1] = '\0';
	strcpy(client->sysfs_path, response.sysfs_path); /* of urdmad; read_devices sets this process's */
	status = map_doorbells(client, fds[0], response.doorbell_bytes);
	urdma_close(fds[0]);
	return status ? status : urdma_pairs_init(client);
}

/* Returns whether all ports of the device are in the list. */
static bool is_whole(const struct urdma_client *client, uint32_t at)
{
	const struct urdma_abi_device *port = &client->info[at];

	return port->port_num - 1 < port->num_ports && port->port_num - 1 <= at &&
	       port->num_ports - port->port_num < client->num_devices - at;
}

static bool has_prefix(const struct urdma_abi_addr *addr, uint32_t length)
{
	return length <= (addr->family == AF_INET6 ? 128 : 32);
}

static void end_texts(struct urdma_abi_device *d)
{
	d->name[sizeof(d->name) - 1] = '\0';
	d->fw_ver[sizeof(d->fw_ver) - 1] = '\0';
	d->profile[sizeof(d->profile) - 1] = '\0';
}

static int read_devices(struct urdma_client *client)
{
	struct urdma_abi_shown wish = urdma_shown_wish();
	struct urdma_abi_query_device request;
	char root[sizeof(client->sysfs_path)];
	int status;

	client->info = calloc(client->num_devices + 1, sizeof(*client->info));
	if (!client->info)
		return ENOMEM;
	for (uint32_t i = 0; i < client->num_devices; i++) {
		request = (struct urdma_abi_query_device){ .device = i, .shown = wish };
		status = urdma_call(client, URDMA_ABI_QUERY_DEVICE, &request, sizeof(request), &client->info[i],
				    sizeof(client->info[i]));
		if (!status && !(is_whole(client, i) && has_prefix(&client->info[i].addr, client->info[i].prefix_length)))
			status = EPROTO;
		if (status == EINVAL && *wish.profile)
			urdma_complain("URDMA_PROFILE is \"%s\", which urdmad does not know", wish.profile);
		if (status)
			return status;
		end_texts(&client->info[i]);
	}
	memcpy(root, client->sysfs_path, sizeof(root));
	urdma_shown_sysfs(client, root);
	return 0;
}

/* Frees a session that was not published. Fork handlers know it until its sockets are closed. */
static void discard(struct urdma_client *client)
{
	pthread_mutex_lock(&published);
	urdma_kept_close(&client->control);
	close_kicks(client);
	making = NULL;
	pthread_mutex_unlock(&published);
	if (client->bells)
		munmap(client->bells, client->workers * sizeof(*client->bells));
	free(client->info);
	free(client->pairs);
	munmap(client->state, sizeof(*client->state));
	free(client);
}

static struct urdma_client *get_published(void)
{
	struct urdma_client *client;

	pthread_mutex_lock(&published);
	client = current;
	pthread_mutex_unlock(&published);
	return client;
}

static void publish(struct urdma_client *made)
{
	pthread_mutex_lock(&published);
	making = NULL;
	current = made;
	pthread_mutex_unlock(&published);
}

/* Each rdma_cm connection has two descriptors. The kernel doubles a full descriptor table, and a process
 * with several threads waits some ms each time. So the table is grown here, if the limit allows it. A
 * child forked meanwhile inherits one of these descriptors, which refers to nothing of urdmad. */
static void make_room_for_descriptors(void)
{
	int before = errno, any = eventfd(0, EFD_CLOEXEC);

	urdma_close(fcntl(any, F_DUPFD_CLOEXEC, 1023));
	urdma_close(any);
	errno = before;
}

/* Fork handlers know the socket before it is connected. Returns 0 or an errno value. */
static int connect_socket(struct urdma_client *client)
{
	pthread_mutex_lock(&published);
	urdma_keep(&client->control, socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	making = client;
	pthread_mutex_unlock(&published);
	if (client->control.fd < 0 || urdma_locate(client->control.fd))
		return errno == EMFILE || errno == ENFILE ? errno : ENODEV;
	urdma_silence_watch(client->control.fd);
	make_room_for_descriptors();
	return 0;
}

static struct urdma_client *make(void)
{
	struct urdma_client *client = calloc(1, sizeof(*client));
	void *state = mmap(NULL, sizeof(*client->state), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!client || state == MAP_FAILED) {
		if (state != MAP_FAILED)
			munmap(state, sizeof(*client->state));
		free(client);
		return NULL;
	}
	madvise(state, (size_t)sysconf(_SC_PAGESIZE), MADV_WIPEONFORK);
	client->state = state;
	*client->state = URDMA_CLIENT_LIVE;
	init_locks(client);
	return client;
}

/* Asks urdmad for the data that a session needs. Returns 0 and the session, which only fork handlers know
 * yet, or an errno value. */
static int ask(struct urdma_client **asked)
{
	struct urdma_client *client = make();
	int status;

	if (!client)
		return ENOMEM;
	status = connect_socket(client);
	if (!status)
		status = greet(client);
	if (!status)
		status = urdma_inject_start(client);
	if (!status)
		status = read_devices(client);
	if (!status) {
		*asked = client;
		return 0;
	}
	discard(client);
	return status;
}

/* Returns 0 and the session, or an errno value. */
static int make_connection(struct urdma_client **made)
{
	int status = ask(made);

	if (!status)
		publish(*made);
	return status;
}

/* In a child created without fork handlers, the files of registered memory still look like its own, and
 * memory it registers would overwrite its parent's. */
static void refuse_child_without_handlers(struct urdma_client *client)
{
	if (client->control.fd < 0)
		return;
	leave_to_parent(client);
	urdma_complain("process %d was made by _Fork(3) or clone(2) from one that uses RDMA: it has no devices; make it by "
		"fork(3), or have "
		       "it run a program", (int)getpid());
}

/* Returns the session established by another thread meanwhile, or a new one. */
static struct urdma_client *connect_once(void)
{
	struct urdma_client *client;
	int status = 0;

	pthread_mutex_lock(&connecting);
	client = get_published();
	if (client && urdma_client_state(client) == URDMA_CLIENT_FORKED) {
		refuse_child_without_handlers(client);
		status = ENODEV;
	} else if (!client || !urdma_client_probe(client)) {
		status = make_connection(&client);
	}
	pthread_mutex_unlock(&connecting);
	if (!status)
		return client;
	errno = status;
	return NULL;
}

struct urdma_client *urdma_client_current(void)
{
	struct urdma_client *client = get_published();

	return client && urdma_client_alive(client) ? client : NULL;
}

/* Cancellation is disabled: connecting makes calls that are cancellation points. */
struct urdma_client *urdma_client_get(void)
{
	struct urdma_client *client = get_published();
	int cancel;

	if (client && urdma_client_probe(client))
		return client;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	client = connect_once();
	pthread_setcancelstate(cancel, NULL);
	return client;
}

static void look(struct urdma_summary *seen, const struct urdma_client *client)
{
	uint32_t n = client->num_devices;

	memcpy(seen->sysfs_path, client->sysfs_path, sizeof(seen->sysfs_path));
	seen->info = calloc(n + 1, sizeof(*seen->info));
	if (seen->info)
		memcpy(seen->info, client->info, n * sizeof(*seen->info));
	seen->devices = seen->info ? n : 0;
}

/* A program that only looks at files or addresses must not count as one of urdmad's clients, so a session
 * established for this ends at once. */
static int summarize_once(struct urdma_summary *seen)
{
	struct urdma_client *client = get_published();
	int status;

	if (client && urdma_client_alive(client)) {
		look(seen, client);
		return 0;
	}
	status = ask(&client);
	if (status)
		return status;
	look(seen, client);
	discard(client);
	return 0;
}

const struct urdma_summary *urdma_summary(void)
{
	static struct urdma_summary seen;
	static bool known;
	int cancel, status = 0;

	if (__atomic_load_n(&known, __ATOMIC_ACQUIRE))
		return &seen;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&connecting);
	if (!known)
		status = summarize_once(&seen);
	if (!status)
		__atomic_store_n(&known, true, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&connecting);
	pthread_setcancelstate(cancel, NULL);
	if (!status)
		return &seen;
	errno = status;
	return NULL;
}

uint32_t urdma_client_devices(const struct urdma_client *client)
{
	return client->num_devices;
}

const struct urdma_abi_device *urdma_device_info(const struct urdma_client *client, uint32_t device)
{
	return device < client->num_devices ? &client->info[device] : NULL;
}
