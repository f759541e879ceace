// Package datagram carries the messages of queue pairs of types UD and UC (docs/WIRE.md chapters 10 and
// 13). A queue pair of type UD has no connection: each work request has a destination address, and each
// message is one datagram, which may be lost. A received message takes a receive of its destination queue
// pair, or is dropped and counted.
//
// A work request: Transmit (tx.go) finds the destination: a queue pair of this urdmad (local.go), or a path
// through a port (way.go), which is looked up once for each address. A datagram to a neighbour whose
// Ethernet address is unknown is kept until the address is resolved, so that one address holds up no other.
//
// A received packet: the wire format's package parses it and calls Port.Arrived (rx.go), which checks the
// destination and the Q_Key, takes a receive, and writes the address header and the payload.
//
// form.go has the interface to a wire format's package. group.go has multicast groups. sender.go is common
// to both queue pair types.
//
// Queue pairs of type UC (uc.go, uctx.go, ucrx.go) have a peer, and messages of several packets: if a
// packet of a message is missing, the message is dropped.
//
// The package must not know any wire's packet format, connections, reliability, rdma_cm ids or client
// rings.
package datagram
