// Package cm is rdma_cm inside urdmad: the ids that clients create, the
// listeners, and the handshake of TRP (docs/WIRE.md) that turns two ids into a
// connection. The library of a client is a shim in front of it, as librdmacm is
// in front of the kernel.
//
// manager.go holds the tables, address.go binds and resolves, active.go
// connects, passive.go listens, accepts and rejects, local.go joins two ids of
// one urdmad, ends.go hears of connections that were established or ended.
//
// All calls come on the engine's thread. Errors are syscall.Errno values, which
// the control protocol carries to the client. The package drives engine.Conn;
// it must not know sockets, messages or rings.
package cm
