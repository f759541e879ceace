// Package port is the contract between the engine and whatever moves Ethernet
// frames: a DPDK port (package dpdk), our own shared-memory wire (package
// memif), or a test port (test/linked). A port may carry UDP datagrams in
// place of frames (package udp, Info.Datagrams); the rules are the same.
//
// It owns the Port and Queue interfaces, the Packet that crosses them, the flags
// and the counters. It knows nothing of IP, of connections, or of the
// poll loop that drives the port.
//
// # Ports and queues
//
// A Port is a place in a network: an address, an MTU, a link that is up or down.
// Frames pass through its queues. A Queue has rings of its own both ways and
// belongs to one worker, who waits for no other queue of the port.
//
// A driver has one queue, which receives whatever arrives, or, as udp and memif, one for each
// worker. Which of these a packet reaches is a hint: package steer hands over those that
// are another worker's.
//
// # Who owns a buffer
//
// A buffer belongs to a queue and has exactly one owner at any time. It changes
// hands only in these calls:
//
//	Rx     queue → caller   the first n packets are the caller's
//	Alloc  queue → caller   the first n packets are the caller's
//	Tx     caller → queue   the first n packets are the queue's again
//	Free   caller → queue   every packet given is the queue's again
//
// A packet goes back to the queue that it came from, never to another. Once it is
// the queue's, its Data must not be read or written, and the Packet must not be
// handed to any call but Alloc or Rx (which overwrite it).
//
// What Rx gave should be freed before the next few bursts: the rings live on it.
// A caller that needs the contents for longer copies them.
//
// A Packet is a handle, and may be copied, moved or reordered within the
// caller's slices; only one copy may be given back.
//
// # Threads
//
// All methods of a queue belong to one worker thread and must not run at the same
// time as each other; those of two queues may. The methods of a port may be
// called from any goroutine at any time, Close only once every worker has made
// its last call to its queue; every buffer a worker still owns becomes invalid
// with it.
//
// # A link that is down
//
// A queue never makes its caller wait and never fails in a way the caller must
// handle. While the link is down Rx returns 0, and Alloc and Tx go on working:
// what Tx takes is dropped and counted in Stats.TxDropped, like frames on an
// unplugged cable.
package port
