/* connecting.c - connecting DIRECTORY: forks while another thread waits for a urdmad
 * that doesn't take its connection yet. The child has nothing of that: a copy would
 * hide its parent's end from urdmad. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                              \
	do {                                                                                          \
		if (!(condition)) {                                                                   \
			fprintf(stderr, "%d: not so: %s (errno %d)\n", __LINE__, #condition, errno); \
			exit(1);                                                                      \
		}                                                                                     \
	} while (0)

static struct sockaddr_un at = { .sun_family = AF_UNIX };

static int seqpacket(int flags)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);

	CHECK(fd >= 0);
	return fd;
}

/* A socket that others wait for. */
static void listen_full(void)
{
	int fd = seqpacket(0);

	CHECK(bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 0) == 0);
	while (connect(seqpacket(SOCK_NONBLOCK), (struct sockaddr *)&at, sizeof(at)) == 0)
		;
	CHECK(errno == EAGAIN);
}

static int sockets(void)
{
	int n = 0;
	struct stat st;

	for (int fd = 0; fd < 1100; fd++)
		n += fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
	return n;
}

static void *look_for_devices(void *nothing)
{
	ibv_get_device_list(NULL);
	return nothing;
}

int main(int argc, char **argv)
{
	int before, status;
	pthread_t thread;
	pid_t pid;

	alarm(60);
	CHECK(argc == 2 && snprintf(at.sun_path, sizeof(at.sun_path), "%s/full", argv[1]) < (int)sizeof(at.sun_path));
	CHECK(setenv("URDMA_SOCKET", at.sun_path, 1) == 0);
	listen_full();
	before = sockets();
	CHECK(pthread_create(&thread, NULL, look_for_devices, NULL) == 0);
	while (sockets() == before)
		usleep(1000);
	for (int i = 0; i < 20; i++) { /* whatever the thread has come to */
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0)
			_exit(sockets() == before ? 0 : 2);
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	}
	CHECK(sockets() == before + 1); /* so the thread still waits */
	_exit(0);
}
