// Package suite measures urdma and, in the same round on the same machine, what it is compared with: perftest's
// programs over urdma against iperf3, sockperf, testpmd and memcpy. Whatever slows the machine down slows both.
//
//	measures.go  all figures
//	perftest.go  figures of perftest's programs
//	kernel.go, machine_kernel.go  figures of kernel sockets over veth, over lo
//	bytes.go     figures of bench/bytes: moving bytes without any protocol
//	copying.go   figures of copying memory
//	testpmd.go   figures of dpdk-testpmd
//	ends.go      two programs of our own, in package verbs
//	flows.go     figures of many concurrent flows, and of long ones
//	idle.go      costs of idle connections
//	connections.go, registration.go  figures of cmtime, bench/registration
//	mpi.go       figures of Open MPI
//	targets.go   requirements on the figures
//	sweep.go     figures over sizes
//	places.go    the hosts for all of this, set up when first needed
//	run.go       rounds, progress
//	machine.go   description of the machine
package suite
