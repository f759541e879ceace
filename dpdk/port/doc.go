// Package port is the contract between the engine and whatever moves Ethernet
// frames: a DPDK port (package dpdk), our own shared-memory wire (package
// memif), or a test port (package linked).
//
// It owns the Port interface, the Packet that crosses it, the flags and the
// counters. It knows nothing of IP, of connections, or of who drives the port.
//
// # Who owns a buffer
//
// A buffer has exactly one owner at any time. It changes hands only in these
// calls:
//
//	Rx     port → caller   the first n packets are the caller's
//	Alloc  port → caller   the first n packets are the caller's
//	Tx     caller → port   the first n packets are the port's again
//	Free   caller → port   every packet given is the port's again
//
// Once a packet is the port's, its Data must not be read or written, and the
// Packet must not be handed to any call but Alloc or Rx (which overwrite it).
// Retain may replace Data and Ref but leaves the packet with the caller.
//
// A Packet is a handle, and may be copied, moved or reordered within the
// caller's slices; only one copy may be given back.
//
// # Threads
//
// Rx, Free, Retain, Alloc, Tx, Flush, ArmRx and DisarmRx are the data methods:
// they belong to one worker thread and must not run at the same time as each
// other. Info, Link and Stats may be called from any goroutine at any time.
// Close may be called from any goroutine, but only once the worker has made its
// last call; every buffer the worker still owns becomes invalid with it.
//
// # A link that is down
//
// A port never makes its caller wait and never fails in a way the caller must
// handle. While the link is down Rx returns 0, and Alloc and Tx go on working:
// what Tx takes is dropped and counted in Stats.TxDropped, like frames on an
// unplugged cable.
package port
