// Package cmid is what a Go program has of rdma_cm: its event channel, which
// takes each event to the id that it concerns, and ids with their handshake
// (id.go), the search for a peer (resolve.go) and the requests that a listener
// holds (listener.go).
//
// The package must not know what is connected: queue pairs and their queues. The
// owner of a queue pair is told of the connection's end by OnEnd.
package cmid
