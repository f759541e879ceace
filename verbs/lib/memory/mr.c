/* mr.c - registers memory regions and decides by which path urdmad reaches their memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../datapath/warn.h"
#include "../device/context.h"
#include "../pages/pages.h"
#include "memory.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define ACCESS_REMOTE_CHANGES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define ACCESS_KNOWN                                                                                        \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
	 IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB)

/* not allowed for dma-bufs */
#define ACCESS_ADDRESS (IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB)

/* Optional flags may be ignored (ibv_reg_mr(3)). */
static int check_access(unsigned int access)
{
	if (access & ~(unsigned int)(ACCESS_KNOWN | IBV_ACCESS_OPTIONAL_RANGE))
		return urdma_wrong(EINVAL, "ibv_reg_mr: access is %#x, and there are no flags %#x", access,
				   access & ~(unsigned int)(ACCESS_KNOWN | IBV_ACCESS_OPTIONAL_RANGE));
	if ((access & ACCESS_REMOTE_CHANGES) && !(access & IBV_ACCESS_LOCAL_WRITE))
		return urdma_wrong(EINVAL, "ibv_reg_mr: access has IBV_ACCESS_REMOTE_WRITE or IBV_ACCESS_REMOTE_ATOMIC, which "
			"need IBV_ACCESS_LOCAL_WRITE");
	return 0;
}

static int give_file(struct urdma_client *client)
{
	struct urdma_abi_header request;
	struct urdma_abi_handle response;
	int fd = urdma_pages_file();
	int status = fd < 0 ? EBADF : urdma_call_fds(client, URDMA_ABI_ADD_FILE, &request, sizeof(request), &response,
						     sizeof(response), fd, NULL, 0);

	client->file_given = !status;
	client->file_handle = response.handle;
	return status;
}

/* Returns urdmad's handle of the memfd, after passing the memfd to urdmad at first use. */
static int file_handle(struct urdma_client *client, uint32_t *handle)
{
	int status = 0;

	pthread_mutex_lock(&client->file_lock);
	if (!client->file_given)
		status = give_file(client);
	*handle = client->file_handle;
	pthread_mutex_unlock(&client->file_lock);
	return status;
}

static int told(struct urdma_mr *m, const struct urdma_abi_reg_mr_response *response)
{
	m->mr.handle = response->handle;
	m->mr.lkey = response->lkey;
	m->mr.rkey = response->rkey;
	return 0;
}

/* Memory that is not shared with urdmad may belong to a file that the program maps shared, which urdmad
 * can map, too. Otherwise it takes the fallback path. */
static int register_file(struct urdma_mr *m, struct urdma_client *client, struct urdma_abi_reg_mr request,
			 struct urdma_abi_reg_mr_response *response)
{
	const struct urdma_shared *shared = &m->region.shared;
	bool opened;
	int before = errno, fd = urdma_file_find(shared, &opened), status = ENOENT;

	errno = before;
	if (fd < 0)
		return status;
	if (urdma_file_fill(&m->region, request.access & IBV_ACCESS_LOCAL_WRITE)) {
		request.path = URDMA_ABI_PATH_FILE;
		request.file_offset = shared->offset;
		request.inode = shared->inode;
		request.major = shared->major;
		request.minor = shared->minor;
		status = urdma_call_fds(client, URDMA_ABI_REG_MR, &request, sizeof(request), response, sizeof(*response), fd,
					NULL, 0);
	}
	if (opened)
		urdma_close(fd);
	return status;
}

static int register_on_demand(struct urdma_client *client, struct urdma_abi_reg_mr *request,
			      struct urdma_abi_reg_mr_response *response)
{
	int status, before = errno, fd = urdma_pages_mappings();

	if (fd < 0)
		return errno;
	errno = before;
	status = urdma_call_fds(client, URDMA_ABI_REG_MR, request, sizeof(*request), response, sizeof(*response), fd, NULL, 0);
	urdma_close(fd);
	return status;
}

