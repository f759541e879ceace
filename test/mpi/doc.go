// Package mpi runs MPI programs that check every byte (testdata) with Debian's
// Open MPI, over each way that it has to verbs: the openib component, with and
// without shared receive queues, libfabric and UCX; within a urdmad, and between
// two and four, joined by memif, the kernel's UDP and Ethernet frames. urdmad's counters tell
// that the bytes went through it.
package mpi
