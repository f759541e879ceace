/*
 * paths.c - a program with the kernel's paths built in: prints the result of each libc call for the first
 * device, and the interfaces' addresses. It is built with and without _FORTIFY_SOURCE, which replaces some
 * calls.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define GUID "/sys/class/infiniband/urdma0/node_guid"
#define NODE "/dev/infiniband/uverbs0"
#define NONE "/dev/infiniband/uverbs7"

static volatile int read_only = O_RDONLY, read_write = O_RDWR; /* so that the compiler does not know the value */
static volatile size_t length = 100;

#define EXPECT(condition)                                                        \
	do {                                                                     \
		if (!(condition)) {                                              \
			printf("line %d: not so: %s (%m)\n", __LINE__, #condition); \
			failures++;                                              \
		}                                                                \
	} while (0)

static int failures;

static void expect_text(int fd)
{
	char text[32] = "";

	EXPECT(fd >= 0);
	EXPECT(read(fd, text, sizeof(text) - 1) == 20 && strcmp(text, "0000:00ff:fe00:0001\n") == 0);
	close(fd);
}

static void opening(void)
{
	FILE *file = fopen(GUID, "r");
	int root = open("/", O_RDONLY), fd;

	expect_text(open(GUID, read_only));
	expect_text(open64(GUID, read_only));
	expect_text(openat(AT_FDCWD, GUID, read_only));
	expect_text(openat64(root, GUID, read_only));
	EXPECT(file);
	expect_text(dup(fileno(file)));
	fclose(file);
	EXPECT(open(GUID "s", read_only) == -1 && errno == ENOENT);
	fd = open(NODE, read_write);
	EXPECT(fd >= 0);
	EXPECT(ioctl(fd, 0x1b01, NULL) == -1 && errno == ENOTTY);
	close(fd);
	EXPECT(open(NONE, read_write) == -1 && errno == ENOENT);
	close(root);
}

static bool is_node(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && major(st->st_rdev) == 231 && minor(st->st_rdev) == 192;
}

static void asking(void)
{
	struct stat st;
	struct statx stx;

	EXPECT(stat(GUID, &st) == 0 && S_ISREG(st.st_mode));
	EXPECT(stat("/sys/class/infiniband", &st) == 0 && S_ISDIR(st.st_mode));
	EXPECT(stat("/dev/infiniband", &st) == 0 && S_ISDIR(st.st_mode));
	EXPECT(stat(NODE, &st) == 0 && is_node(&st));
	EXPECT(lstat(NODE, &st) == 0 && is_node(&st));
	EXPECT(fstatat(AT_FDCWD, NODE, &st, 0) == 0 && is_node(&st));
	EXPECT(statx(AT_FDCWD, NODE, 0, STATX_ALL, &stx) == 0 && S_ISCHR(stx.stx_mode) && stx.stx_rdev_minor == 192);
	EXPECT(stat(NONE, &st) == -1 && errno == ENOENT);
	EXPECT(access(GUID, R_OK) == 0 && access(NODE, R_OK | W_OK) == 0);
	EXPECT(euidaccess(NODE, R_OK) == 0 && faccessat(AT_FDCWD, NODE, W_OK, AT_EACCESS) == 0);
	EXPECT(access(NODE, X_OK) == -1 && errno == EACCES);
	EXPECT(access(NONE, F_OK) == -1 && errno == ENOENT);
	EXPECT(access("/dev/infinibandit", F_OK) == -1);
	EXPECT(listxattr(GUID, NULL, 0) >= 0);
}

/* Paths relative to a folder's descriptor, and to the current folder. */
static void relative(void)
{
	static const char *const folders[] = { "/", "/sys", "/sys/class", "/" };
	static const char *const guids[] = { GUID + 1, GUID + 5, GUID + 11, "nothing/" GUID };
	struct stat st;
	char link[PATH_MAX];

	for (size_t i = 0; i < 4; i++) {
		int dir = open(folders[i], O_RDONLY | O_DIRECTORY);

		EXPECT(dir >= 0);
		if (i < 3)
			expect_text(openat(dir, guids[i], read_only));
		else
			EXPECT(openat(dir, guids[i], read_only) == -1 && errno == ENOENT);
		EXPECT((fstatat(dir, guids[i], &st, 0) == 0) == (i < 3));
		EXPECT((faccessat(dir, guids[i], R_OK, 0) == 0) == (i < 3));
		EXPECT(fchdir(dir) == 0 && (access(guids[i], R_OK) == 0) == (i < 3));
		close(dir);
		EXPECT(openat(dir, guids[i], read_only) == -1);
	}
	EXPECT(chdir("/") == 0);
	EXPECT(readlinkat(AT_FDCWD, "sys/class/infiniband/urdma0/link", link, sizeof(link)) == 9);
	EXPECT(fstatat(AT_FDCWD, NODE + 1, &st, 0) == 0 && is_node(&st));
	EXPECT(openat(-1, GUID + 1, read_only) == -1 && errno == EBADF);
}

static int not_dots(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void listing(void)
{
	struct dirent **list, *entry;
	DIR *dir = opendir("/dev/infiniband");
	bool found = false;
	char real[PATH_MAX], link[PATH_MAX];

	EXPECT(dir);
	while (dir && (entry = readdir(dir)))
		found |= strcmp(entry->d_name, "uverbs0") == 0;
	EXPECT(found);
	EXPECT(scandir("/sys/class/infiniband", &list, not_dots, alphasort) == 1 && strcmp(list[0]->d_name, "urdma0") == 0);
	EXPECT(realpath(GUID, real) && strcmp(real, GUID) == 0);
	EXPECT(strcmp(realpath("/usr", NULL), "/usr") == 0);
	EXPECT(readlink("/sys/class/infiniband/urdma0/link", link, sizeof(link)) == 9 && memcmp(link, "node_guid", 9) == 0);
	EXPECT(readlink("/sys/class/infiniband/urdma0/link", link, length) == 9);
	EXPECT(readlinkat(AT_FDCWD, "/sys/class/infiniband/urdma0/link", link, length) == 9);
	EXPECT(chdir("/sys/class/infiniband/urdma0") == 0 && access("node_guid", R_OK) == 0);
}

static void show6(const struct ifaddrs *a)
{
	const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)a->ifa_addr,
		*mask = (const struct sockaddr_in6 *)a->ifa_netmask;
	char text[64];

	printf("%s %s%%%u", a->ifa_name, inet_ntop(AF_INET6, &in->sin6_addr, text, sizeof(text)), in->sin6_scope_id);
	printf("/%s\n", inet_ntop(AF_INET6, &mask->sin6_addr, text, sizeof(text)));
}

/* Prints the addresses in the list; urdmad's are last, in reverse order. */
static void addresses(void)
{
	struct ifaddrs *list, *a;
	char text[64];

	for (int round = 0; round < 2; round++) {
		EXPECT(getifaddrs(&list) == 0);
		for (a = list; a; a = a->ifa_next) {
			const struct sockaddr_in *in = (const struct sockaddr_in *)a->ifa_addr,
				*mask = (const struct sockaddr_in *)a->ifa_netmask;

			if (in && in->sin_family == AF_INET6 && !round)
				show6(a);
			if (!in || in->sin_family != AF_INET || round)
				continue;
			printf("%s %s", a->ifa_name, inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text)));
			printf("/%s\n", inet_ntop(AF_INET, &mask->sin_addr, text, sizeof(text)));
		}
		freeifaddrs(list);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "addresses") == 0) {
		addresses();
		return failures;
	}
	opening();
	asking();
	listing();
	relative();
	return failures;
}
