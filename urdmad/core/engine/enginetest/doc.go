// Package enginetest runs two engines with their connection managers on one virtual clock, joined
// by linked ports, with clients that use real rings.
//
// world.go runs the engines' turns and moves the clock, host.go is one urdmad, client.go a client
// with its doorbells and memory, pair.go its queue pairs and completion queues, number.go and
// datagram.go queue pairs connected without rdma_cm, ids.go its rdma_cm ids, runs.go variants of
// a test run, traffic.go a workload that checks every byte and every completion, stranger.go a
// peer made of bare packets, attacker.go an attacker on the network, mutated.go and managed.go exchanges
// for tests that change their packets.
//
// A run depends on its seed only: all random decisions come from it, and the clock stands still
// while a helper goroutine of package mem is working.
package enginetest
