/* children.c - forks while another thread is inside the library. */
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "slots.h"

static bool stop;

/* Creates and destroys an id, on the current session. */
static void one_id(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc6120001) };
	struct rdma_cm_id *id;

	CHECK_RETURNS(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	CHECK_RETURNS(rdma_bind_addr(id, (struct sockaddr *)&at), 0);
	CHECK(id->pd);
	CHECK_RETURNS(rdma_destroy_id(id), 0);
}

/* Often inside the library, and never for long. */
static void *look_for_events(void *arg)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;

	CHECK(channel && fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		CHECK(rdma_get_cm_event(channel, &event) == -1 && errno == EAGAIN);
	rdma_destroy_event_channel(channel);
	return arg;
}

static void *make_ids(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		one_id();
	return arg;
}

static void wait_for(pid_t pid)
{
	int status;

	CHECK(pid > 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	if (status)
		fprintf(stderr, "a child ended with %#x\n", status);
	CHECK(status == 0);
}

/* Whatever other threads were doing in it, rdma_cm works in the child. */
void case_cm_forks(void)
{
	pthread_t threads[3];
	pid_t pid;

	for (int i = 0; i < 3; i++)
		CHECK(!pthread_create(&threads[i], NULL, i ? look_for_events : make_ids, NULL));
	for (int i = 0; i < 400; i++) {
		pid = fork();
		if (pid == 0) {
			alarm(120);
			one_id();
			_exit(0);
		}
		wait_for(pid);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

static void *list_devices(void *arg)
{
	ibv_free_device_list(ibv_get_device_list(NULL));
	return arg;
}

/* Forks while a thread waits for a urdmad that does not answer. */
static void fork_beside_a_waiter(void)
{
	pthread_t thread;
	pid_t pid;

	alarm(120);
	CHECK(!pthread_create(&thread, NULL, list_devices, NULL));
	usleep(200000);
	pid = fork();
	if (pid == 0)
		_exit(0);
	wait_for(pid);
	_exit(0);
}

void case_fork_stopped(void)
{
	pid_t urdmad = atoi(getenv("URDMAD_PID")), pid;
	int status;

	CHECK(urdmad > 0 && kill(urdmad, SIGSTOP) == 0);
	pid = fork(); /* it has no session yet */
	if (pid == 0)
		fork_beside_a_waiter();
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(kill(urdmad, SIGCONT) == 0);
	CHECK(status == 0);
}

static void *list_devices_cancelled(void *arg)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	return list_devices(arg);
}

/* A thread that is cancelled while it connects does not block others. */
void case_cancelled(void)
{
	pthread_t thread;
	pid_t pid = fork();
	int n;

	if (pid == 0) {
		alarm(120);
		CHECK(!pthread_create(&thread, NULL, list_devices_cancelled, NULL));
		pthread_join(thread, NULL);
		CHECK(ibv_get_device_list(&n) && n == 1);
		_exit(0);
	}
	wait_for(pid);
}
