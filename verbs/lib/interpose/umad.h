/*
 * umad.h - /dev/infiniband/umadN and issmN, the device files for management datagrams. An open one is a
 * socket connected to urdmad: poll(2), write(2) and fcntl(2) work on it directly; read(2) and ioctl(2) are
 * implemented here.
 */
#ifndef URDMA_UMAD_H
#define URDMA_UMAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Like open(2) of that device file, with open's flags. */
int urdma_umad_open(uint32_t device, bool issm, int flags);

#endif /* URDMA_UMAD_H */
