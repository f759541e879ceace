// Package cm is rdma_cm inside urdmad: the ids that clients create, the
// listeners, and the handshake of TRP (docs/WIRE.md chapter 3) that turns two
// ids into a connection. The library of a client is a shim in front of it, as
// librdmacm is in front of the kernel.
//
// network.go says what the package needs of the outside, event.go what it tells
// its clients. manager.go holds the ids and the tables, address.go binds and
// resolves, packet.go takes the handshake's packets, active.go connects,
// passive.go listens, accepts and rejects, samehost.go joins two ids of one
// urdmad, end.go hears of connections that were established or ended.
//
// The package is pure: requests, packets and the time come in, and everything
// it brings about goes out through Network and Channel. It knows no engine,
// socket, control message or ring. All calls come on one thread, the worker's.
// Errors are syscall.Errno values, which the control protocol carries to the
// client.
//
// A request to a port number whose listener has just left is not refused but left to be
// repeated (number.go): perftest listens anew for each connection.
package cm
