// Package mpi runs MPI programs (testdata), which check every byte, with Debian's Open MPI over each of its ways to
// verbs: the openib component, with and without shared receive queues, libfabric and UCX. They run within a urdmad,
// and between two and four that are joined by memif, the kernel's UDP or Ethernet frames. urdmad's counters show
// that it carried the bytes.
package mpi
