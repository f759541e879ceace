/*
 * interpose.h - functions of libc and symbols of libibverbs that are defined again
 * here for the program and its libraries, so that what they look up finds urdmad's
 * devices.
 */
#ifndef URDMA_INTERPOSE_H
#define URDMA_INTERPOSE_H

#define EXPORT __attribute__((visibility("default")))

#endif /* URDMA_INTERPOSE_H */
