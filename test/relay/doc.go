// Package relay is a path between two UDP sockets that loses, repeats, delays and reorders datagrams. Tests use it
// between real daemons with UDP sockets (docs/WIRE.md chapter 11).
//
// A relay has two sockets, one for each host. A datagram that arrives at one socket leaves from the other, so each
// host sees the relay's address as its peer's, and either host may send first.
//
// The treatment of each datagram is drawn from a seed: the same datagrams in the same order are treated in the same
// way. Datagrams that the kernel has joined (UDP_GRO) are treated one by one, and the remaining ones leave in as few
// sends as possible (UDP_SEGMENT), so that the relay is as fast as the hosts.
//
// Command udprelay runs a relay.
package relay
