// Package memif is a port.Port over shared memory: the memif protocol, version
// 2.0, as DPDK's net_memif and FD.io's libmemif speak it, in pure Go.
//
// A client ("slave" in older texts) connects to a server's Unix socket of type
// SOCK_SEQPACKET, creates a memfd with one or several rings each way and the packet
// buffers, and passes it over; the server maps it. Frames then pass through
// memory alone. Both roles are spoken, and the port interoperates with
// net_memif in both.
//
//	message.go                 the 128-byte control messages
//	control.go                 sending and receiving them, with their fds
//	listener.go server.go      the server's sockets and handshake
//	client.go                  the client's dialling and handshake
//	region.go                  creating, checking, mapping shared memory
//	ring_unsafe.go             descriptors and indices: the only unsafe code
//	link.go                    one connection's memory and its end of life
//	port.go                    the Port: opening, links that come and go
//	queue.go data.go           its queues, a worker's each: the link in use, every data method
//	client_rx/tx, server_rx/tx the two sides of the rings
//	heap.go                    private buffers, for Retain and for no link
//	kick*.go                   interrupts
//
// # Trust
//
// The peer is a stranger with write access to all that is shared. Each index,
// descriptor and length is loaded once, checked against private copies of what
// we know and against the mapped size, and used only then. Regions must be
// memfds sealed against shrinking, of ordinary pages: nothing the peer does can
// make an access fault. A rule broken ends the connection, counts an error and
// starts over. Frame contents may change at any time (port.Info.SharedRx):
// headers must be copied before they are judged.
//
// # Queues and rings
//
// A port has a queue for each of its workers, always; a link has as many rings to each side as
// that has queues, if the peer takes so many. Queue n reads ring n, if there is one, and nobody
// else does. Every queue may fill every ring, one at a time (outRing): who finds another at it
// tries again later, as with a full ring. Options.Ring says which ring a frame leaves by.
// HELLO has the number of a server's queues as the rings to it; net_memif and VPP always say 256,
// so a client offers them as many rings as it has queues itself, and after a refusal fewer.
//
// As the client each queue owns a part of the buffers, and sends them by any ring without a copy. As
// the server, whose buffers to send are tied to slots of a ring, frames are built in those only where
// there is one queue and one ring; else they are built in private buffers and copied when their ring is known.
//
// # The life of a link
//
// The control goroutine makes a link and hands each worker its share through a
// one-place mailbox; the worker adopts it at its next Rx, Alloc, Tx or ArmRx
// and from then on owns that. When the peer dies the control goroutine
// only marks the link dead; each worker notices at its next call and stops using
// the rings, and the last one unmaps when the last outstanding packet is freed. So memory is
// never unmapped under a worker, and packets stay readable until Free. With
// no link, Alloc hands out private buffers and Tx drops and counts.
//
// # Checksums
//
// Info says TxUDPChecksum: memory does not corrupt frames, so
// the sender leaves the UDP checksum 0, and a receiver accepts that. No packet
// gets a Good flag: a peer may forward frames from a real wire, and those carry
// a checksum to be verified.
//
// # Why a driver of our own
//
// DPDK's driver crashes with its peer and trusts its descriptors. This one survives a peer
// that is killed under load, places straight from the shared ring, and needs no cgo call a
// burst. A vdev that begins with net_memif still means DPDK's.
package memif
