/* device.c - the device list and what a device is called. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "objects.h"
#include "transport.h"

/* Devices live as long as the connection, so a list may be freed at any time. */
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

int urdma_devices_make(struct urdma_client *client)
{
	client->devices = calloc(client->num_devices + 1, sizeof(*client->devices));
	if (!client->devices)
		return ENOMEM;
	for (uint32_t i = 0; i < client->num_devices; i++) {
		if (!urdma_transport_possible(&client->info[i]))
			continue; /* its place stays empty, so numbers stay urdmad's */
		client->devices[i] = make_device(client, i);
		if (!client->devices[i])
			return ENOMEM;
	}
	return 0;
}

const struct urdma_abi_device *urdma_device_info(const struct urdma_client *client, uint32_t device)
{
	return device < client->num_devices ? &client->info[device] : NULL;
}

/* Without an urdmad there are no devices, which is no error; that this process has
 * no descriptor left to ask one with is. */
URDMA_EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct urdma_client *client = urdma_client_get();
	bool unasked = !client && (errno == EMFILE || errno == ENFILE || errno == ENOMEM);
	uint32_t n = client ? client->num_devices : 0;
	struct ibv_device **list = unasked ? NULL : calloc(n + 1, sizeof(*list));
	int count = 0;

	if (num_devices)
		*num_devices = 0;
	if (!list)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		if (client->devices[i])
			list[count++] = &client->devices[i]->device;
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
