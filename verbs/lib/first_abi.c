/*
 * first_abi.c - the functions of libibverbs 1.0 (before 2007), whose structures had another layout. A
 * program that uses them finds no device. The other functions are defined so that the real library never
 * gets an object of ours.
 */
#include <errno.h>
#include <stddef.h>

#define FIRST_ABI(name) __attribute__((symver(#name "@IBVERBS_1.0"), visibility("default"), used))

/* Also used for functions that return void, or a number where 0 means "none". */
#define REFUSE_POINTER(name)                       \
	FIRST_ABI(name) void *first_abi_##name(void); \
	void *first_abi_##name(void)                  \
	{                                             \
		errno = ENOSYS;                           \
		return NULL;                              \
	}

#define REFUSE_STATUS(name)                     \
	FIRST_ABI(name) int first_abi_##name(void); \
	int first_abi_##name(void)                  \
	{                                           \
		errno = ENOSYS;                         \
		return -1;                              \
	}

FIRST_ABI(ibv_get_device_list) void *first_abi_get_device_list(int *num_devices);
void *first_abi_get_device_list(int *num_devices)
{
	if (num_devices)
		*num_devices = 0;
	errno = ENOSYS;
	return NULL;
}

REFUSE_POINTER(ibv_ack_async_event)
REFUSE_POINTER(ibv_ack_cq_events)
REFUSE_POINTER(ibv_alloc_pd)
REFUSE_STATUS(ibv_attach_mcast)
REFUSE_STATUS(ibv_close_device)
REFUSE_POINTER(ibv_create_ah)
REFUSE_POINTER(ibv_create_cq)
REFUSE_POINTER(ibv_create_qp)
REFUSE_POINTER(ibv_create_srq)
REFUSE_STATUS(ibv_dealloc_pd)
REFUSE_STATUS(ibv_dereg_mr)
REFUSE_STATUS(ibv_destroy_ah)
REFUSE_STATUS(ibv_destroy_cq)
REFUSE_STATUS(ibv_destroy_qp)
REFUSE_STATUS(ibv_destroy_srq)
REFUSE_STATUS(ibv_detach_mcast)
REFUSE_POINTER(ibv_free_device_list)
REFUSE_STATUS(ibv_get_async_event)
REFUSE_STATUS(ibv_get_cq_event)
REFUSE_POINTER(ibv_get_device_guid)
REFUSE_POINTER(ibv_get_device_name)
REFUSE_STATUS(ibv_modify_qp)
REFUSE_STATUS(ibv_modify_srq)
REFUSE_POINTER(ibv_open_device)
REFUSE_STATUS(ibv_query_device)
REFUSE_STATUS(ibv_query_gid)
REFUSE_STATUS(ibv_query_pkey)
REFUSE_STATUS(ibv_query_port)
REFUSE_STATUS(ibv_query_qp)
REFUSE_STATUS(ibv_query_srq)
REFUSE_POINTER(ibv_reg_mr)
REFUSE_STATUS(ibv_resize_cq)
