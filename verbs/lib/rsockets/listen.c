/*
 * listen.c - rlisten and raccept.
 */
#include "rsockets.h"

/* The socket's lock is held. Returns 0, or -1 with errno set. */
static int begin_listening(struct rs *rs, int backlog)
{
	rs->backlog.limit = backlog > 0 ? (uint32_t)backlog : 1;
	if (rs->state == RS_LISTENING)
		return 0;
	if (rs->state != RS_IDLE)
		return rs_fail(rs->state == RS_DATAGRAM ? EOPNOTSUPP : EINVAL);
	if (rdma_listen(rs->id, backlog))
		return -1;
	rs->state = RS_LISTENING;
	return 0;
}

RS_EXPORT int rlisten(int socket, int backlog)
{
	struct rs *rs = rs_take(socket);
	int result;

	if (!rs)
		return -1;
	result = begin_listening(rs, backlog);
	if (!result && !rs->served)
		result = rs_serve(rs);
	rs_drop(rs);
	return result;
}

static bool acceptable(struct rs *rs)
{
	return rs->backlog.first || rs->broken || rs->state != RS_LISTENING;
}

/* Takes the first socket of the backlog and enters it in the table; NULL with errno set on failure. */
static struct rs *next_socket(struct rs *rs)
{
	struct rs *made;
	int error = rs->state == RS_LISTENING ? rs_wait_unless(rs, acceptable, 0) :
		    rs->state == RS_DATAGRAM  ? EOPNOTSUPP : EINVAL;

	if (!error && rs->closed)
		error = EBADF;
	if (!error && !rs->backlog.first)
		error = rs->error ? rs->error : EINVAL;
	if (error) {
		errno = error;
		return NULL;
	}
	made = rs->backlog.first;
	rs->backlog.first = made->next;
	if (!made->next)
		rs->backlog.last = &rs->backlog.first;
	made->listener = made->next = NULL;
	rs->backlog.waiting--;
	rs_watch_backlog(rs);
	if (rs_enter(made) == 0)
		return made;
	rs_free(made);
	return NULL;
}

RS_EXPORT int raccept(int socket, struct sockaddr *addr, socklen_t *length)
{
	struct rs *rs = rs_take(socket), *made;
	int fd = -1;

	if (!rs)
		return -1;
	made = next_socket(rs);
	if (made) {
		fd = made->fd;
		pthread_mutex_lock(&made->lock);
		rs_set_keepalive(made); /* if it fails the connection is as good without */
		pthread_mutex_unlock(&made->lock);
		if (addr && length)
			rs_write_name(made, rdma_get_peer_addr(made->id), addr, length);
	}
	rs_drop(rs);
	return fd;
}
