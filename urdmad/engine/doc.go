// Package engine is the data path: one poll loop that carries work requests
// from client rings to the wire and segments from the wire to client memory.
//
// A packet's way, file by file: loop.go turns, rx.go parses and finds the
// connection, conn.go applies acknowledgements and order (package reliable),
// place.go checks and writes client memory (package mem), read.go answers and
// collects RDMA Reads, complete.go writes completions.
//
// A work request's way: loop.go turns, post.go copies it out of the client's
// ring and checks it, segment.go cuts it into DDP segments, tx.go puts headers
// around them, complete.go completes it when it is acknowledged. Between two
// queue pairs of one urdmad, local.go takes the place of the wire.
//
// Everything here runs on the worker's thread; other goroutines come in through
// Engine.Do. The package knows packets, rings and memory. It must not know the
// control protocol, rdma_cm ids or configuration files; package cm and package
// control drive it.
package engine
