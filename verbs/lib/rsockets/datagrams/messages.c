/* messages.c - assembles messages of datagram sockets from their parts. */
#include <arpa/inet.h>
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

/* Queues a complete message for the reader, if there is room. */
static void arrive(struct rs *rs, struct rs_message *m)
{
	struct rs_messages *arrived = &rs->datagrams->arrived;

	if (arrived->first && arrived->bytes + sizeof(*m) + m->length > rs->options.recv_bytes)
		free(m);
	else
		rs_message_append(arrived, m);
}

static struct rs_message **partial_of(struct rs_datagrams *d, const union rs_name *from)
{
	return &d->partial[rs_name_hash(from) % RS_PARTIALS];
}

/* Returns the message to which a part belongs; the first part begins a message. */
static struct rs_message *begun(struct rs_message **at, const union rs_name *from, const struct rs_header *h)
{
	uint32_t number = ntohl(h->number), offset = ntohs(h->offset);
	struct rs_message *m = *at;

	if (!offset) {
		free(m);
		*at = m = rs_message_new(ntohs(h->length));
		if (!m)
			return NULL;
		m->from = *from;
		m->number = number;
		return m;
	}
	if (!m || m->number != number || m->got != offset || m->length != ntohs(h->length) || !rs_name_equal(&m->from, from))
		return NULL;
	return m;
}

void rs_message_part(struct rs *rs, const union rs_name *from, const struct rs_header *h, const uint8_t *part,
	uint32_t n)
{
	struct rs_message **at = partial_of(rs->datagrams, from), *m;

	if (ntohs(h->offset) + n > ntohs(h->length) || ntohs(h->length) > RS_LONGEST)
		return;
	m = begun(at, from, h);
	if (!m)
		return;
	if (n)
		memcpy(m->data + m->got, part, n);
	m->got += n;
	if (m->got < m->length)
		return;
	*at = NULL;
	arrive(rs, m);
}
