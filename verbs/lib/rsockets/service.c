/*
 * service.c - the service thread, which answers connection requests, reads the events of datagram sockets, and sends
 * keepalives. Order of locks: the thread's, a listener's, then the one of a socket that is about to enter the
 * listener's backlog.
 */
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rsockets.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Sockets that the service thread serves, linked by next_served: listeners, sockets that are not yet
 * established, those that send keepalives, and sockets of type SOCK_DGRAM. */
static struct rs *all;
static int poller = -1;
/* open as long as the epoll descriptor is; epoll descriptors share one inode and can't be told apart */
static struct rs_file mark = { .fd = -1 };

/* Returns false once the program has closed all descriptors. */
static bool has_poller(void)
{
	return poller >= 0 && rs_is_open(&mark);
}

static void close_poller(void)
{
	if (has_poller()) {
		rs_raw_close(poller);
		rs_raw_close(mark.fd);
	}
	poller = mark.fd = -1;
}

/* The thread and its sockets belong to the parent. */
static void after_fork_child(void)
{
	pthread_mutex_init(&lock, NULL);
	close_poller();
	all = NULL;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork_child);
}

static int watch_descriptor(int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) ? errno : 0;
}

/* Of a stream with a keepalive timer only the timer is served. */
static int add(struct rs *rs)
{
	int error = rs->second < 0 || rs->kind ? watch_descriptor(rs->fd) : 0;

	if (!error && rs->second >= 0)
		error = watch_descriptor(rs->second);
	if (error)
		return error;
	rs->next_served = all;
	all = rs;
	return 0;
}

static void stop(const struct rs *rs)
{
	for (struct rs **link = &all; *link; link = &(*link)->next_served)
		if (*link == rs) {
			if (has_poller())
				epoll_ctl(poller, EPOLL_CTL_DEL, rs->fd, NULL);
			if (has_poller() && rs->second >= 0)
				epoll_ctl(poller, EPOLL_CTL_DEL, rs->second, NULL);
			*link = rs->next_served;
			return;
		}
}

/* Creates a request's queues and accepts it. Returns 0 or -1. */
static int accept_request(struct rs *child, const struct rdma_conn_param *said)
{
	struct rdma_conn_param param;
	struct rs_hello hello;

	if (!rs_hello_read(child, said))
		return -1;
	child->state = RS_CONNECTING;
	if (rs_make_queues(child))
		return -1;
	child->silent = child->iwarp;
	rs_fill_param(child, &hello, &param);
	return rdma_accept(child->id, &param);
}

static void take_request(struct rs *listener, const struct rdma_cm_event *event)
{
	struct rs_options options = listener->options;
	struct rs *child;

	options.nonblock = false;
	child = rs_new(listener->domain, &options);
	if (!child || rdma_migrate_id(event->id, child->channel)) {
		rdma_reject(event->id, NULL, 0);
		rdma_destroy_id(event->id);
		if (child)
			rs_free(child);
		return;
	}
	child->id = event->id;
	child->id->context = child;
	child->listener = listener;
	if (accept_request(child, &event->param.conn) || add(child)) {
		rdma_reject(child->id, NULL, 0);
		rs_free(child);
		return;
	}
	listener->backlog.waiting++;
}

/* While the backlog is full, requests stay in urdmad and the peers wait. */
void rs_watch_backlog(struct rs *listener)
{
	bool room = listener->backlog.waiting < listener->backlog.limit && !listener->broken;
	struct epoll_event event = { .events = room ? EPOLLIN : 0, .data.fd = listener->fd };

	if (has_poller())
		epoll_ctl(poller, EPOLL_CTL_MOD, listener->fd, &event);
}

static void serve_listener(struct rs *rs)
{
	struct rdma_cm_event *event;

	pthread_mutex_lock(&rs->lock);
	while (rs->backlog.waiting < rs->backlog.limit) {
		if (rdma_get_cm_event(rs->channel, &event)) {
			if (errno == ENODEV)
				rs_break(rs, ENETDOWN);
			break;
		}
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			take_request(rs, event);
		else if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
			rs_break(rs, ENETDOWN);
		rdma_ack_cm_event(event);
	}
	rs_watch_backlog(rs);
	if (rs->broken)
		stop(rs);
	pthread_mutex_unlock(&rs->lock);
}