static int tell_urdmad(struct urdma_mr *m, struct ibv_pd *pd, uint64_t iova, unsigned int access, uint32_t replaces)
{
	struct urdma_client *client = urdma_context_of(pd->context)->client;
	struct urdma_abi_reg_mr request = {
		.pd = pd->handle, .access = access & ACCESS_KNOWN, .addr = m->region.addr,
		.length = m->region.length, .iova = iova, .path = (uint32_t)m->region.path,
		.file_offset = m->region.file_offset, .replaces = replaces,
	};
	struct urdma_abi_reg_mr_response response;
	int status = 0;

	if (m->region.path == URDMA_PATH_ON_DEMAND) {
		status = register_on_demand(client, &request, &response);
		return status ? status : told(m, &response);
	}
	if (m->region.path == URDMA_PATH_SHARED)
		status = file_handle(client, &request.file);
	if (status == EBADF) {
		m->region.why = "the program closed the memory file's descriptor";
		request.path = m->region.path = URDMA_PATH_FALLBACK;
		request.file_offset = 0;
		status = 0;
	}
	if (m->region.shared.inode && !register_file(m, client, request, &response)) {
		m->region.why = NULL;
		return told(m, &response);
	}
	if (m->region.why) {
		urdma_log("memory %p+%zu takes the fallback path: %s", m->mr.addr, m->mr.length, m->region.why);
		strncpy(request.why, m->region.why, sizeof(request.why) - 1);
	}
	if (!status)
		status = urdma_call(client, URDMA_ABI_REG_MR, &request, sizeof(request), &response, sizeof(response));
	return status ? status : told(m, &response);
}

/* On-demand paging touches no page: urdmad asks the kernel at each access what is mapped. Address NULL and
 * length SIZE_MAX are the whole address space (ibv_reg_mr(3)). */
static int place_on_demand(struct urdma_mr *m, const struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			   unsigned int access)
{
	if (!urdma_context_of(pd->context)->on_demand)
		return EOPNOTSUPP;
	if (!addr && length == SIZE_MAX && (iova || (access & IBV_ACCESS_HUGETLB)))
		return EINVAL;
	m->region = (struct urdma_region){ .addr = (uintptr_t)addr, .length = length, .path = URDMA_PATH_ON_DEMAND };
	return 0;
}

/* replaces: handle of the region whose place and keys the new one takes; 0: none. */
static int register_memory(struct urdma_mr *m, struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			   unsigned int access, uint32_t replaces)
{
	int writes = access & (IBV_ACCESS_LOCAL_WRITE | ACCESS_REMOTE_CHANGES);
	int status = check_access(access);

	m->region.path = URDMA_PATH_FALLBACK; /* an empty region: urdmad never accesses it */
	if (!status && (uintptr_t)addr + length < length)
		status = urdma_wrong(EINVAL, "ibv_reg_mr: addr is %p, and length %zu goes beyond the last address", addr, length);
	if (!status && urdma_client_state(urdma_context_of(pd->context)->client) == URDMA_CLIENT_FORKED)
		status = EIO;
	if (!status && (access & IBV_ACCESS_ON_DEMAND))
		status = place_on_demand(m, pd, addr, length, iova, access);
	else if (!status && length)
		status = urdma_pages_register(addr, length, writes ? URDMA_PAGES_WRITE : 0, &m->region);
	if (status == EFAULT)
		urdma_wrong(EFAULT, "ibv_reg_mr: addr is %p, length %zu: not all of it is mapped and readable%s", addr, length,
			    writes ? ", and writable, as access wants" : "");
	if (status)
		return status;
	m->mr.context = pd->context;
	m->mr.pd = pd;
	m->mr.addr = addr;
	m->mr.length = length;
	m->iova = iova;
	m->access = access;
	return tell_urdmad(m, pd, access & IBV_ACCESS_ZERO_BASED ? 0 : iova, access, replaces);
}

