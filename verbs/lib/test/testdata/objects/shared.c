/* shared.c - memory that the program shares with other processes: urdmad maps the same file if it can. In
 * any case, written data is there when the writer's completion is polled. */
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include "objects.h"

#define PAGES 16
#define SIZE (PAGES * 4096u)
#define SKIP 8192u /* the region begins inside the file */
#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static char name[64];
static uint64_t inode;

/* Returns whether urdmad maps the file. */
static int urdmad_maps(void)
{
	char path[64], line[512];
	uint64_t mapped;
	int found = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/maps", getenv("URDMAD_PID"));
	CHECK((f = fopen(path, "r")));
	while (fgets(line, sizeof(line), f))
		found |= sscanf(line, "%*s %*s %*s %*s %" SCNu64, &mapped) == 1 && mapped == inode;
	fclose(f);
	return found;
}

static uint8_t *map(int fd, int prot)
{
	struct stat st;
	uint8_t *memory = mmap(NULL, SIZE + SKIP, prot, MAP_SHARED, fd, 0);

	CHECK(memory != MAP_FAILED && fstat(fd, &st) == 0);
	inode = st.st_ino;
	return memory + SKIP;
}

/* Writes, reads and adds through a pair, and checks memory at each completion. */
static void use(uint8_t *memory)
{
	struct ibv_mr *mr;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct end a, b;

	pair_up(&a, &b, IBV_QPT_RC, RIGHTS);
	CHECK((mr = ibv_reg_mr(pd, memory, SIZE, RIGHTS)));
	for (int round = 0; round < 300; round++) {
		memset(a.memory, round + 1, SIZE);
		wr = write_to(&a, mr->rkey, (uintptr_t)memory, SIZE, &sge);
		CHECK_RETURNS(post(&a, &wr), 0);
		completion(&a, IBV_WC_SUCCESS);
		CHECK(!memcmp(memory, a.memory, SIZE));
		memory[5] = 77;
		wr.opcode = IBV_WR_RDMA_READ;
		CHECK_RETURNS(post(&a, &wr), 0);
		completion(&a, IBV_WC_SUCCESS);
		CHECK(a.memory[5] == 77);
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.remote_addr = (uintptr_t)memory;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.rkey = mr->rkey;
		sge.length = 8;
		CHECK_RETURNS(post(&a, &wr), 0);
		completion(&a, IBV_WC_SUCCESS);
		CHECK(memory[0] == (uint8_t)(round + 2));
	}
	CHECK_RETURNS(ibv_dereg_mr(mr), 0);
	end_free(&a);
	end_free(&b);
}

/* Registers memory and returns whether urdmad maps it. */
static int maps(uint8_t *memory, int rights)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, SIZE, rights);
	int mapped, tries = 60000;

	CHECK(mr);
	mapped = urdmad_maps();
	CHECK_RETURNS(ibv_dereg_mr(mr), 0);
	while (urdmad_maps() && tries--) /* it unmaps later, in another thread */
		usleep(1000);
	CHECK(!urdmad_maps());
	return mapped;
}

static void expect_mapped(uint8_t *memory, int is)
{
	CHECK(maps(memory, RIGHTS) == is);
	use(memory);
	munmap(memory - SKIP, SIZE + SKIP);
}

static int shm(const char *where, int flags)
{
	int fd;

	snprintf(name, sizeof(name), "%s/urdma-shared-%d", where, getpid());
	fd = open(name, flags, 0600);
	CHECK(fd >= 0 && (!(flags & O_CREAT) || ftruncate(fd, SIZE + SKIP) == 0));
	return fd;
}

static int memfd(void)
{
	int fd = memfd_create("program's", 0);

	CHECK(fd >= 0 && ftruncate(fd, SIZE + SKIP) == 0);
	return fd;
}

void case_shared_file(void)
{
	uint8_t *memory;
	int fd = memfd();

	expect_mapped(map(fd, PROT_READ | PROT_WRITE), 1); /* through its descriptor */
	memory = map(fd, PROT_READ | PROT_WRITE);
	CHECK(mprotect(memory + 8192, 4096, PROT_READ) == 0); /* splits it into three mappings */
	CHECK(maps(memory, IBV_ACCESS_REMOTE_READ) == 1);
	close(fd);

	fd = shm("/dev/shm", O_RDWR | O_CREAT);
	memory = map(fd, PROT_READ | PROT_WRITE);
	close(fd);
	expect_mapped(memory, 1); /* by its path */
	unlink(name);
}

/* Two files, or a file that urdmad may not write: works, but slower. */
void case_shared_file_refused(void)
{
	int fd = shm("/dev/shm", O_RDWR | O_CREAT), other;
	uint8_t *memory = map(fd, PROT_READ | PROT_WRITE);

	close(fd);
	fd = shm("/dev/shm", O_RDONLY); /* the process may have locks, which closing another descriptor would release */
	expect_mapped(memory, 0);
	memory = map(fd, PROT_READ);
	CHECK(maps(memory, IBV_ACCESS_REMOTE_READ) == 0);
	close(fd);
	unlink(name);

	fd = memfd();
	other = memfd();
	memory = map(fd, PROT_READ | PROT_WRITE);
	CHECK(mmap(memory + 4096, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, other, 0) == memory + 4096);
	expect_mapped(memory, 0);
	close(other);
	close(fd);

	fd = shm(".", O_RDWR | O_CREAT); /* most likely on a disk */
	unlink(name);
	use(map(fd, PROT_READ | PROT_WRITE));
	close(fd);
}

/* Memory without a path: urdmad maps it if the kernel lets the program open it. */
void case_shared_anonymous(void)
{
	int id = shmget(IPC_PRIVATE, SIZE, IPC_CREAT | 0600);
	uint8_t *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED);
	use(memory);
	CHECK(id >= 0 && (memory = shmat(id, NULL, 0)) != (void *)-1);
	CHECK(shmctl(id, IPC_RMID, NULL) == 0);
	use(memory);
}

/* Private huge pages from the pool are limited in number: none is used for sharing them. */
static void use_private_huge(size_t n)
{
	uint8_t *memory = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 21u << 26, -1, 0);

	CHECK(memory != MAP_FAILED);
	use(memory + n - SIZE - SKIP);
	munmap(memory, n);
}

/* Huge pages of a file are mapped like others. */
void case_shared_huge(void)
{
	const size_t n = 2 << 21;
	int fd = memfd_create("huge", MFD_HUGETLB | 21u << 26);
	uint8_t *memory;
	struct stat st;

	CHECK(fd >= 0 && ftruncate(fd, (off_t)n) == 0 && fstat(fd, &st) == 0);
	inode = st.st_ino;
	memory = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED) {
		printf("SKIPPED: there are no huge pages (vm.nr_hugepages)\n");
		return;
	}
	CHECK(maps(memory + n - SIZE, RIGHTS) == 1);
	use(memory + SKIP);
	CHECK(fstat(fd, &st) == 0 && st.st_size == (off_t)n); /* urdmad has not extended it */
	munmap(memory, n);
	close(fd);
	use_private_huge(n);
}
