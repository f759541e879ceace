// Package memif is a port.Port over shared memory: the memif protocol, version 2.0, as DPDK's net_memif and
// FD.io's libmemif speak it, in pure Go.
//
// A client ("slave" in older texts) connects to a server's Unix socket of type SOCK_SEQPACKET, creates a
// memfd with one or several rings each way and the packet buffers, and passes it over; the server maps it.
// Frames then pass through memory alone. The package implements both roles, and interoperates with net_memif
// in both.
//
//	message.go                 the 128-byte control messages
//	control.go                 sending and receiving messages, with their fds
//	listener.go server.go      the server's sockets and handshake
//	client.go                  the client's dialling and handshake
//	region.go                  creating, checking, mapping shared memory
//	ring_unsafe.go             descriptors and indices: the only unsafe code
//	link.go                    a connection's memory, and its release
//	port.go                    the Port: opening it; links that are established and lost
//	queue.go data.go           the queues, one for each worker: the current link, and the data methods
//	client_rx/tx, server_rx/tx the two sides of the rings
//	heap.go                    private buffers, for gathered frames and while there is no link
//	kick*.go                   interrupts
//
// # Trust
//
// The peer is not trusted and can write to all shared memory. Each index, descriptor and length is loaded
// once and checked against private state and the mapped size before it is used. Regions must be memfds sealed
// against shrinking, of ordinary pages: so the peer can't make an access fault. If the peer violates the
// protocol, the connection ends, an error is counted, and a new connection is made. Frame contents may change
// at any time (port.Info.SharedRx): headers must be copied before they are checked.
//
// # Queues and rings
//
// A port always has a queue for each of its workers. A link has, in each direction, as many rings as the
// receiving side has queues, if the peer accepts so many. Only queue n reads ring n, if there is one. Every
// queue may fill every ring, but only one at a time (outRing): while another queue fills it, the caller tries
// again later, as with a full ring. Options.Ring chooses the ring for a frame. In HELLO a server states its
// number of queues as the number of rings; net_memif and VPP always state 256, so a client offers them as
// many rings as it has queues itself, and fewer after a refusal.
//
// On the client's side each queue owns a part of the buffers, and sends them on any ring without a copy. On
// the server's side each transmit buffer belongs to a slot of a ring. Frames are built in these buffers only
// if there is one queue and one ring; otherwise they are built in private buffers, and copied when their ring
// is known.
//
// # The life of a link
//
// The control goroutine creates a link and passes each worker its share through a mailbox with one place. The
// worker takes it at its next Rx, Alloc, Tx or ArmRx, and owns it from then on. When the peer dies the
// control goroutine only marks the link as dead. Each worker notices this at its next call and stops using
// the rings; the last worker unmaps the memory when the last outstanding packet is freed. So memory is never
// unmapped while a worker uses it, and packets stay readable until Free. Without a link Alloc returns private
// buffers, and Tx drops and counts frames.
//
// # Checksums
//
// Info has TxUDPChecksum set: memory does not corrupt frames, so the sender leaves the UDP checksum 0, and
// the receiver accepts that. No packet gets a Good flag: a peer may forward frames from a real wire, whose
// checksums must be verified.
//
// # Why a driver of our own
//
// DPDK's driver crashes when its peer dies, and trusts the peer's descriptors. This driver survives a peer
// that is killed under load, lets urdmad place data directly from the shared ring, and needs no cgo calls. A
// vdev that begins with net_memif still means DPDK's.
package memif
