// Package pathmtu discovers the length of the longest datagram that reaches a peer without fragmentation,
// by packetization layer path MTU discovery (RFC 8899), which needs no ICMP. docs/WIRE.md chapter 11 has
// the rules.
//
// A search begins with two probes: one of the base size, and one of the largest size that our port sends.
// If the peer answers only the first, sizes in between are probed, several at a time, until the largest
// answered and the smallest unanswered size are close. If the peer answers nothing, the path MTU is
// unknown, and nothing changes.
//
// The package is pure: it takes events and the time, and returns the probes to send. Sizes are lengths of
// UDP payloads, in bytes.
package pathmtu
