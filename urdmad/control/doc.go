// Package control is urdmad's side of the control protocol
// (verbs/abi/urdma_abi.h): the listening socket, one session per client, and
// the objects each client owns.
//
// server.go listens, session.go reads requests and answers them, dispatch.go
// says which handler takes which message, the others hold the handlers: device
// and domain, memory, queue, pair, connect; inspect and view, capture. convert.go
// has the ABI's form of what rdma_cm says. cleanup.go removes everything a client
// leaves behind, however it went.
//
// owner.go says who a client is and what it may see, limits.go what it may have,
// account.go what it has. waiting.go bounds connections that say nothing,
// blocking.go what a client can make wait.
//
// A session runs on its own goroutine and prepares what takes system calls
// (memfds, mappings); what touches the data path runs on the engine's thread
// through Session.do. Client bytes are checked here: exact message length,
// known handles of the right kind, limits.
package control
