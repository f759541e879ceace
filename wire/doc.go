// Package wire parses and writes every header that urdma sends or receives: Ethernet, ARP, IPv4, IPv6, ICMP echo,
// neighbour and multicast listener discovery, UDP, TRP (docs/WIRE.md), DDP (RFC 5041), RDMAP (RFC 5040, RFC 7306)
// and Terminate.
//
// It owns layouts, exact lengths, constants and serial number arithmetic, and nothing else: no state, clock, socket
// or buffer. It imports nothing of urdma.
//
// Every header has the same two methods. x.Parse(b) fills x from the start of b and returns the length of the
// header; x.Put(b) writes the header and returns its length. All fields are big-endian. Parse reads untrusted bytes
// and returns an error for all input that isn't exactly right; it never panics. Put writes our own values: a b that
// is too short for the header is a bug of the caller, and panics as any slice index does. Byte slices inside a
// parsed value alias the input.
//
// Values on the path of every packet are filled in field by field. The compiler often builds a composite literal on
// the stack and copies it in pieces wider than its fields. Such a load of several stores stalls until all earlier
// stores, a whole payload's among them, have reached the cache. This cost the sender on a memif a tenth of its
// processor time.
//
// Nothing allocates, errors included: each error is a package variable, so callers compare with errors.Is and count
// by identity. An error that the peer must be told is a *ProtocolError and has its Terminate code.
package wire
