// Package neighbour is the part of an IP host that a port needs to be reachable: the
// neighbour table, with ARP (RFC 826) or neighbour discovery (RFC 4861) as the port's
// address is, and how another host with our address is noticed (RFC 5227, RFC 4862). It is pure: packets and
// time in, packets to send out. Echo replies are package wire's; routing by prefix
// and gateway is the engine's port.
package neighbour
