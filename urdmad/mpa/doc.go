// Package mpa carries connections of rdma_cm over TCP sockets of the kernel: MPA (RFC
// 5044, RFC 6581) below a DDP and RDMAP stream (package rdmap), as kernel siw and iWARP
// NICs speak it.
//
// startup.go is what request and reply agree on; it is pure. listen.go accepts, conn.go
// opens and ends a connection: a qp.Carrier. out.go has the kernel gather FPDUs from
// registered memory, in.go has it scatter them there. stack.go asks the kernel which
// sockets are ready; socket_unsafe.go has the system calls.
//
// Everything runs on the worker's thread, and no call blocks. The package must not know
// packets, rdma_cm ids or client rings.
package mpa
