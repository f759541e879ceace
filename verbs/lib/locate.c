/* locate.c - where urdmad's socket is. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "client.h"

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int saved, fd;

	if (strlen(path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
		urdma_log("connected to urdmad at %s", path);
		return fd;
	}
	saved = errno;
	urdma_log("no urdmad at %s: %s", path, strerror(saved));
	close(fd);
	errno = saved;
	return -1;
}

/* Anybody may create a directory in /tmp under a name that looks like ours:
 * only the user's own or root's is believed. */
static int directory_is_trusted(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
	       (st.st_uid == getuid() || st.st_uid == 0) && !(st.st_mode & S_IWOTH);
}

int urdma_locate(void)
{
	const char *given = secure_getenv("URDMA_SOCKET");
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
	char path[256];
	int fd = -1;

	if (given && *given) {
		fd = connect_to(given);
		if (fd < 0)
			urdma_complain("cannot reach urdmad at %s (URDMA_SOCKET): %s", given, strerror(errno));
		return fd;
	}
	if (runtime && *runtime) {
		snprintf(path, sizeof(path), "%s/urdma/urdmad.sock", runtime);
		fd = connect_to(path);
	}
	if (fd < 0)
		fd = connect_to("/run/urdma/urdmad.sock");
	if (fd < 0) {
		snprintf(path, sizeof(path), "/tmp/urdma-%u", getuid());
		if (directory_is_trusted(path)) {
			strcat(path, "/urdmad.sock");
			fd = connect_to(path);
		}
	}
	return fd;
}
