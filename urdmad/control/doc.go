// Package control is urdmad's side of the control protocol (verbs/abi/urdma_abi.h): the listening
// socket, one session per client, and the objects of each client.
//
// server.go listens, conn.go receives messages and their descriptors, session.go answers them,
// dispatch.go and dispatch_gen.go map a message to the method that answers it, batch.go carries
// out several requests of one message, handles.go stores the objects of a client. attach.go has
// the interface for features.
//
// The methods that answer requests are in the file of the object concerned: device.go (device,
// context, protection domain, HELLO), memory.go and window.go, queue.go and srq.go (completion
// queues, channels, shared receive queues), pair.go, xrc.go, connect.go (rdma_cm). convert.go
// converts between the ABI's and rdma_cm's structures, link.go sends events of ports, selfmem.go
// checks the /proc/self/mem of the fallback path.
//
// client_death.go removes all objects of a client, however it ended; send_last.go waits for its
// last posts to be sent.
//
// waiting.go limits connections that have not said HELLO. Package account identifies the owner of
// a client and counts its resources against limits.
//
// A session runs on its own goroutine, which makes the system calls (memfds, mappings).
// Everything that touches the data path runs on the engine's thread through Session.Do. Bytes
// from clients are checked here: exact message length, known handles of the right kind, limits.
package control
