/* device.h - what everyone may ask of a device, and how functions are exported. */
#ifndef URDMA_DEVICE_H
#define URDMA_DEVICE_H

#include <infiniband/verbs.h>

/* A function that programs may call. The library is built with hidden
 * visibility; liburdma.map gives the symbol its version node. */
#define URDMA_EXPORT __attribute__((visibility("default")))

/* Entry index of the port's GID table as this process shows it. EINVAL past the end. */
int urdma_context_gid(const struct ibv_context *context, uint32_t index, union ibv_gid *gid);

#endif /* URDMA_DEVICE_H */
