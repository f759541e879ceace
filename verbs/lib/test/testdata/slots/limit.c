/* limit.c - calls that return descriptors, in a program with few descriptors left: they fail with EMFILE,
 * and leave nothing behind here or in urdmad. */
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "slots.h"

#define LIMIT 128
#define MOST 12 /* maximum number of descriptors for one call */

static int taken[LIMIT], taken_count;

/* Uses up all descriptors except so many. */
static void leave_free(int n)
{
	const struct rlimit limit = { LIMIT, LIMIT };

	CHECK_RETURNS(setrlimit(RLIMIT_NOFILE, &limit), 0);
	while ((taken[taken_count] = dup(2)) >= 0)
		taken_count++;
	CHECK(errno == EMFILE);
	for (; n > 0; n--)
		close(taken[--taken_count]);
}

static void give_back(void)
{
	while (taken_count > 0)
		close(taken[--taken_count]);
}

static int entries_of(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	CHECK(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static int own_descriptors(void)
{
	return entries_of("/proc/self/fd");
}

static int urdmads_descriptors(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%s/fd", getenv("URDMAD_PID"));
	return entries_of(path);
}

/* A way to get descriptors: returns an object, or NULL with errno set. */
struct way {
	const char *name;
	void *(*make)(void);
	void (*undo)(void *made);
};

static void *open_device(void)
{
	return ibv_open_device(context->device);
}

static void close_device(void *made)
{
	CHECK_RETURNS(ibv_close_device(made), 0);
}

static void *make_channel(void)
{
	return ibv_create_comp_channel(context);
}

static void destroy_channel(void *made)
{
	CHECK_RETURNS(ibv_destroy_comp_channel(made), 0);
}

/* Large enough to share no file with others. */
static void *make_queue(void)
{
	return ibv_create_cq(context, 16384, NULL, NULL, 0);
}

static void *make_small_queue(void)
{
	return ibv_create_cq(context, 16, NULL, NULL, 0);
}

static void destroy_queue(void *made)
{
	CHECK_RETURNS(ibv_destroy_cq(made), 0);
}

static struct ibv_cq *queue;

static void *make_queue_pair(void)
{
	struct ibv_qp_init_attr attr = { .send_cq = queue, .recv_cq = queue, .qp_type = IBV_QPT_RC,
					 .cap = { 8192, 8192, 1, 1, 0 } };

	return ibv_create_qp(pd, &attr);
}

static void destroy_queue_pair(void *made)
{
	CHECK_RETURNS(ibv_destroy_qp(made), 0);
}

static void *make_event_channel(void)
{
	return rdma_create_event_channel();
}

static void destroy_event_channel(void *made)
{
	rdma_destroy_event_channel(made);
}

static void *make_id(void)
{
	struct rdma_cm_id *id;

	return rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) ? NULL : id;
}

static void destroy_id(void *made)
{
	CHECK_RETURNS(rdma_destroy_id(made), 0);
}

/* Its queue pair has two queues and two channels. */
static void *make_endpoint_of(uint32_t depth)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc6120001) };
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { depth, depth, 1, 1, 0 } };
	struct rdma_cm_id *id;
	int saved;

	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		return NULL;
	CHECK_RETURNS(rdma_bind_addr(id, (struct sockaddr *)&at), 0);
	if (rdma_create_qp(id, pd, &attr) == 0)
		return id;
	saved = errno;
	CHECK_RETURNS(rdma_destroy_id(id), 0);
	errno = saved;
	return NULL;
}

static void *make_endpoint(void)
{
	return make_endpoint_of(4);
}

static void *make_large_endpoint(void)
{
	return make_endpoint_of(8192);
}

static void destroy_endpoint(void *made)
{
	rdma_destroy_ep(made);
}

static const struct way ways[] = {
	{ "ibv_open_device", open_device, close_device },
	{ "ibv_create_comp_channel", make_channel, destroy_channel },
	{ "ibv_create_cq", make_queue, destroy_queue },
	{ "ibv_create_qp", make_queue_pair, destroy_queue_pair },
	{ "rdma_create_event_channel", make_event_channel, destroy_event_channel },
	{ "rdma_create_id", make_id, destroy_id },
};

/* On the context that ids share. */
static const struct way endpoints[] = {
	{ "rdma_create_qp", make_endpoint, destroy_endpoint },
	{ "rdma_create_qp of large queues", make_large_endpoint, destroy_endpoint },
};

