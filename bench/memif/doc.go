// Command memif measures our memif port between two processes, one core each,
// beside DPDK's net_memif driven by dpdk-testpmd if that is installed.
//
//	cd bench; go run ./memif [-seconds 2] [-sizes 64,1500,9000] [-ring 1024] [-testpmd=false]
//
// Columns: raw touches nothing but the first bytes of a frame; copy also copies
// every frame in from private memory and out into private memory, which is what
// direct placement does and what net_memif itself does to and from mbufs, so
// "copy" is the one to hold beside testpmd. The best 50 ms of a measurement count
// (testpmd: its last second), because other load can only take away. Latency is half a round trip of one
// 64-byte frame with both sides spinning.
//
// The test of this directory (cd bench; go test ./memif) is the torture: a peer
// process killed with SIGKILL under load, again and again.
package main
