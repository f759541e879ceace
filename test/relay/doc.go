// Package relay is a path between two UDP sockets that loses, repeats, delays and
// reorders datagrams, for tests of the wire over UDP sockets (docs/WIRE.md chapter
// 11) between real daemons.
//
// A relay has two sockets. Each stands for the host behind the other: what the
// host in front of it sends there leaves from the other one. So both hosts know
// the relay's addresses only, and either may begin.
//
// What becomes of each datagram is drawn from a seed: the same datagrams in the
// same order meet the same fate. Batches that the kernel joins (UDP_GRO) are drawn
// for datagram by datagram, and what is left of them goes on in as few sends
// (UDP_SEGMENT), so the relay keeps up with the hosts.
//
// Package udprelay is the program of it.
package relay