/* Moves a socket that is established to its listener's backlog. */
static void serve_child(struct rs *rs)
{
	struct rs *listener = rs->listener;

	pthread_mutex_lock(&listener->lock);
	pthread_mutex_lock(&rs->lock);
	rs_take_events(rs);
	pthread_mutex_unlock(&rs->lock);
	if (rs->state == RS_CONNECTED) {
		stop(rs);
		rs->next = NULL;
		*listener->backlog.last = rs;
		listener->backlog.last = &rs->next;
		rs_signal(listener);
	} else if (rs->state == RS_FAILED) {
		stop(rs);
		rs_free(rs);
		listener->backlog.waiting--;
		rs_watch_backlog(listener);
	}
	pthread_mutex_unlock(&listener->lock);
}

static void serve_datagrams(struct rs *rs)
{
	pthread_mutex_lock(&rs->lock);
	rs->kind->take_events(rs);
	if (rs->broken)
		stop(rs);
	pthread_mutex_unlock(&rs->lock);
}

/* The timer of keepalive.c has expired. */
static void serve_keepalive(struct rs *rs)
{
	uint64_t times;

	pthread_mutex_lock(&rs->lock);
	if (read(rs->second, &times, sizeof(times)) == sizeof(times) && rs->state == RS_CONNECTED) {
		rs_progress(rs);
		rs_post_keepalive(rs);
	}
	pthread_mutex_unlock(&rs->lock);
}

static bool is_poller(int fd)
{
	bool is;

	pthread_mutex_lock(&lock);
	is = fd == poller && has_poller();
	pthread_mutex_unlock(&lock);
	return is;
}

static void *serve(void *argument)
{
	int fd = (int)(intptr_t)argument;
	struct epoll_event event;

	while (is_poller(fd)) {
		if (epoll_wait(fd, &event, 1, -1) != 1)
			continue;
		pthread_mutex_lock(&lock);
		for (struct rs *rs = all; rs; rs = rs->next_served)
			if (rs->fd == event.data.fd || rs->second == event.data.fd) {
				if (rs->second == event.data.fd && !rs->kind)
					serve_keepalive(rs);
				else if (rs->state == RS_LISTENING)
					serve_listener(rs);
				else if (rs->state == RS_DATAGRAM)
					serve_datagrams(rs);
				else
					serve_child(rs);
				break;
			}
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

/* The sockets watched earlier were closed together with the old epoll descriptor. Returns 0 or an errno
 * value. */
static int open_poller(void)
{
	all = NULL;
	mark = rs_file_of(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	poller = mark.fd >= 0 ? epoll_create1(EPOLL_CLOEXEC) : -1;
	if (poller >= 0)
		return 0;
	if (mark.fd >= 0)
		rs_raw_close(mark.fd);
	mark.fd = -1;
	return errno;
}

/* The thread blocks all signals, so that the program's threads handle them. */
static int start_thread(void)
{
	sigset_t every, before;
	pthread_t thread;
	int error;

	if (has_poller())
		return 0;
	error = open_poller();
	if (error)
		return error;
	sigfillset(&every);
	pthread_sigmask(SIG_SETMASK, &every, &before);
	error = pthread_create(&thread, NULL, serve, (void *)(intptr_t)poller);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error) {
		close_poller();
		return error;
	}
	pthread_detach(thread);
	return 0;
}

int rs_serve(struct rs *rs)
{
	int error;

	rs->served = true;
	pthread_mutex_unlock(&rs->lock);
	pthread_mutex_lock(&lock);
	error = start_thread();
	if (!error)
		error = add(rs);
	pthread_mutex_lock(&rs->lock);
	if (!error && rs->closed) { /* closed before it was served: removed here, because nothing else would */
		stop(rs);
		error = EBADF;
	}
	pthread_mutex_unlock(&lock);
	rs->served = !error; /* on failure the next call tries again */
	return error ? rs_fail(error) : 0;
}

void rs_stop_serving(struct rs *listener)
{
	struct rs *child, *next;

	pthread_mutex_lock(&lock);
	stop(listener);
	for (child = all; child; child = next) {
		next = child->next_served;
		if (child->listener != listener)
			continue;
		stop(child);
		rs_free(child);
	}
	pthread_mutex_lock(&listener->lock);
	while ((child = listener->backlog.first)) {
		listener->backlog.first = child->next;
		rs_free(child);
	}
	listener->backlog.last = &listener->backlog.first;
	pthread_mutex_unlock(&listener->lock);
	pthread_mutex_unlock(&lock);
}
