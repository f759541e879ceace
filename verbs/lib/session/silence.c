/* silence.c - reports a urdmad that does not answer: its process id and state. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "client.h"

#define SILENCE_S 2

void urdma_silence_watch(int fd)
{
	struct timeval limit = { .tv_sec = SILENCE_S };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

/* Returns the state letter of proc_pid_stat(5), or '?' if it can't be read. Raw system calls: open and
 * read are cancellation points, and locks are held. */
static char state_of(int pid)
{
	char path[32], text[256], *end;
	long fd, n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return '?';
	n = syscall(SYS_read, (int)fd, text, sizeof(text) - 1);
	urdma_close((int)fd);
	text[n > 0 ? n : 0] = '\0';
	end = strrchr(text, ')'); /* the end of the command, which may contain any character */
	return end && end[1] == ' ' && end[2] ? end[2] : '?';
}

static const char *state_name(char letter)
{
	switch (letter) {
	case 'R': return "running";
	case 'S': return "sleeping";
	case 'D': return "in a system call that cannot be interrupted";
	case 'T':
	case 't': return "stopped; SIGCONT lets it go on";
	case 'Z':
	case 'X': return "ended";
	}
	return "in an unknown state";
}

void urdma_silence_tell(struct urdma_client *client)
{
	struct ucred peer = { .pid = 0 };
	socklen_t size = sizeof(peer);

	if (client->silence_reported)
		return;
	client->silence_reported = true;
	if (getsockopt(client->control.fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid == 0)
		urdma_complain("urdmad has not answered for %d s; still waiting for it", SILENCE_S);
	else
		urdma_complain("urdmad has not answered for %d s; still waiting for it: process %d of user %u, %s", SILENCE_S,
			       (int)peer.pid, (unsigned)peer.uid, state_name(state_of(peer.pid)));
}
