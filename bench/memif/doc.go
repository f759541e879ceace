// Command memif measures our memif port between two processes, on one core each, and for comparison DPDK's
// net_memif with dpdk-testpmd, if that is installed.
//
//	cd bench; go run ./memif [-seconds 2] [-sizes 64,1500,9000] [-ring 1024] [-testpmd=false]
//
// Columns: raw touches only the first bytes of a frame. copy also copies every frame in from private memory and out
// into private memory, as direct placement does and as net_memif does from and to mbufs, so compare "copy" with
// testpmd. The result is the best 50 ms of a measurement (testpmd: its last second), because other load can only
// slow it down. Latency is half a round trip of a 64-byte frame, with both sides polling.
//
// The test in this directory (cd bench; go test ./memif) kills a peer process with SIGKILL under load, again and
// again.
package main
