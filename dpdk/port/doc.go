// Package port is the contract between the engine and a driver of Ethernet frames: a DPDK port (package dpdk), our
// own shared-memory wire (package memif), or a test port (test/linked). A port may carry UDP datagrams instead of
// frames (package udp, Info.Datagrams); the rules are the same.
//
// It owns the interfaces Port and Queue, the Packet that they exchange, the flags and the counters. It does not know
// IP, connections, or the poll loop.
//
// # Ports and queues
//
// A Port is a connection to a network: an address, an MTU, a link that is up or down. Frames pass through its
// queues. A Queue has its own receive and transmit rings and belongs to one worker; workers of different queues do
// not wait for each other.
//
// A driver has one queue, which receives all frames, or one for each worker, like udp and memif. Which of several
// queues a packet reaches is only a hint: package steer passes it on if it belongs to another worker.
//
// # Who owns a buffer
//
// A buffer belongs to a queue and has exactly one owner at any time. The owner changes only in these calls:
//
//	Rx     queue → caller   the first n packets belong to the caller
//	Alloc  queue → caller   the first n packets belong to the caller
//	Tx     caller → queue   the first n packets belong to the queue again
//	Free   caller → queue   all packets belong to the queue again
//
// A packet must return to the queue that it came from. Once the queue owns it again, its Data must not be read or
// written, and the Packet may only be passed to Alloc or Rx, which overwrite it.
//
// Packets from Rx should be freed within the next few bursts, because the ring needs their buffers. A caller that
// needs the contents for longer copies them.
//
// A Packet is a handle, and may be copied, moved or reordered within the caller's slices; only one copy may be given
// back.
//
// # Threads
//
// All methods of a queue belong to one worker thread, and only one of them may run at a time. Methods of different
// queues may run concurrently. The methods of a port may be called from any goroutine at any time, except Close:
// every worker must have made its last call to its queue before, and buffers that a worker still owns become invalid
// with Close.
//
// # A link that is down
//
// A queue never blocks its caller, and never fails in a way that the caller must handle. While the link is down Rx
// returns 0, and Alloc and Tx still work: Tx drops the packets and counts them in Stats.TxDropped, like frames on an
// unplugged cable.
package port
