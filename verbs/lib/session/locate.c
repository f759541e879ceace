/* locate.c - finds urdmad's socket. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "client.h"

/* Returns 0, or -1 with errno set; the same descriptor may then be used for another path. */
static int connect_to(int fd, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int result;

	if (strlen(path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(address.sun_path, path);
	do
		result = connect(fd, (struct sockaddr *)&address, sizeof(address));
	while (result < 0 && errno == EINTR); /* connect waits if many processes connect at once */
	if (result == 0) {
		urdma_log("connected to urdmad at %s", path);
		return 0;
	}
	urdma_log("no urdmad at %s: %m", path);
	return -1;
}

/* Anybody can create a directory with our name in /tmp, so it must belong to the user or root and be
 * writable by nobody else. */
static int directory_is_trusted(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
	       (st.st_uid == getuid() || st.st_uid == 0) && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

int urdma_locate(int fd)
{
	const char *given = secure_getenv("URDMA_SOCKET");
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
	char path[256], login[64];

	if (given && *given) {
		if (connect_to(fd, given) == 0)
			return 0;
		urdma_complain("cannot reach urdmad at %s: %m%s", given, errno == ENOENT || errno == ECONNREFUSED ?
			       "; start it (urdmad &), or the program by \"urdma run -- PROGRAM\"" :
			       errno == EACCES ? "; urdma doctor says who may" : "");
		return -1;
	}
	snprintf(login, sizeof(login), "/run/user/%u", getuid());
	if (runtime && *runtime && strcmp(runtime, login) != 0) {
		snprintf(path, sizeof(path), "%s/urdma/urdmad.sock", runtime);
		if (connect_to(fd, path) == 0)
			return 0;
	}
	/* Processes without the variable XDG_RUNTIME_DIR (cron, su) use the same directory. */
	strcat(login, "/urdma/urdmad.sock");
	if (connect_to(fd, login) == 0 || connect_to(fd, "/run/urdma/urdmad.sock") == 0)
		return 0;
	snprintf(path, sizeof(path), "/tmp/urdma-%u", getuid());
	if (!directory_is_trusted(path)) {
		urdma_log("not looked for urdmad in %s, which is not this user's own directory", path);
		errno = ENOENT;
		return -1;
	}
	strcat(path, "/urdmad.sock");
	return connect_to(fd, path);
}
