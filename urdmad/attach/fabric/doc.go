// Package fabric is the InfiniBand subnet that urdmad answers for: its devices,
// the switch between them, and whatever a topology adds. It takes a management
// datagram (MAD) as a device's port sends it and a snapshot of urdmad's ports, and
// returns the MADs that arrive at those ports.
//
// mad.go has the bytes of a MAD; subnet.go nodes, ports and links; place.go where a
// topology has them; route.go how a
// packet gets from one to the other; smp.go the subnet management agent of each
// node, portinfo.go its largest attribute; pma.go performance management; manager.go
// the subnet manager; sa.go subnet administration; notices.go traps; fault.go what goes wrong on purpose.
//
// It owns no clock, socket or goroutine and knows no client. Numbers of chapters and
// tables are those of the InfiniBand Architecture Specification, volume 1 (IBA).
package fabric