/* For ibv_advise_mr, which names regions by their lkeys. */
static int remember(struct urdma_mr *m)
{
	return urdma_handles_add(urdma_context_of(m->mr.context)->client, URDMA_KIND_ON_DEMAND, m->mr.lkey, m);
}

static void forget(struct urdma_mr *m)
{
	if (m->access & IBV_ACCESS_ON_DEMAND)
		urdma_handles_remove(urdma_context_of(m->mr.context)->client, URDMA_KIND_ON_DEMAND, m->mr.lkey);
}

/* Makes a new region; users as in struct urdma_mr. */
static struct ibv_mr *make(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access,
	uint32_t *users)
{
	struct urdma_mr *m = calloc(1, sizeof(*m));
	int status = ENOMEM;

	if (m) {
		m->users = users;
		status = register_memory(m, pd, addr, length, iova, access, 0);
	}
	if (!status && (access & IBV_ACCESS_ON_DEMAND) && remember(m)) {
		ibv_dereg_mr(&m->mr);
		errno = ENOMEM;
		return NULL;
	}
	if (!status)
		return &m->mr;
	urdma_log("cannot register %p+%zu: errno %d", addr, length, status);
	free(m);
	errno = status;
	return NULL;
}

URDMA_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
					     unsigned int access)
{
	struct ibv_mr *mr;
	const struct urdma_mr *m;

	/* The kernel finds no page to pin for an empty region at the start of one; inside a page it pins that one. */
	if (!length && !((uintptr_t)addr % (uintptr_t)sysconf(_SC_PAGESIZE))) {
		errno = urdma_wrong(EINVAL, "ibv_reg_mr: length is 0, and addr %p is at the start of a page", addr);
		return NULL;
	}
	mr = make(pd, addr, length, iova, access, NULL);
	m = (const struct urdma_mr *)mr;
	if (mr && urdma_warn_wanted)
		urdma_warn_registers(mr, m->region.shared.inode ? m->region.why : NULL);
	return mr;
}

URDMA_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

URDMA_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned int)access);
}

/* urdmad knows that the region has no memory; peers get no key for it. */
struct ibv_mr *urdma_alloc_null_mr(struct ibv_pd *pd)
{
	struct urdma_abi_reg_mr request = { .pd = pd->handle, .path = URDMA_ABI_PATH_NULL };
	struct urdma_abi_reg_mr_response response;
	struct urdma_mr *m = calloc(1, sizeof(*m));
	int status;

	if (!m)
		return NULL;
	status = urdma_call(urdma_context_of(pd->context)->client, URDMA_ABI_REG_MR, &request, sizeof(request), &response,
			    sizeof(response));
	if (status) {
		free(m);
		errno = status;
		return NULL;
	}
	m->mr = (struct ibv_mr){ .context = pd->context, .pd = pd, .handle = response.handle, .lkey = response.lkey };
	return &m->mr;
}

struct ibv_mr *urdma_reg_part(struct ibv_pd *pd, void *addr, size_t length, unsigned int access, uint32_t *users)
{
	struct ibv_mr *mr = make(pd, addr, length, 0, access, users);

	if (mr)
		mr->addr = NULL;
	return mr;
}

static int register_dmabuf(struct urdma_mr *m, struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
			   unsigned int access)
{
	struct urdma_abi_reg_mr request = {
		.pd = pd->handle, .access = access & ACCESS_KNOWN, .length = length, .iova = iova, .path = URDMA_ABI_PATH_FILE,
		.file_offset = offset,
	};
	struct urdma_abi_reg_mr_response response;
	struct urdma_shared file;
	int status = check_access(access);

	if (!status && ((access & ACCESS_ADDRESS) || ((offset ^ iova) & 4095)))
		status = EINVAL;
	if (!status)
		status = urdma_file_lend(fd, offset, length, access & IBV_ACCESS_LOCAL_WRITE, &file);
	if (status)
		return status;
	request.inode = file.inode;
	request.major = file.major;
	request.minor = file.minor;
	status = urdma_call_fds(urdma_context_of(pd->context)->client, URDMA_ABI_REG_MR, &request, sizeof(request), &response,
				sizeof(response), fd, NULL, 0);
	return status ? status : told(m, &response);
}

