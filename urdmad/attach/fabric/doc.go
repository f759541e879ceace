// Package fabric is the InfiniBand subnet that urdmad answers for: its devices,
// the switch between them, and whatever a topology adds. It takes a management
// datagram (MAD) as a device's port sends it and a snapshot of urdmad's ports, and
// returns the MADs that arrive at those ports.
//
// mad.go has the bytes of a MAD; subnet.go nodes, ports and links; place.go where a topology has them; route.go
// how a packet gets from one to the other. Of each node smp.go is the subnet management agent, portinfo.go its
// largest attribute and pma.go performance management. manager.go is the subnet manager, sa.go subnet
// administration; notices.go sends traps; fault.go adds errors to counters.
//
// It owns no clock, socket or goroutine and knows no client. Numbers of chapters and
// tables are those of the InfiniBand Architecture Specification, volume 1 (IBA).
package fabric
