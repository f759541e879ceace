/* messages.c - lists of messages of datagram sockets. */
#include <stdlib.h>
#include <string.h>

#include "datagram.h"

struct rs_message *rs_message_new(uint32_t length)
{
	struct rs_message *m = malloc(sizeof(*m) + length);

	if (m)
		*m = (struct rs_message){ .length = length };
	return m;
}

void rs_message_append(struct rs_messages *list, struct rs_message *m)
{
	if (!list->first)
		list->last = &list->first;
	m->next = NULL;
	*list->last = m;
	list->last = &m->next;
	list->bytes += sizeof(*m) + m->length;
}

struct rs_message *rs_message_take(struct rs_messages *list)
{
	struct rs_message *m = list->first;

	if (!m)
		return NULL;
	list->first = m->next;
	list->bytes -= sizeof(*m) + m->length;
	return m;
}

void rs_messages_drop(struct rs_messages *list)
{
	struct rs_message *m;

	while ((m = rs_message_take(list)))
		free(m);
}

void rs_message_arrived(struct rs *rs, const union rs_name *from, const uint8_t *data, uint32_t n)
{
	struct rs_messages *arrived = &rs->datagrams->arrived;
	struct rs_message *m;

	if (arrived->first && arrived->bytes + sizeof(*m) + n > rs->options.recv_bytes)
		return;
	m = rs_message_new(n);
	if (!m)
		return;
	m->from = *from;
	if (n)
		memcpy(m->data, data, n);
	rs_message_append(arrived, m);
}
