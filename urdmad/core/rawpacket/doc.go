// Package rawpacket carries the frames of queue pairs of type RAW_PACKET: a send is a whole Ethernet frame, and a
// receive gets a whole frame that matches one of the queue pair's flows.
//
// A flow takes nothing away: urdmad's own protocols, and the kernel's interface on the port, see every frame
// as if there were no flow, and the queue pairs get copies.
//
// What a port's configuration allows (access.go) is checked for each frame that is sent, and before a received
// frame is compared with flows. pair.go sends. flow.go has a port's flows, which all workers read, and key.go
// the header fields with which they are compared. A frame that matches a flow of another worker's queue pair,
// or that left by this port, is copied and handed over (stack.go).
//
// The package must not know clients, IP or any other protocol beyond the position of header fields.
package rawpacket
