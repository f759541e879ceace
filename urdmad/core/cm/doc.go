// Package cm implements rdma_cm in urdmad: the ids that clients create, the listeners, and the handshake that
// connects two ids. Its messages are those of package handshake, whatever the wire. A client's library is a thin
// layer in front of it, as librdmacm is in front of the kernel.
//
// network.go has the interface to the network, event.go the events to clients. manager.go has the ids and
// the tables. address.go binds and resolves addresses. packet.go handles messages that arrive. active.go
// connects. passive.go listens, accepts and rejects. samehost.go connects two ids of one urdmad. end.go
// handles established and ended connections.
//
// The package is pure: its input is requests, messages and the time, and all its effects go through Network
// and Channel. It must not know engines, sockets, control messages, rings or any wire's format. All calls
// come on the worker's thread. Errors are syscall.Errno values, which the control protocol sends to the client.
//
// A request to a port number whose listener has just closed is not refused: the peer repeats it
// (number.go). perftest creates a new listener for each connection.
package cm
