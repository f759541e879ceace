/* device.c - the device list and the names of devices. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "context.h"

static struct urdma_device *make_device(struct urdma_client *client, uint32_t number)
{
	const struct urdma_abi_device *info = &client->info[number];
	struct urdma_device *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->client = client;
	d->number = number;
	d->device.node_type = (enum ibv_node_type)info->node_type;
	d->device.transport_type = (enum ibv_transport_type)info->transport_type;
	memcpy(d->device.name, info->name, sizeof(d->device.name));
	snprintf(d->device.dev_name, sizeof(d->device.dev_name), "uverbs%u", number);
	snprintf(d->device.dev_path, sizeof(d->device.dev_path), "%.180s/class/infiniband_verbs/uverbs%u",
		 client->sysfs_path, number);
	snprintf(d->device.ibdev_path, sizeof(d->device.ibdev_path), "%.170s/class/infiniband/%s",
		 client->sysfs_path, info->name);
	return d;
}

/* Returns false, and prints a line on stderr, if the port's address does not allow the device to be shown
 * as configured. */
static bool possible(const struct urdma_abi_device *first)
{
	const struct urdma_abi_device *port = first;
	const uint8_t *low;

	while (port < first + first->num_ports && (port->link_layer != IBV_LINK_LAYER_INFINIBAND || port->lid))
		port++;
	if (port == first + first->num_ports)
		return true;
	low = port->addr.addr + (port->addr.family == AF_INET ? 2 : 14);
	urdma_complain("%s cannot be shown as ib: the low 16 bits of its IP address, 0x%02x%02x, are no unicast LID "
		       "(0x0001-0xbfff)", first->name, low[0], low[1]);
	return false;
}

static void discard(struct urdma_devices *devices, uint32_t n)
{
	for (uint32_t i = 0; devices->list && i < n; i++)
		free(devices->list[i]);
	free(devices->list);
	free(devices->shared);
	free(devices);
}

static struct urdma_devices *make_devices(struct urdma_client *client)
{
	uint32_t n = client->num_devices;
	struct urdma_devices *devices = calloc(1, sizeof(*devices));
	bool whole;

	if (!devices)
		return NULL;
	devices->list = calloc(n + 1, sizeof(*devices->list));
	devices->shared = calloc(n + 1, sizeof(*devices->shared));
	whole = devices->list && devices->shared;
	for (uint32_t i = 0; whole && i < n; i += client->info[i].num_ports) {
		if (!possible(&client->info[i]))
			continue; /* its entry stays empty, so that indices are urdmad's numbers */
		devices->list[i] = make_device(client, i);
		whole = devices->list[i] != NULL;
	}
	if (whole)
		return devices;
	discard(devices, n);
	return urdma_null(ENOMEM);
}

struct urdma_devices *urdma_devices_of(struct urdma_client *client)
{
	struct urdma_devices *devices;

	pthread_mutex_lock(&client->devices_lock);
	if (!client->devices) {
		client->forked = urdma_objects_forked;
		client->devices = make_devices(client);
	}
	devices = client->devices;
	pthread_mutex_unlock(&client->devices_lock);
	return devices;
}

/* If urdmad does not run there are no devices, which is not an error. It is an error if this process has
 * no descriptor left for a connection to urdmad. */
URDMA_EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct urdma_client *client = urdma_client_get();
	bool unasked = !client && (errno == EMFILE || errno == ENFILE || errno == ENOMEM);
	struct urdma_devices *devices = client ? urdma_devices_of(client) : NULL;
	uint32_t n = devices ? client->num_devices : 0;
	struct ibv_device **list = unasked ? NULL : calloc(n + 1, sizeof(*list));
	int count = 0;

	if (num_devices)
		*num_devices = 0;
	if (!list)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		if (devices->list[i])
			list[count++] = &devices->list[i]->device;
	if (num_devices)
		*num_devices = count;
	return list;
}

URDMA_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

URDMA_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

URDMA_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	return (int)urdma_device_of(device)->number;
}

URDMA_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	struct urdma_device *d = urdma_device_of(device);

	return d->client->info[d->number].node_guid_be;
}
