// Package pathmtu finds out how long the datagrams may be that reach a peer
// whole: packetization-layer path MTU discovery (RFC 8899), which needs no ICMP.
// docs/WIRE.md chapter 11 has the rules.
//
// A search begins with two probes, one of the base size and one of the largest
// that our own port sends. A peer that answers the first and not the second is
// asked for sizes in between, several at once, until what arrives and what does
// not are close together. A peer that answers nothing is older than this, or
// away: of the way to it nothing is known, and nothing changes.
//
// The package is pure: it takes events and the time, and returns the probes to
// send. Sizes are those of UDP payloads, in bytes.
package pathmtu
