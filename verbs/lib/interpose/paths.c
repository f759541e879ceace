/*
 * paths.c - the paths of the kernel's RDMA devices, which programs have built in, and their counterparts
 * in the tree that urdmad maintains next to its socket. Without RDMA in the kernel these paths do not
 * exist; with it they show other devices, which this library hides.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* What may follow a prefix. */
enum after { ANYTHING, A_SLASH, SLASHES };

/* The PCI devices of a profile have a PCI domain of their own, personality.PCIDomain; the list of all PCI devices
 * is a folder of urdmad's, the machine's devices in it are links to the kernel's. */
static const struct prefix {
	const char *text;
	enum urdma_place_kind kind;
	enum after after;
	bool profile; /* only if the devices are shown as a profile's */
} prefixes[] = {
	{ "/sys/class/infiniband", URDMA_SYSFS, ANYTHING, false },
	{ "/sys/class/misc/rdma_cm", URDMA_SYSFS, ANYTHING, false },
	{ nodes, URDMA_NODES, A_SLASH, false },
	{ "/sys/devices/pci7572:", URDMA_SYSFS, ANYTHING, true },
	{ "/sys/class/pci_bus/7572:", URDMA_SYSFS, ANYTHING, true },
	{ "/sys/bus/pci/devices/7572:", URDMA_SYSFS, ANYTHING, true },
	{ "/sys/bus/pci/devices", URDMA_SYSFS, SLASHES, true },
};

#define PREFIXES (sizeof(prefixes) / sizeof(prefixes[0]))

static bool begins(const char *path, const char *with)
{
	return strncmp(path, with, strlen(with)) == 0;
}

static bool fits(const char *rest, enum after after)
{
	switch (after) {
	case A_SLASH:
		return !*rest || *rest == '/';
	case SLASHES:
		return !rest[strspn(rest, "/")];
	default:
		return true;
	}
}

/* Must be fast: every open and stat of the program calls it. */
static const struct prefix *prefix_of(const char *path)
{
	if (path[0] != '/' || (path[1] != 's' && path[1] != 'd'))
		return NULL;
	for (size_t i = 0; i < PREFIXES; i++)
		if (begins(path, prefixes[i].text) && fits(path + strlen(prefixes[i].text), prefixes[i].after))
			return &prefixes[i];
	return NULL;
}

/* Reports whether a path relative to /, /sys or a folder there may be one with a prefix: it begins like the end
 * of one. So calls with other paths cost no system call. */
static bool may_be_relative(const char *path)
{
	for (size_t i = 0; i < PREFIXES; i++)
		for (const char *end = prefixes[i].text; end; end = strchr(end, '/'))
			if (*++end == *path && begins(path, end))
				return true;
	return false;
}

/* Writes the absolute path to the buffer; returns false if it is none of ours. The descriptor's folder is where the
 * kernel says; "." and ".." in the path are not resolved. */
static bool absolute(char *buffer, size_t size, int dir, const char *path)
{
	char link[sizeof("/proc/self/fd/2147483647")] = "/proc/self/cwd";
	int before = errno;
	ssize_t n = 0;

	if (path[0] != '/') {
		if (!may_be_relative(path))
			return false;
		if (dir != AT_FDCWD)
			snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
		n = REAL(readlink)(link, buffer, size - 1);
		errno = before;
		if (n <= 0 || (size_t)n >= size - 1)
			return false;
		if (n > 1) /* not the root */
			buffer[n++] = '/';
	}
	return (size_t)snprintf(buffer + n, size - (size_t)n, "%s", path) < size - (size_t)n;
}

/* Puts root in place of the first bytes of the path; returns false if there is no room. */
static bool replace(char *path, size_t size, size_t bytes, const char *root)
{
	size_t length = strlen(path) - bytes, n = strlen(root);

	if (n + length >= size)
		return false;
	memmove(path + n, path + bytes, length + 1);
	memcpy(path, root, n);
	return true;
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

/* Puts the counterpart in place of the path in the buffer. Returns false if there is none. */
static bool redirect(struct urdma_place *place, const struct prefix *prefix)
{
	const struct urdma_summary *seen = urdma_summary();

	if (!seen || (prefix->profile && (!seen->devices || !*seen->info->profile)))
		return false;
	if (prefix->kind == URDMA_NODES)
		number_node(place, place->buffer);
	return replace(place->buffer, sizeof(place->buffer), prefix->kind == URDMA_SYSFS ? strlen("/sys") : 0,
		       seen->sysfs_path);
}

void urdma_place(struct urdma_place *place, int dir, const char *path)
{
	const struct prefix *prefix = NULL;

	place->kind = URDMA_ELSEWHERE;
	place->path = path;
	place->major = place->minor = 0;
	place->umad = place->issm = false;
	if (path && path[0] == '/')
		prefix = prefix_of(path);
	if (!path || (path[0] == '/' && !prefix) || !absolute(place->buffer, sizeof(place->buffer), dir, path))
		return;
	if (!prefix)
		prefix = prefix_of(place->buffer);
	if (prefix && redirect(place, prefix)) {
		place->kind = prefix->kind;
		place->path = place->buffer;
	} else {
		place->major = place->minor = 0;
		place->umad = place->issm = false;
	}
}

void urdma_place_shown(const struct urdma_place *place, char *path)
{
	const struct urdma_summary *seen = place->kind == URDMA_SYSFS ? urdma_summary() : NULL;
	char *root = seen ? REAL(realpath)(seen->sysfs_path, NULL) : NULL;
	size_t n = root ? strlen(root) : 0;

	if (n >= strlen("/sys") && begins(path, root) && path[n] == '/')
		replace(path, n + strlen(path), n, "/sys");
	free(root);
}
