/*
 * dlopen.c - a program that links with neither library and loads the ones in its arguments: "verbs FILE"
 * finds ibv_get_device_list with dlsym and dlvsym and calls it, "plain FILE" calls the function plain in
 * it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct ibv_device;
typedef struct ibv_device **(*list_fn)(int *);

static int count_devices(void *handle)
{
	list_fn by_name = (list_fn)dlsym(handle, "ibv_get_device_list");
	list_fn by_version = (list_fn)dlvsym(handle, "ibv_get_device_list", "IBVERBS_1.1");
	int n = -1;

	if (!by_name || by_name != by_version || !dlsym(handle, "rdma_create_id"))
		return -1;
	by_version(&n);
	return n;
}

int main(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		void *handle = dlopen(argv[i + 1], RTLD_NOW | RTLD_LOCAL);
		int (*plain)(void) = handle ? (int (*)(void))dlsym(handle, "plain") : NULL;

		if (!handle)
			printf("%s: %s\n", argv[i + 1], dlerror());
		else if (strcmp(argv[i], "verbs") == 0)
			printf("%s: %d devices\n", argv[i + 1], count_devices(handle));
		else
			printf("%s: plain %d\n", argv[i + 1], plain ? plain() : -1);
	}
	return 0;
}
