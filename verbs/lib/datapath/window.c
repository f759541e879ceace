/* window.c - work requests that bind and invalidate memory windows. */
#include <errno.h>

#include "objects.h"

#define WINDOW_ACCESS                                                                                         \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
	 IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED)

/* Conditions that only urdmad can check make the request fail when it is carried out. */
int urdma_window_check(const struct ibv_mw *mw, const struct ibv_mw_bind_info *info)
{
	if (!mw || (!info->mr && (info->addr || info->length)))
		return EINVAL;
	if (info->mw_access_flags & ~(unsigned int)WINDOW_ACCESS)
		return EINVAL;
	return info->mr && info->mr->pd != mw->pd ? EPERM : 0;
}

/* Only the key of the program's rkey is used, the lower eight bits, as other providers do. */
void urdma_window_write(struct urdma_abi_sqe *slot, const struct ibv_mw *mw, uint32_t rkey,
	const struct ibv_mw_bind_info *info)
{
	slot->rkey = (mw->rkey & ~0xffu) | (rkey & 0xffu);
	slot->imm_or_stag = info->mr ? info->mr->lkey : 0;
	slot->remote_addr = info->addr;
	slot->compare_add = info->length;
	slot->swap = info->mw_access_flags;
}
