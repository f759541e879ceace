// Sends messages between two processes through a net plugin of NCCL (ncclNet_v8), as NCCL does with memory of the
// host, and checks each byte. It needs no GPU, and of NCCL only the directory plugins/net/example/nccl of its source:
//
//   gcc -o ncclnet -I NCCL/plugins/net/example/nccl ncclnet.c -ldl
//   NCCL_SOCKET_IFNAME=lo urdma exec -- ./ncclnet libnccl-net.so
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "net.h"

#define CHECK(call) do { ncclResult_t r = (call); if (r) { \
	fprintf(stderr, "%s: ncclResult_t %d\n", #call, r); exit(1); } } while (0)

enum { MESSAGES = 100, SIZE = 1 << 20, TAG = 7 };

static void logged(ncclDebugLogLevel level, unsigned long flags, const char *file, int line, const char *format, ...)
{
	va_list list;
	(void)flags, (void)file, (void)line;
	if (level > NCCL_LOG_WARN && !getenv("NCCL_DEBUG"))
		return;
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
}

// await returns the size of the message that a request has sent or received.
static int await(ncclNet_v8_t *net, void *request)
{
	int done = 0, size = 0;
	while (!done)
		CHECK(net->test(request, &done, &size));
	return size;
}

// transmit sends messages of different sizes and contents.
static void transmit(ncclNet_v8_t *net, void *handle, char *data)
{
	void *comm = NULL, *key, *request;
	ncclNetDeviceHandle_v8_t *none = NULL;
	while (!comm)
		CHECK(net->connect(0, handle, &comm, &none));
	CHECK(net->regMr(comm, data, SIZE, NCCL_PTR_HOST, &key));
	for (int i = 0; i < MESSAGES; i++) {
		memset(data, i, SIZE);
		for (request = NULL; !request;)
			CHECK(net->isend(comm, data, SIZE - i, TAG, key, &request));
		await(net, request);
	}
	CHECK(net->deregMr(comm, key));
	CHECK(net->closeSend(comm));
}

// receive checks these messages. After the last one there is nothing to answer: the sender has its completion.
static void receive(ncclNet_v8_t *net, void *listener, char *data)
{
	void *comm = NULL, *key, *request, *buffer = data;
	ncclNetDeviceHandle_v8_t *none = NULL;
	int tag = TAG;
	while (!comm)
		CHECK(net->accept(listener, &comm, &none));
	CHECK(net->regMr(comm, data, SIZE, NCCL_PTR_HOST, &key));
	for (int i = 0; i < MESSAGES; i++) {
		int size = SIZE;
		for (request = NULL; !request;)
			CHECK(net->irecv(comm, 1, &buffer, &size, &tag, &key, &request));
		size = await(net, request);
		for (int n = 0; n < SIZE - i; n++)
			if (size != SIZE - i || data[n] != (char)i) {
				fprintf(stderr, "message %d has %d bytes, and byte %d is %d\n", i, size, n, data[n]);
				exit(1);
			}
	}
	CHECK(net->deregMr(comm, key));
	CHECK(net->closeRecv(comm));
}

int main(int argc, char **argv)
{
	char handle[NCCL_NET_HANDLE_MAXSIZE] = {0}, *data = calloc(1, SIZE);
	void *plugin = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL, *listener;
	ncclNet_v8_t *net = plugin ? dlsym(plugin, "ncclNetPlugin_v8") : NULL;
	ncclNetProperties_v8_t device;
	int ends[2], devices = 0, status;
	if (!net || !data || pipe(ends)) {
		fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "usage: ncclnet PLUGIN");
		return 1;
	}
	pid_t child = fork(); // before the plugin is initialised: verbs objects don't survive fork(2)
	CHECK(net->init(logged));
	CHECK(net->devices(&devices));
	if (devices == 0) {
		fprintf(stderr, "the plugin finds no device\n");
		return 1;
	}
	if (child == 0) {
		if (read(ends[0], handle, sizeof(handle)) != sizeof(handle))
			return 1;
		transmit(net, handle, data);
		return 0;
	}
	CHECK(net->getProperties(0, &device));
	CHECK(net->listen(0, handle, &listener));
	if (write(ends[1], handle, sizeof(handle)) != sizeof(handle))
		return 1;
	receive(net, listener, data);
	CHECK(net->closeListen(listener));
	if (waitpid(child, &status, 0) < 0 || status != 0)
		return 1;
	printf("%s by %s: %d messages, all bytes right\n", device.name, net->name, MESSAGES);
	return 0;
}