/* Registers memory by descriptor: a dma-buf made by udmabuf, or a file on tmpfs or hugetlbfs. Other
 * dma-bufs are memory of devices, which urdmad can't copy to. */
URDMA_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
	int access)
{
	struct urdma_mr *m = calloc(1, sizeof(*m));
	int status = ENOMEM;

	if (m)
		status = register_dmabuf(m, pd, offset, length, iova, fd, (unsigned int)access);
	if (status) {
		urdma_log("cannot register %zu bytes of the dma-buf %d: errno %d%s", length, fd, status,
			  status == EOPNOTSUPP ? ": its exporter lets nobody map it" : "");
		free(m);
		errno = status;
		return NULL;
	}
	m->dmabuf = true;
	m->mr.context = pd->context;
	m->mr.pd = pd;
	m->mr.addr = (void *)(uintptr_t)offset; /* as in rdma-core */
	m->mr.length = length;
	return &m->mr;
}

URDMA_EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct urdma_mr *m = (struct urdma_mr *)mr;
	int status;

	if (urdma_warn_wanted && !m->users)
		urdma_warn_deregisters(urdma_context_of(mr->context)->client, mr);
	status = urdma_call_destroy(urdma_context_of(mr->context)->client, URDMA_ABI_DEREG_MR, mr->handle);
	if (status)
		return status;
	if (m->users)
		__atomic_fetch_sub(m->users, 1, __ATOMIC_RELAXED);
	forget(m);
	free(mr);
	return 0;
}

/*
 * The new registration takes the old one's place and keeps its keys, as NICs do if they can and as
 * programs have come to expect. The old one is not changed before the new one is complete, so it stays
 * valid on every failure.
 */
static int replace(struct urdma_mr *m, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	bool moved = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	struct urdma_mr made = { .access = 0 };
	int status;

	status = register_memory(&made, flags & IBV_REREG_MR_CHANGE_PD ? pd : m->mr.pd, moved ? addr : m->mr.addr,
				 moved ? length : m->mr.length, moved ? (uintptr_t)addr : m->iova,
				 flags & IBV_REREG_MR_CHANGE_ACCESS ? (unsigned int)access : m->access, m->mr.handle);
	if (status)
		return status;
	forget(m);
	*m = made;
	return m->access & IBV_ACCESS_ON_DEMAND ? remember(m) : 0;
}

/* Checks that rdma-core's library makes before it asks a device. */
static int check_rereg(const struct urdma_mr *m, int flags, const struct ibv_pd *pd, const void *addr, size_t length)
{
	if (m->users || m->dmabuf || !m->mr.rkey)
		return EOPNOTSUPP; /* device memory, a dma-buf, or no memory: peers have no key */
	if (flags & ~(int)IBV_REREG_MR_FLAGS_SUPPORTED)
		return EINVAL;
	if ((flags & IBV_REREG_MR_CHANGE_PD) && (!pd || pd->context != m->mr.context))
		return EINVAL;
	return (flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!addr || !length) ? EINVAL : 0;
}

/* ERR_CMD says that the region may no longer be used; with other devices it may be gone. */
URDMA_EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct urdma_mr *m = (struct urdma_mr *)mr;
	int status = check_rereg(m, flags, pd, addr, length), code = IBV_REREG_MR_ERR_INPUT;

	if (!status) {
		code = IBV_REREG_MR_ERR_CMD;
		status = flags ? replace(m, flags, pd, addr, length, access) : EINVAL;
	}
	if (!status)
		return 0;
	errno = status;
	return code;
}
