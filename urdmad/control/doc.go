// Package control is urdmad's side of the control protocol
// (verbs/abi/urdma_abi.h): the listening socket, one session per client, and
// the objects each client owns.
//
// server.go listens, conn.go receives messages and their descriptors, session.go
// answers them, dispatch.go and dispatch_gen.go say whose method does, batch.go takes
// several at once, handles.go has the objects of a client.
//
// Handlers are methods of what a request is for: device.go (device, context, protection
// domain, greeting), memory.go and window.go, queue.go and srq.go (completion queues,
// channels, shared receive queues), pair.go, xrc.go, connect.go (rdma_cm),
// convert.go has the ABI's form of what rdma_cm says, link.go the events of ports, selfmem.go the
// fallback path's /proc/self/mem.
//
// client_death.go removes everything a client leaves behind, however it went; last.go
// waits for what it posted last.
//
// waiting.go bounds connections that say nothing; package account says whose a client
// is, what it may have and what it has.
//
// A session runs on its own goroutine and prepares what takes system calls
// (memfds, mappings); what touches the data path runs on the engine's thread
// through Session.do. Client bytes are checked here: exact message length,
// known handles of the right kind, limits.
package control
