// Package mpa carries connections of rdma_cm over TCP sockets of the kernel: MPA (RFC
// 5044, RFC 6581) below a DDP and RDMAP stream (package rdmap), as kernel siw and iWARP
// NICs speak it.
//
// startup.go is what request and reply agree on; it is pure. listen.go accepts, conn.go
// opens a connection: a qp.Carrier; older.go asks by revision 1, headstart.go gives its peer
// a head start, end.go has its ends, silence.go finds out that the peer has gone. out.go has
// the kernel gather FPDUs from registered memory, delay.go lets a Write complete along with
// its answer, in.go has the kernel scatter what comes. stack.go asks the kernel which sockets
// are ready; socket_unsafe.go has the system calls.
//
// Everything runs on the worker's thread, and no call blocks. The package must not know
// packets, rdma_cm ids or client rings.
package mpa
