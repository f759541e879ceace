/* A row is written as words, "traffic=send cores=pair nap=20us", in the table as on the command line. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

/* The end of a run sends no kick, so "for ever" must end now and then. */
#define FOREVER_NS 50000000u

static const struct policy base = {
	.name = "", .daemons = 2, .kick = 0,
	.ladder = { .spin_ns = UINT64_MAX, .hog_first_ns = 1000000,
		    .hog_most_ns = 64000000 },
};

static int word_in(const char *value, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (strcmp(value, words[i]) == 0)
			return i;
	return -1;
}

static uint64_t duration(const char *value)
{
	char *unit;
	double n = strtod(value, &unit);

	if (strcmp(value, "ever") == 0)
		return UINT64_MAX;
	if (strcmp(unit, "us") == 0)
		return (uint64_t)(n * 1e3);
	if (strcmp(unit, "ms") == 0)
		return (uint64_t)(n * 1e6);
	return (uint64_t)n;
}

static int set_duration(struct policy *p, const char *key, const char *value)
{
	const struct { const char *key; uint64_t *field; } fields[] = {
		{ "reply", &p->ack_reply_ns },
		{ "ack", &p->ack_defer_ns },          { "spin", &p->ladder.spin_ns },
		{ "yield", &p->ladder.yield_ns },     { "nap", &p->ladder.nap_ns },
		{ "napmax", &p->ladder.nap_max_ns },  { "hog", &p->ladder.hog_ns },
		{ "dslice", &p->daemon.slice_ns },    { "cslice", &p->client.slice_ns },
		{ "pause", &p->pause_ns },            { "napslice", &p->ladder.nap_slice_ns },
		{ "alone", &p->ladder.alone_ns }, { "alonespin", &p->ladder.alone_spin_ns },
		{ "pollalone", &p->poll_alone_ns }, { "pollspin", &p->poll_alone_spin_ns },
		{ "hogfirst", &p->ladder.hog_first_ns }, { "hogmost", &p->ladder.hog_most_ns },
	};

	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (strcmp(key, fields[i].key) == 0)
			return *fields[i].field = duration(value), 1;
	return 0;
}

static int set_word(struct policy *p, const char *key, const char *value)
{
	static const char *const traffic[] = { "write", "send", "oneway", "memory", NULL };
	static const char *const cores[] = { "free", "pair", "cross", "split", "own", NULL };
	static const char *const post[] = { "returns", "yields", "same", NULL };
	static const char *const class[] = { "other", "batch", "fifo", "rr", NULL };
	int n = 0;

	if (strcmp(key, "traffic") == 0)
		p->traffic = (enum traffic)(n = word_in(value, traffic));
	else if (strcmp(key, "cores") == 0)
		p->cores = (enum cores)(n = word_in(value, cores));
	else if (strcmp(key, "post") == 0)
		p->post = (enum post)(n = word_in(value, post));
	else if (strcmp(key, "dclass") == 0)
		p->daemon.class = (enum class)(n = word_in(value, class));
	else if (strcmp(key, "cclass") == 0)
		p->client.class = (enum class)(n = word_in(value, class));
	else
		return 0;
	return n >= 0;
}

static int set_number(struct policy *p, const char *key, const char *value)
{
	int n = atoi(value);

	if (strcmp(key, "daemons") == 0)
		p->daemons = n;
	else if (strcmp(key, "poll") == 0)
		p->poll_yield_after = (uint32_t)n;
	else if (strcmp(key, "go") == 0)
		p->go = n;
	else if (strcmp(key, "echo") == 0)
		p->echo = n;
	else if (strcmp(key, "kick") == 0)
		p->kick = n;
	else if (strcmp(key, "dnice") == 0)
		p->daemon.nice = n;
	else if (strcmp(key, "cnice") == 0)
		p->client.nice = n;
	else
		return 0;
	return 1;
}

int parse_policy(const char *text, struct policy *p)
{
	char copy[512], *save = NULL, *word, *value;

	*p = base;
	snprintf(copy, sizeof copy, "%s", text);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		value = strchr(word, '=');
		if (!value) {
			fprintf(stderr, "floor: %s: expected key=value\n", word);
			return -1;
		}
		*value++ = 0;
		if (!set_word(p, word, value) && !set_duration(p, word, value) &&
		    !set_number(p, word, value)) {
			fprintf(stderr, "floor: %s=%s: no such setting\n", word, value);
			return -1;
		}
	}
	if (p->ladder.nap_ns > FOREVER_NS)
		p->ladder.nap_ns = FOREVER_NS;
	if (p->ladder.nap_max_ns < p->ladder.nap_ns)
		p->ladder.nap_max_ns = p->ladder.nap_ns;
	return 0;
}
