/* Direct I/O into memory that stays shared, while it is registered and deregistered: the
 * device writes to pages that the kernel holds by themselves, so none may move. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "torture.h"

enum { LENGTH = 1 << 20 };

static int file = -1;
static volatile bool stop;

static void *read_on(void *arg)
{
	unsigned char *p = arg;
	unsigned long rounds = 0;
	for (; !stop; rounds++) {
		memset(p, 0, LENGTH);
		CHECK(pread(file, p, LENGTH, 0) == LENGTH, "round %lu: %s", rounds, strerror(errno));
		for (size_t i = 0; i < LENGTH; i++)
			CHECK(p[i] == (unsigned char)(i / 61 * 7 + 1), "round %lu: byte %zu", rounds, i);
	}
	return NULL;
}

static bool make_file(unsigned char *p)
{
	char name[] = "/var/tmp/urdma-direct-XXXXXX";
	int fd = mkstemp(name);
	for (size_t i = 0; i < LENGTH; i++)
		p[i] = (unsigned char)(i / 61 * 7 + 1);
	CHECK(fd >= 0 && write(fd, p, LENGTH) == LENGTH, "%s", name);
	file = open(name, O_RDONLY | O_DIRECT);
	unlink(name);
	close(fd);
	return file >= 0 && pread(file, p, LENGTH, 0) == LENGTH;
}

static void beside_registrations(unsigned char *p, size_t all)
{
	pthread_t t;
	struct urdma_region r = must_share(p, all);
	must_deregister(&r);
	CHECK(idle_pages() >= LENGTH / PAGE, "%ld pages stayed", (long)idle_pages());
	stop = false;
	CHECK(pthread_create(&t, NULL, read_on, p) == 0, "pthread_create");
	for (long i = 0; i < opt.rounds; i++) {
		unsigned char *other = anon(2 * LENGTH);
		struct urdma_region s = must_share(other, 2 * LENGTH);
		r = must_share(p, all);
		must_deregister(&s);
		must_deregister(&r);
		munmap(other, 2 * LENGTH);
	}
	stop = true;
	pthread_join(t, NULL);
}

int test_direct(void)
{
	void *chunk;
	unsigned char *p = anon(8 * LENGTH);
	if (!make_file(p)) {
		printf("/var/tmp takes no direct I/O\n");
		return SKIP_STATUS;
	}
	beside_registrations(p, 8 * LENGTH);
	munmap(p, 8 * LENGTH);
	CHECK(posix_memalign(&chunk, PAGE, LENGTH) == 0, "posix_memalign");
	beside_registrations(chunk, LENGTH);
	free(chunk);
	return 0;
}
