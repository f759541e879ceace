/*
 * standin.h - sockets connected to urdmad that stand for descriptors which the kernel's RDMA would give a
 * program. Duplicates made by dup(2) behave as plain sockets.
 */
#ifndef URDMA_STANDIN_H
#define URDMA_STANDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../session/client.h"

enum urdma_standin {
	URDMA_UMAD,    /* an open /dev/infiniband/umadN or issmN: umad.c */
	URDMA_NETLINK, /* a socket of NETLINK_RDMA: netlink.c */
	URDMA_STANDINS
};

/* Opens a socket of which urdmad knows by the request what it stands for. flags: SOCK_CLOEXEC, SOCK_NONBLOCK.
 * Returns the descriptor, or -1 and errno: ENODEV without urdmad. */
int urdma_standin_open(enum urdma_standin kind, const struct urdma_abi_header *request, int flags);

/* Reports whether fd is an open socket of that kind. Cheap: calls that all programs make ask. */
bool urdma_standin(enum urdma_standin kind, int fd);

#endif /* URDMA_STANDIN_H */
