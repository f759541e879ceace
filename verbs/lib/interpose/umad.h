/*
 * umad.h - /dev/infiniband/umadN and issmN, by which programs send and receive
 * management datagrams. Opened, they are a connection to urdmad: poll(2), write(2) and
 * fcntl(2) of it do what those of the kernel's device do, and read(2) and ioctl(2) are
 * here. Descriptors that dup(2) made are read as sockets are.
 */
#ifndef URDMA_UMAD_H
#define URDMA_UMAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* As open(2) of that device, flags being open's. */
int urdma_umad_open(uint32_t device, bool issm, int flags);

#endif /* URDMA_UMAD_H */
