// Package cmid is the part of rdma_cm that Go programs use: its event channel, which passes each event to its
// id; ids with their handshake (id.go); address resolution (resolve.go); and the connection requests queued
// at a listener (listener.go).
//
// The package must not know queue pairs and their queues. The owner of a queue pair learns of the
// connection's end through OnEnd.
package cmid
