/* pattern.c - what bytes hold: a counter, and where they are. */
#include <string.h>

#include "writers.h"

#define FACTOR UINT64_C(0x9E3779B97F4A7C15) /* odd: what was found can be told from it */
#define INVERSE UINT64_C(0xF1DE83E19937733D)

static uint64_t word(size_t at, uint32_t version)
{
	if (cell.way->period)
		at %= cell.way->period;
	return (((uint64_t)version << 32) | at) * FACTOR;
}

uint32_t next_version(uint32_t version)
{
	return version % VERSIONS + 1;
}

char *lane_at(const struct lane *l)
{
	return cell.at + l->at;
}

/* Words are stored whole: another reader sees one version or the other. */
void pattern_fill(char *to, size_t at, size_t length, uint32_t version)
{
	for (size_t i = 0; i < length; i += 8)
		__atomic_store_n((uint64_t *)(void *)(to + i), word(at + i, version), __ATOMIC_RELAXED);
}

static uint64_t load(const char *from)
{
	return __atomic_load_n((const uint64_t *)(const void *)from, __ATOMIC_RELAXED);
}

void pattern_check(const char *from, size_t at, size_t length, uint32_t version, const char *what)
{
	for (size_t i = 0; i < length; i += 8) {
		uint64_t found = load(from + i), plain = found * INVERSE;

		CHECK(found == word(at + i, version), "%s: at %zu is %#llx, as of version %u at %u; it should be version %u", what, at + i,
		      (unsigned long long)found, (unsigned)(plain >> 32), (unsigned)plain, version);
	}
}

/* Its first bytes are of one version, and the others of the next or of the one before: a child's copy of
 * memory that urdmad maps is made while the other party writes, and a processor may copy bytes. */
static bool torn(uint64_t found, size_t at)
{
	if (!(cell.kind->bit & (ALIGNED | ARENA)))
		return false;
	for (uint32_t version = 1; version <= VERSIONS; version++) {
		uint64_t one = word(at, version), other = word(at, next_version(version));

		for (unsigned bits = 8; bits < 64; bits += 8) {
			uint64_t low = (UINT64_C(1) << bits) - 1;

			if (found == ((one & low) | (other & ~low)) || found == ((other & low) | (one & ~low)))
				return true;
		}
	}
	return false;
}

void pattern_known(const char *from, size_t at, size_t length, const char *what)
{
	for (size_t i = 0; i < length; i += 8) {
		uint64_t found = load(from + i);
		uint32_t version = (uint32_t)(found * INVERSE >> 32);

		CHECK((version <= VERSIONS && found == word(at + i, version)) || torn(found, at + i),
		      "%s: at %zu is %#llx, of no version", what, at + i, (unsigned long long)found);
	}
}

void lanes_check(const struct lane *lanes, const char *what)
{
	for (unsigned i = 0; i < cell.lanes; i++)
		pattern_check(lane_at(&lanes[i]), lanes[i].at, cell.length, lanes[i].version, what);
}
