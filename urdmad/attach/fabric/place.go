package fabric

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"urdma/topology"
)

// build makes the nodes and links of a topology.
func (s *Subnet) build(t *topology.Topology) {
	made := map[*topology.Node]*node{}
	for _, from := range t.Nodes {
		kind, first := channelAdapter, 1
		if from.Switch {
			kind, first = switchNode, 0
		}
		n := s.add(kind, from.GUID, from.Name, first, len(from.Ports)-1)
		made[from] = n
		if from.Switch {
			n.ports[0].setLID(from.LID)
			continue
		}
		for num, p := range from.Ports[1:] {
			n.ports[num+1].guid = p.GUID
			n.ports[num+1].setLID(p.LID)
		}
	}
	for _, from := range t.Nodes {
		for num, p := range from.Ports {
			if p.Peer != nil && made[from].ports[num].peer == nil {
				link(made[from].ports[num], made[p.Peer].ports[p.PeerPort])
				made[from].ports[num].plug(true)
			}
		}
	}
}

// place assigns a channel adapter to each of urdmad's devices.
func (s *Subnet) place(host string, t *topology.Topology, ports []Port) error {
	s.devices = make([]*endpoint, len(ports))
	nodes := s.nodes
	for i, group := range devices(ports) {
		for at, n := range nodes {
			if n.kind == channelAdapter && n.isDevice(&group[0]) {
				if err := s.take(i, group, n, nodes); err != nil {
					return fmt.Errorf("%s:%d: %w", t.File, t.Nodes[at].Line, err)
				}
				break
			}
		}
	}
	next := 0 // switch
	for i, group := range devices(ports) {
		if s.devices[i] != nil {
			continue
		}
		n := s.add(channelAdapter, group[0].node(), host+" "+group[0].Name, 1, len(group))
		for _, e := range n.ports[1:] {
			out, at := s.free(next)
			if out == nil {
				return fmt.Errorf("%s: no switch has a free port for %s; name a channel adapter %[2]q, or give a switch "+
					"more ports", t.File, group[0].Name)
			}
			next = at + 1
			link(e, out)
		}
		if err := s.take(i, group, n, nodes); err != nil {
			return fmt.Errorf("%s: %w", t.File, err)
		}
	}
	return nil
}

// devices yields the ports of each device, with the index of its first port.
func devices(ports []Port) func(yield func(int, []Port) bool) {
	return func(yield func(int, []Port) bool) {
		for i, n := 0, 0; i < len(ports); i += n {
			for n = 1; i+n < len(ports) && ports[i].Node != 0 && ports[i+n].Node == ports[i].Node; n++ {
			}
			if !yield(i, ports[i:i+n]) {
				return
			}
		}
	}
}

// node returns the GUID of a port's device.
func (p *Port) node() uint64 { return cmp.Or(p.Node, p.GUID) }

// isDevice reports whether a node of a topology stands for a port's device: it has the device's
// GUID, or the device's name, alone or after a host name.
func (n *node) isDevice(p *Port) bool {
	return n.has(p.node()) || n.desc == p.Name || strings.HasSuffix(n.desc, " "+p.Name)
}

// has reports whether a GUID belongs to the node or to one of its ports.
func (n *node) has(guid uint64) bool {
	return n.guid == guid || slices.ContainsFunc(n.ports, func(e *endpoint) bool { return e != nil && e.guid == guid })
}

// take makes a channel adapter stand for the device whose first port is port i. Other nodes of
// the topology must not have the device's GUIDs.
func (s *Subnet) take(i int, ports []Port, n *node, nodes []*node) error {
	name := ports[0].Name
	switch {
	case len(n.ports) != 1+len(ports):
		return fmt.Errorf("found %q with %d ports, expected %d, as %s has", n.desc, len(n.ports)-1, len(ports), name)
	case n.ports[1].device >= 0:
		return fmt.Errorf("found %q for %s, which another device has taken", n.desc, name)
	}
	for num, p := range ports {
		e := n.ports[1+num]
		if e.peer == nil || e.peer.node.kind != switchNode {
			return fmt.Errorf("found %q, which is %s, not linked to a switch by port %d, expected that it is", n.desc,
				name, e.num)
		}
		for _, other := range nodes {
			for _, guid := range []uint64{p.node(), p.GUID} {
				if other != n && other.has(guid) {
					return fmt.Errorf("found GUID %#x of %s, which %q has too", guid, name, other.desc)
				}
			}
		}
		n.guid, n.device, e.guid, e.device = p.node(), name, p.GUID, i+num
		e.setLID(p.LID)
		e.setMTU(p.MTU)
		e.plug(false) // down until Update sees the port's link up
		s.devices[i+num] = e
	}
	return nil
}

// free returns an unconnected switch port and the index of its switch, searching the switches
// from index from on.
func (s *Subnet) free(from int) (*endpoint, int) {
	for i := range s.nodes {
		at := (from + i) % len(s.nodes)
		for _, e := range s.nodes[at].ports[1:] {
			if s.nodes[at].kind == switchNode && e.peer == nil {
				return e, at
			}
		}
	}
	return nil, 0
}
