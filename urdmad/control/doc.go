// Package control is urdmad's side of the control protocol (verbs/abi/urdma_abi.h): the listening
// socket, one session per client, handles, and what attaches. It knows no kind of object: those are in
// package objects, which attaches as features do.
//
// session.go, server.go, worker.go, handles.go, reply.go, attach.go and domains.go declare what
// belongs together: a session has its server, worker and objects, and these have their sessions.
// Read them first; the other files use them, and form no circle.
//
// serve.go makes the socket, accepts clients, receives requests and answers them, conn.go has
// messages and their descriptors. dispatch.go maps a message to the function that answers it,
// batch.go takes several requests of one message apart. hello.go answers HELLO and queries of devices,
// memory.go makes memory for queues and checks the /proc/self/mem of the fallback path, link.go sends
// events of ports.
//
// client_death.go removes all objects of a client, however it ended.
//
// waiting.go limits connections that have not said HELLO. Package account identifies the owner of
// a client and counts its resources against limits.
//
// A session runs on its own goroutine, which makes the system calls (memfds, mappings).
// Everything that touches the data path runs on the engine's thread through Session.Do. Bytes
// from clients are checked here and by the objects: exact message length, known handles of the right
// kind, limits.
package control
