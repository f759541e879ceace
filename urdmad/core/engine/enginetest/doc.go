// Package enginetest runs two engines with their connection managers on one
// virtual clock, joined by linked ports, with clients that drive real rings.
//
// world.go turns the engines and moves the clock, host.go is one urdmad,
// client.go a client with its doorbells and memory, pair.go its queue pairs and
// completion queues, number.go and datagram.go pairs that need no rdma_cm, ids.go
// its rdma_cm ids, runs.go what a test is run with, traffic.go a workload that checks
// every byte and every completion, stranger.go a peer made of bare packets,
// attacker.go somebody on the network between the hosts.
//
// A run depends on nothing but its seed: everything random is drawn from it, and
// the clock stands still while a helper goroutine of package mem is at work.
package enginetest
