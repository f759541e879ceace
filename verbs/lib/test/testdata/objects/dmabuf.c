/* dmabuf.c - memory that is registered by descriptor: urdmad maps it, the program need not. */
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "objects.h"

#ifndef MFD_HUGE_2MB
#define MFD_HUGE_2MB (21U << 26)
#endif
#define SIZE (16 * 4096u)
#define SKIP 8200u
#define IOVA (UINT64_C(77) * 4096 + SKIP % 4096)
#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define HUGE_PAGES (2u << 21)

static int memfd(unsigned int flags, off_t length)
{
	int fd = memfd_create("program's", flags | MFD_ALLOW_SEALING);

	CHECK(fd >= 0 && ftruncate(fd, length) == 0);
	return fd;
}

/* Writes, reads and adds through a pair, and checks the result through its own mapping. */
static void use(int fd)
{
	uint8_t *memory = mmap(NULL, SIZE + 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct end a, b;

	CHECK(memory != MAP_FAILED);
	pair_up(&a, &b, IBV_QPT_RC, RIGHTS);
	CHECK((mr = ibv_reg_dmabuf_mr(pd, SKIP, SIZE, IOVA, fd, RIGHTS)));
	CHECK(mr->length == SIZE && mr->pd == pd && mr->lkey && mr->rkey);
	memset(a.memory, 5, SIZE);
	wr = write_to(&a, mr->rkey, IOVA, SIZE, &sge);
	CHECK_RETURNS(post(&a, &wr), 0);
	completion(&a, IBV_WC_SUCCESS);
	CHECK(!memcmp(memory + SKIP, a.memory, SIZE) && !memory[SKIP - 1] && !memory[SKIP + SIZE]);
	memory[SKIP + 9] = 77;
	wr.opcode = IBV_WR_RDMA_READ;
	CHECK_RETURNS(post(&a, &wr), 0);
	completion(&a, IBV_WC_SUCCESS);
	CHECK(a.memory[9] == 77);
	wr = write_to(&a, mr->rkey, IOVA + 1, SIZE, &sge);
	CHECK_RETURNS(post(&a, &wr), 0);
	completion(&a, IBV_WC_REM_ACCESS_ERR);
	errno = 0;
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_INPUT && errno == EOPNOTSUPP);
	CHECK_RETURNS(ibv_dereg_mr(mr), 0);
	munmap(memory, SIZE + 16384);
	end_free(&a);
	end_free(&b);
}

void case_dmabuf(void)
{
	int fd = memfd(0, SIZE + 16384), device = open("/dev/udmabuf", O_RDWR), huge;
	struct udmabuf_create whole = { .memfd = (uint32_t)fd, .flags = UDMABUF_FLAGS_CLOEXEC, .size = SIZE + 16384 };
	void *page;

	use(fd);
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	if (device >= 0) {
		CHECK((fd = ioctl(device, UDMABUF_CREATE, &whole)) >= 0);
		use(fd);
		CHECK_NULL(ibv_reg_dmabuf_mr(pd, 0, SIZE + 16385, 0, fd, RIGHTS), EINVAL);
	} else {
		printf("SKIPPED: there is no /dev/udmabuf: memfds alone\n");
	}
	close(fd);
	huge = memfd(MFD_HUGETLB | MFD_HUGE_2MB, HUGE_PAGES);
	page = mmap(NULL, HUGE_PAGES, PROT_READ | PROT_WRITE, MAP_SHARED, huge, 0);
	if (page != MAP_FAILED)
		use(huge);
	else
		printf("SKIPPED: there are no huge pages (vm.nr_hugepages)\n");
}

void case_dmabuf_refused(void)
{
	int fd = memfd(0, SIZE), zero = open("/dev/zero", O_RDWR), ends[2],
		disk = open("dmabuf-of-a-disk", O_RDWR | O_CREAT, 0600);

	CHECK(zero >= 0 && pipe(ends) == 0 && disk >= 0 && ftruncate(disk, SIZE) == 0);
	unlink("dmabuf-of-a-disk");
	CHECK_NULL(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, -1, RIGHTS), EBADF);
	CHECK_NULL(ibv_reg_dmabuf_mr(pd, 0, 0, 0, -1, 0), EBADF); /* how NCCL asks whether there are dma-bufs */
	CHECK_NULL(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, zero, RIGHTS), EINVAL);
	CHECK_NULL(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, ends[0], RIGHTS), EINVAL);
	CHECK_NULL(ibv_reg_dmabuf_mr(pd, 0, 0, 0, fd, RIGHTS), EINVAL);
	CHECK_NULL(ibv_reg_dmabuf_mr(pd, 4096, SIZE, 0, fd, RIGHTS), EINVAL);
	CHECK_NULL(ibv_reg_dmabuf_mr(pd, UINT64_MAX - 4095, 8192, 0, fd, RIGHTS), EINVAL);
	CHECK_NULL(ibv_reg_dmabuf_mr(pd, 0, 4096, 8, fd, RIGHTS), EINVAL); /* different offsets in the page */
	CHECK_NULL(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, fd, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	CHECK_NULL(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, fd, RIGHTS | IBV_ACCESS_ZERO_BASED), EINVAL);
	if (!ibv_reg_dmabuf_mr(pd, 0, 4096, 0, disk, RIGHTS)) /* unless the folder is on tmpfs */
		CHECK(errno == EOPNOTSUPP);
}
