// Package neighbour implements a port's neighbour table, with ARP (RFC 826) for an IPv4 address or
// neighbour discovery (RFC 4861) for an IPv6 address. It also detects another host with our address (RFC
// 5227, RFC 4862). It is pure: packets and the time are its input, packets to send its output. Package wire
// answers echo requests; package netif routes by prefix and gateway.
package neighbour