static bool try_with(const struct way *way, int descriptors)
{
	void *made;

	leave_free(descriptors);
	errno = 0;
	made = way->make();
	if (!made && errno != EMFILE) {
		fprintf(stderr, "%s with %d descriptors: %s\n", way->name, descriptors, strerror(errno));
		exit(1);
	}
	give_back();
	if (made)
		way->undo(made);
	return made;
}

static void check_way(const struct way *way)
{
	int own, urdmads, n;

	way->undo(way->make()); /* makes what is made once and kept */
	own = own_descriptors();
	urdmads = urdmads_descriptors();
	for (n = 0; n < MOST && !try_with(way, n); n++)
		;
	for (int i = 0; i < 6000 && urdmads_descriptors() > urdmads; i++)
		usleep(10000); /* urdmad closes some a moment later */
	if (n == 0 || n == MOST || own_descriptors() != own || urdmads_descriptors() > urdmads) {
		fprintf(stderr, "%s: worked with %d descriptors, left %d here and %d in urdmad\n", way->name, n,
			own_descriptors() - own, urdmads_descriptors() - urdmads);
		exit(1);
	}
}

/* Small queues share a file, and all but the first need no descriptor. */
static void check_shared(void)
{
	static const struct way small = { "a small queue", make_small_queue, destroy_queue };
	void *first = make_small_queue();

	CHECK(first);
	CHECK(try_with(&small, 0));
	destroy_queue(first);
}

/* Objects that use others would prevent those from being destroyed. */
void case_descriptors(void)
{
	struct ibv_context *own = ibv_open_device(context->device), *shared = context;
	struct ibv_pd *domain = pd;

	CHECK(own);
	context = own;
	CHECK((pd = ibv_alloc_pd(context)));
	CHECK((queue = make_queue()));
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		check_way(&ways[i]);
	CHECK_RETURNS(ibv_destroy_cq(queue), 0);
	check_shared();
	CHECK_RETURNS(ibv_dealloc_pd(pd), 0);
	CHECK_RETURNS(ibv_close_device(own), 0);
	context = shared;
	pd = domain;
	for (size_t i = 0; i < sizeof(endpoints) / sizeof(endpoints[0]); i++)
		check_way(&endpoints[i]);
}

/* A failed resize does not change the queue. */
void case_descriptors_resize(void)
{
	struct ibv_cq *send = make_cq(DEPTH), *recv = make_cq(DEPTH);
	struct end a, b;

	join(&a, make_pair(send, recv), &b, make_pair(make_cq(DEPTH), make_cq(DEPTH)));
	CHECK_RETURNS(post_write(&a, 1, IBV_SEND_SIGNALED), 0);
	leave_free(0);
	for (int i = 0; i < 3; i++)
		CHECK_RETURNS(ibv_resize_cq(send, 4 * DEPTH), EMFILE);
	CHECK(send->cqe == DEPTH);
	give_back();
	CHECK_RETURNS(post_write(&a, 2, IBV_SEND_SIGNALED), 0);
	expect(send, 1, 2, IBV_WC_SUCCESS);
	leave_free(1);
	CHECK_RETURNS(ibv_resize_cq(send, 4 * DEPTH), 0);
	give_back();
	CHECK_RETURNS(post_write(&a, 3, IBV_SEND_SIGNALED), 0);
	expect(send, 3, 1, IBV_WC_SUCCESS);
}

/* In a child, which has no session yet. */
static void connect_with(int descriptors, int *needed)
{
	struct ibv_device **list;
	int n = 7;

	leave_free(descriptors);
	errno = 0;
	list = ibv_get_device_list(&n);
	CHECK(list ? n == 1 : n == 0 && errno == EMFILE);
	*needed = list ? descriptors : MOST;
}

void case_descriptors_hello(void)
{
	int pipes[2], needed = MOST, status;
	char line[512];
	ssize_t n = 0;
	pid_t pid;

	CHECK_RETURNS(pipe(pipes), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(dup2(pipes[1], 2) == 2);
		for (int i = 0; i < MOST && needed == MOST; i++) {
			connect_with(i, &needed);
			give_back();
		}
		_exit(needed > 2 && needed < MOST ? 0 : 1);
	}
	close(pipes[1]);
	n = read(pipes[0], line, sizeof(line) - 1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	line[n > 0 ? n : 0] = '\0';
	if (strstr(line, "version")) {
		fprintf(stderr, "it said: %s\n", line);
		exit(1);
	}
}
