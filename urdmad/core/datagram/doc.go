// Package datagram carries the messages of queue pairs of type UD (docs/WIRE.md
// chapter 10). Such a queue pair has no connection: each work request says where
// its message goes, each message is one datagram that may be lost, and each
// arrival takes a receive of the queue pair that it names or is dropped and
// counted.
//
// A work request's way: Transmit (tx.go) finds out where it leads: to a queue pair
// of this urdmad (local.go), or through a port along a way (way.go) that is looked
// up once for each address. A datagram for a neighbour whose Ethernet address is
// not known yet is kept until it is, so that one address holds up no other.
//
// A packet's way: the wire's package takes it apart and calls Port.Arrived (rx.go), which checks
// the destination and the Q_Key, takes a receive and writes the header room and the payload.
//
// form.go has what a wire's package implements: how a message looks in a packet. group.go has
// multicast groups. What both types have in common is sender.go; show.go shows messages within
// this urdmad to captures.
//
// Queue pairs of type UC (uc.go, uctx.go, ucrx.go; chapter 13) have a peer, and
// messages of several packets: one of which a packet is missing arrives not at all.
//
// The package must not know any wire's packets, connections, reliability, rdma_cm ids or client
// rings.
package datagram
