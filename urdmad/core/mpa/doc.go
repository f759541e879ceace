// Package mpa implements connections of rdma_cm over the kernel's TCP sockets: MPA (RFC 5044, RFC 6581)
// under a DDP and RDMAP stream (package rdmap), compatible with kernel siw and iWARP NICs.
//
// startup.go has the terms of MPA's request and reply; it is pure. listen.go accepts connections. conn.go
// opens a connection: a qp.Carrier. older.go repeats a request with revision 1. headstart.go delays the
// first FPDU. end.go ends connections. silence.go detects a dead peer. out.go lets the kernel gather FPDUs
// from registered memory, in.go lets it scatter received data. delay.go lets a Write complete together with
// its answer. stack.go asks the kernel which sockets are ready; socket_unsafe.go has the system calls.
//
// Everything runs on the worker's thread, and no call blocks. The package must not know packets, rdma_cm
// ids or client rings.
package mpa
