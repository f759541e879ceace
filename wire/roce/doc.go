// Package roce parses and writes RoCEv2 packets (InfiniBand Architecture Specification vol. 1 and its annex A17):
// the base transport header, the extension headers that the opcode calls for, and the invariant CRC. A UDP datagram
// to port 4791 holds a Header, the payload, up to three bytes of padding and the CRC.
//
// header.go has the headers, opcode.go the extension headers of each opcode, aeth.go acknowledgements, psn.go
// sequence numbers, icrc.go the CRC.
//
// The package owns layouts, exact lengths and constants. The rules of package wire hold here: big-endian fields,
// Parse for untrusted bytes and Put for our own values, no allocation, errors that are package variables.
package roce
