// Package fabric simulates an InfiniBand subnet: urdmad's devices, the switch between them, and
// the nodes of a configured topology. Its input is a management datagram (MAD) from a device's
// port and a snapshot of urdmad's ports; its output is the MADs that arrive at those ports.
//
// mad.go has the bytes of a MAD, subnet.go nodes, ports and links, place.go the construction from
// a topology, route.go the way of a packet. Each node has a subnet management agent (smp.go, with
// its largest attribute in portinfo.go) and performance management (pma.go). manager.go is the
// subnet manager, sa.go subnet administration; notices.go sends traps; fault.go adds errors to
// counters.
//
// IBA is the InfiniBand Architecture Specification, vol. 1. Nobody who wrote this could read it: its
// tables' numbers are second hand, and the layouts are those that infiniband-diags and opensm accept.
//
// The package owns no clock, socket or goroutine and knows no client.
package fabric
