/*
 * paths.c - the paths of the kernel's RDMA devices, which programs have built in, and their counterparts
 * in the tree that urdmad maintains next to its socket. Without RDMA in the kernel these paths do not
 * exist; with it they show other devices, which this library hides.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interpose.h"
#include "../session/session.h"

/* Device numbers of /dev/infiniband/umad0, issm0 and uverbs0 (Documentation/admin-guide/devices.txt).
 * rdma_cm has a misc device, whose minor number the kernel chooses. */
#define UVERBS_MAJOR 231u
#define UVERBS_MINOR 192u
#define UMAD_MINOR   0u
#define ISSM_MINOR   64u
#define MISC_MAJOR   10u
#define RDMA_CM_MINOR 122u

static const char nodes[] = "/dev/infiniband";

static bool begins(const char *path, const char *with)
{
	return strncmp(path, with, strlen(with)) == 0;
}

/* Must be fast: every open and stat of the program calls it. */
static enum urdma_place_kind kind_of(const char *path)
{
	if (path[0] != '/')
		return URDMA_ELSEWHERE;
	if (begins(path, "/sys/class/infiniband") || begins(path, "/sys/class/misc/rdma_cm"))
		return URDMA_SYSFS;
	if (begins(path, nodes) && (!path[sizeof(nodes) - 1] || path[sizeof(nodes) - 1] == '/'))
		return URDMA_NODES;
	return URDMA_ELSEWHERE;
}

static void number_node(struct urdma_place *place, const char *path)
{
	const char *name = path + sizeof(nodes) - 1;
	unsigned n;

	name += strspn(name, "/");
	if (sscanf(name, "uverbs%u", &n) == 1) {
		place->major = UVERBS_MAJOR;
		place->minor = UVERBS_MINOR + n;
	} else if (sscanf(name, "umad%u", &place->device) == 1) {
		place->umad = true;
		place->major = UVERBS_MAJOR;
		place->minor = UMAD_MINOR + place->device;
	} else if (sscanf(name, "issm%u", &place->device) == 1) {
		place->issm = true;
		place->major = UVERBS_MAJOR;
		place->minor = ISSM_MINOR + place->device;
	} else if (*name) {
		place->major = MISC_MAJOR;
		place->minor = RDMA_CM_MINOR;
	}
}

void urdma_place(struct urdma_place *place, const char *path)
{
	const struct urdma_summary *seen;
	const char *below;
	int n;

	place->kind = path ? kind_of(path) : URDMA_ELSEWHERE;
	place->path = path;
	place->major = place->minor = 0;
	place->umad = place->issm = false;
	if (place->kind == URDMA_ELSEWHERE)
		return;
	seen = urdma_summary();
	below = place->kind == URDMA_SYSFS ? path + strlen("/sys") : path;
	n = seen ? snprintf(place->buffer, sizeof(place->buffer), "%s%s", seen->sysfs_path, below) : -1;
	if (n < 0 || (size_t)n >= sizeof(place->buffer)) {
		place->kind = URDMA_ELSEWHERE;
		return;
	}
	place->path = place->buffer;
	if (place->kind == URDMA_NODES)
		number_node(place, path);
}
