//go:build c_only
/*
 * The ranges of whole pages that are registered, each once with how often it is:
 * the page table counts ranges, so that registering one again, and taking that
 * back, costs nothing that goes with its size.
 */
#include "internal.h"
#include "kernel/sys.h"

enum { FIRST_BUCKETS = 512, SLAB = 64 * 1024 };

static struct range **buckets;
static size_t bucket_count, range_count;
static struct range *spare;

static struct range **bucket_of(int file, uint64_t first, uint64_t last)
{
	uint64_t h = (first / PAGE * FILES + (uint64_t)file) *
	             UINT64_C(0x9E3779B97F4A7C15);
	h = (h ^ last / PAGE) * UINT64_C(0xBF58476D1CE4E5B9);
	return &buckets[(h >> 32) & (bucket_count - 1)];
}

struct range *range_find(int file, uint64_t first, uint64_t last)
{
	if (!buckets)
		return NULL;
	struct range *r = *bucket_of(file, first, last);
	while (r && (r->first != first || r->last != last || r->file != file))
		r = r->next;
	return r;
}

static void insert(struct range *r)
{
	struct range **head = bucket_of(r->file, r->first, r->last);
	r->next = *head;
	*head = r;
}

static bool grow(void)
{
	size_t old_count = bucket_count;
	struct range **old = buckets;
	size_t count = old_count ? old_count * 4 : FIRST_BUCKETS;
	struct range **fresh = own_memory(count * sizeof *fresh);
	if (!fresh)
		return old != NULL; /* a crowded table still works */
	buckets = fresh;
	bucket_count = count;
	for (size_t i = 0; i < old_count; i++)
		for (struct range *r = old[i], *next; r; r = next) {
			next = r->next;
			insert(r);
		}
	if (old)
		sys_munmap((uint64_t)old, old_count * sizeof *old);
	return true;
}

static struct range *take_spare(void)
{
	if (!spare) {
		struct range *slab = own_memory(SLAB);
		for (size_t i = 0; slab && i < SLAB / sizeof *slab; i++) {
			slab[i].next = spare;
			spare = &slab[i];
		}
	}
	struct range *r = spare;
	if (r)
		spare = r->next;
	return r;
}

/* A range that isn't there yet, with a count of 0; NULL without memory. */
struct range *range_make(int file, uint64_t first, uint64_t last)
{
	if (range_count >= bucket_count && !grow())
		return NULL;
	struct range *r = take_spare();
	if (!r)
		return NULL;
	*r = (struct range){ .first = first, .last = last, .file = file };
	insert(r);
	range_count++;
	return r;
}

void range_drop(struct range *r)
{
	struct range **at = bucket_of(r->file, r->first, r->last);
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	r->next = spare;
	spare = r;
	range_count--;
}

/* A forked child owns no registration. */
void range_reset(void)
{
	for (size_t i = 0; i < bucket_count; i++) {
		for (struct range *r = buckets[i], *next; r; r = next) {
			next = r->next;
			r->next = spare;
			spare = r;
		}
		buckets[i] = NULL;
	}
	range_count = 0;
}
