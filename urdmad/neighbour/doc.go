// Package neighbour is the part of an IPv4 host that a port needs to be reachable:
// the neighbour table with ARP (RFC 826). It is pure: packets and time in,
// packets to send out. Echo replies are package wire's; routing by prefix and
// gateway is the engine's port.
package neighbour
