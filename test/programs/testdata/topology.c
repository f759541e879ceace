/*
 * topology.c - finds the PCI device of each RDMA device as NCCL and UCX do when they start, and prints what they take
 * from there. NCCL: the resolved path of /sys/class/infiniband/NAME/device is that of a PCI device, as its subsystem
 * says; its last part is the address, by which everything is looked up again under /sys/class/pci_bus; from there
 * upwards to the root complex. UCX: address, link speed, memory node and CPUs below /sys/class/infiniband/NAME/device.
 */
#include <infiniband/verbs.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what, const char *path)
{
	printf("%s: %s: %m\n", path, what);
	exit(1);
}

static const char *text(const char *dir, const char *name)
{
	static char texts[16][128];
	static unsigned next;
	char *line = texts[next++ % 16], path[PATH_MAX + 64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "r");
	if (!file || !fgets(line, sizeof(texts[0]), file))
		fail("cannot be read", path);
	fclose(file);
	line[strcspn(line, "\n")] = '\0';
	return line;
}

static void nccl(const char *name)
{
	char path[PATH_MAX], pci[PATH_MAX], again[PATH_MAX], subsystem[PATH_MAX + 16], resolved[PATH_MAX];
	const char *address;
	int levels = 0;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device", name);
	if (!realpath(path, pci))
		fail("does not resolve", path);
	snprintf(subsystem, sizeof(subsystem), "%s/subsystem", pci);
	if (!realpath(subsystem, resolved) || strcmp(basename(resolved), "pci") != 0)
		fail("is no PCI device", pci);
	address = strrchr(pci, '/') + 1;
	snprintf(path, sizeof(path), "/sys/class/pci_bus/%.7s/../../%s", address, address);
	if (!realpath(path, again) || strcmp(again, pci) != 0)
		fail("is not the same device", path);
	printf("%s: %s class %s vendor %s device %s subsystem %s:%s max %s x%s\n", name, address, text(again, "class"),
	       text(again, "vendor"), text(again, "device"), text(again, "subsystem_vendor"),
	       text(again, "subsystem_device"), text(again, "max_link_speed"), text(again, "max_link_width"));
	while (strncmp(strrchr(again, '/'), "/pci", 4) != 0) {
		*strrchr(again, '/') = '\0';
		levels++;
	}
	printf("%s: %d level below %s, node %s, CPUs %s\n", name, levels, again, text(pci, "numa_node"),
	       text(pci, "local_cpus"));
}

static void ucx(const char *name)
{
	unsigned domain, bus, slot, function, width;
	char path[PATH_MAX], pci[PATH_MAX];
	double speed;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device", name);
	if (!realpath(path, pci) ||
	    sscanf(strrchr(pci, '/'), "/%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4)
		fail("has no PCI address", path);
	if (sscanf(text(path, "current_link_speed"), "%lf GT/s", &speed) != 1 ||
	    sscanf(text(path, "current_link_width"), "%u", &width) != 1)
		fail("has no speed", path);
	printf("%s: bus %x, %.0f GT/s times %u, node %d, CPUs %s\n", name, bus, speed, width, atoi(text(path, "numa_node")),
	       text(path, "local_cpulist"));
}

int main(void)
{
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);

	for (int i = 0; i < n; i++) {
		nccl(ibv_get_device_name(list[i]));
		ucx(ibv_get_device_name(list[i]));
	}
	ibv_free_device_list(list);
	return n == 0;
}
