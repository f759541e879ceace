/* connecting.c - connecting DIRECTORY: forks while another thread waits for a urdmad that does not accept
 * its connection and, with a second argument, while one accepts each and closes it. The child must have no
 * copy of the socket, which would hide its parent's end from urdmad. */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
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

/* Creates a socket on which connecting blocks. */
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

/* At any point of the thread's work the child has no other sockets. */
static void fork_often(int times, int before)
{
	int status;
	pid_t pid;

	for (int i = 0; i < times; i++) {
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0)
			_exit(sockets() == before ? 0 : 2);
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	}
}

static void fork_while_waiting(void)
{
	int before;
	pthread_t thread;

	listen_full();
	before = sockets();
	CHECK(pthread_create(&thread, NULL, look_for_devices, NULL) == 0);
	while (sockets() == before)
		usleep(1000);
	fork_often(20, before);
	CHECK(sockets() == before + 1); /* so the thread is still waiting */
}

/* Starts a process that accepts connections and closes them. */
static void start_refuser(void)
{
	int fd = seqpacket(0);
	pid_t pid;

	CHECK(bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 8) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (pid == 0)
		close(accept(fd, NULL, NULL));
	close(fd);
}

static _Thread_local bool slow;

/* Also used by the library. A slow thread sleeps after each unlock, so that waiting threads take the lock before it
 * continues. */
int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	static int (*next)(pthread_mutex_t *);
	int error;

	if (!next)
		next = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_unlock");
	error = next(mutex);
	if (slow)
		usleep(1000);
	return error;
}

static void *look_again_and_again(void *nothing)
{
	slow = true;
	for (;;)
		look_for_devices(nothing);
	return nothing;
}

static void fork_while_refused(void)
{
	int before;
	pthread_t thread;

	start_refuser();
	before = sockets();
	CHECK(pthread_create(&thread, NULL, look_again_and_again, NULL) == 0);
	fork_often(100, before);
}

int main(int argc, char **argv)
{
	alarm(120);
	CHECK(argc >= 2 && snprintf(at.sun_path, sizeof(at.sun_path), "%s/full", argv[1]) < (int)sizeof(at.sun_path));
	CHECK(setenv("URDMA_SOCKET", at.sun_path, 1) == 0);
	if (argc == 2)
		fork_while_waiting();
	else
		fork_while_refused();
	_exit(0);
}
