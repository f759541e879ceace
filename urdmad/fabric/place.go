package fabric

import (
	"fmt"
	"strings"

	"urdma/topology"
)

// build makes the nodes of a topology and links them.
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

// place gives each of urdmad's ports its channel adapter.
func (s *Subnet) place(host string, t *topology.Topology, ports []Port) error {
	s.devices = make([]*endpoint, len(ports))
	nodes := s.nodes
	for i, p := range ports {
		for at, n := range nodes {
			if n.kind == channelAdapter && n.isDevice(p) {
				if err := s.take(i, p, n, nodes); err != nil {
					return fmt.Errorf("%s:%d: %w", t.File, t.Nodes[at].Line, err)
				}
				break
			}
		}
	}
	next := 0 // switch
	for i, p := range ports {
		if s.devices[i] != nil {
			continue
		}
		out, at := s.free(next)
		if out == nil {
			return fmt.Errorf("%s: no switch has a free port for %s; name a channel adapter %q, or give a switch more ports", t.File, p.Name, p.Name)
		}
		next = at + 1
		n := s.add(channelAdapter, p.GUID, host+" "+p.Name, 1, 1)
		link(n.ports[1], out)
		if err := s.take(i, p, n, nodes); err != nil {
			return fmt.Errorf("%s: %w", t.File, err)
		}
	}
	return nil
}

// isDevice reports whether a node of a topology is meant for a port: by its GUID, or by a
// name that is the device's, with the host's or any before it.
func (n *node) isDevice(p Port) bool {
	return n.guid == p.GUID || n.ports[1].guid == p.GUID || n.desc == p.Name || strings.HasSuffix(n.desc, " "+p.Name)
}

// take makes a channel adapter device i, of which the topology's nodes must not have the GUID.
func (s *Subnet) take(i int, p Port, n *node, nodes []*node) error {
	e := n.ports[1]
	switch {
	case len(n.ports) != 2:
		return fmt.Errorf("found %q with %d ports, expected 1, as %s has", n.desc, len(n.ports)-1, p.Name)
	case e.device >= 0:
		return fmt.Errorf("found %q for %s, which another device has taken", n.desc, p.Name)
	case e.peer == nil || e.peer.node.kind != switchNode:
		return fmt.Errorf("found %q, which is %s, not linked to a switch, expected that it is", n.desc, p.Name)
	}
	for _, other := range nodes {
		if other != n && (other.guid == p.GUID || other.port(1) != nil && other.ports[1].guid == p.GUID) {
			return fmt.Errorf("found GUID %#x of %s, which %q has too", p.GUID, p.Name, other.desc)
		}
	}
	n.guid, e.guid, e.device = p.GUID, p.GUID, i
	e.setLID(p.LID)
	e.setMTU(p.MTU)
	e.plug(false) // until Update says otherwise
	s.devices[i] = e
	return nil
}

// free is a port of a switch that has nothing plugged in, of the switch with that number
// among them or one behind it, and that switch's number.
func (s *Subnet) free(from int) (*endpoint, int) {
	var switches []*node
	for _, n := range s.nodes {
		if n.kind == switchNode {
			switches = append(switches, n)
		}
	}
	for i := range switches {
		at := (from + i) % len(switches)
		if e := freePort(switches[at]); e != nil {
			return e, at
		}
	}
	return nil, 0
}

func freePort(n *node) *endpoint {
	for _, e := range n.ports[1:] {
		if e.peer == nil {
			return e
		}
	}
	return nil
}
