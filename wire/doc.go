// Package wire knows the bytes of every header urdma sends and receives:
// Ethernet, ARP, IPv4, IPv6, ICMP echo, neighbour and multicast listener discovery,
// UDP, TRP (docs/WIRE.md), DDP (RFC 5041), RDMAP (RFC 5040, RFC 7306) and Terminate.
//
// It owns layouts, exact lengths, constants and serial arithmetic, and nothing
// else: no state, no clock, no sockets, no buffers of its own. It imports
// nothing of urdma.
//
// The shape is the same everywhere. x.Parse(b) fills x from the start of b and
// answers how many bytes the header took; x.Put(b) writes the header and
// answers its length. All fields are big-endian. Parse takes a stranger's bytes
// and answers an error for every input that isn't exactly right; it never
// panics. Put takes our own values: a b that is too short for the header is a
// bug of the caller and panics as any slice index does. Byte slices inside a
// parsed value alias the input.
//
// Values on the way of every packet are filled in field by field. A composite
// literal is often built on the stack and then copied in pieces wider than its
// fields, and a load that several stores make up waits until all stores before
// it, a whole payload's among them, have reached the cache: a tenth of the
// processor's time at the sender of a memif.
//
// Nothing allocates, errors included: each refusal is a package variable, so a
// caller compares with errors.Is and counts by identity. An error that the peer
// must hear about is a *ProtocolError and carries its Terminate code.
package wire
