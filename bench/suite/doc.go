// Package suite measures urdma beside its peers: perftest's programs over urdma,
// and iperf3, sockperf, testpmd and memcpy on the same machine in the same
// round, so that what slows the machine down slows both.
//
//	measures.go  every figure there is
//	perftest.go  figures of perftest's programs
//	kernel.go    figures of kernel sockets
//	bytes.go     what moving bytes takes without any protocol
//	floor.go     figures of bench/floor, and of copying memory
//	testpmd.go   figures of dpdk-testpmd
//	ends.go      two programs of our own, in package verbs
//	flows.go     figures of many flows beside each other, and of long ones
//	idle.go      what idle connections take
//	connections.go, registration.go, netpipe.go  figures of cmtime, bench/registration, NetPIPE
//	mpi.go       figures of Open MPI
//	targets.go   what should be asked of the figures
//	sweep.go     figures over sizes and numbers of queue pairs
//	places.go    the hosts on which all that runs, set up when first needed
//	run.go       rounds, progress
//	machine.go   where it ran
package suite
