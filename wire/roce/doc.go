// Package roce knows the bytes of RoCEv2 packets (InfiniBand Architecture
// Specification vol. 1 and its annex A17): the base transport header,
// the extension headers that its opcode calls for, and the invariant CRC. What a UDP
// datagram to port 4791 carries is a Header, the payload, up to three bytes of padding
// and the CRC.
//
// header.go has the headers, opcode.go which of them an opcode has, aeth.go
// acknowledgements, psn.go sequence numbers, icrc.go the CRC.
//
// It owns layouts, exact lengths and constants, as package wire does, whose rules hold
// here: big-endian fields, Parse for a stranger's bytes and Put for ours, no
// allocation, errors that are package variables.
package roce
