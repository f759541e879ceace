/*
 * keepalive.c - SO_KEEPALIVE: after each TCP_KEEPIDLE seconds the service thread (service.c) sends the peer an empty
 * Write, as rdma-core's rsockets do. The peer's program does not see it. If the peer's host does not acknowledge it the
 * connection ends; the device decides how often it is sent again, so TCP_KEEPINTVL and TCP_KEEPCNT have no effect.
 */
#include <sys/timerfd.h>

#include "rsockets.h"

int rs_set_keepalive(struct rs *rs)
{
	struct itimerspec every = { 0 };

	if (rs->kind || rs->state == RS_IDLE || rs->state == RS_LISTENING || (rs->second < 0 && !rs->options.keepalive))
		return 0; /* rconnect and raccept set it */
	if (rs->second < 0)
		rs->second = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (rs->options.keepalive)
		every.it_value.tv_sec = every.it_interval.tv_sec = (time_t)rs->options.keep_idle;
	if (rs->second < 0 || timerfd_settime(rs->second, 0, &every, NULL))
		return -1;
	return rs->served ? 0 : rs_serve(rs);
}
