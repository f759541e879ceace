package fabric

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// Peer is what a snapshot says of a port of another urdmad that a wire reaches. Its place in the subnet is ours to answer for: of subnet management
// nothing crosses the wire but Gets by which urdmads learn of each other. Other requests do.
type Peer struct {
	Device int    // of ours, whose wire leads there
	Node   uint64 // GUID of the channel adapter, which has so many Ports
	Ports  byte
	Number byte // of the port on it
	GUID   uint64
	Name   string // NodeDescription
	LID    uint16 // that it is to have; 0: any
	MTU    byte   // MTUCap
	Up     bool   // it answers, and its link is up
}

// PeerRequests are what a urdmad asks another for, each of which the other answers.
func PeerRequests() (list []MAD) {
	for _, attribute := range peerAttributes {
		m := make(MAD, Size)
		m[0], m[1], m[2], m[3] = 1, ClassSubnet, 1, MethodGet
		binary.BigEndian.PutUint16(m[16:], attribute)
		list = append(list, m)
	}
	return list
}

var peerAttributes = []uint16{attrNodeInfo, attrNodeDescription, attrPortInfo}

// Learn takes what an answer to one of PeerRequests says.
func (p *Peer) Learn(m MAD) {
	if len(m) < Size || m.Class() != ClassSubnet || m.Method() != methodGetResp || m[4]|m[5] != 0 {
		return
	}
	switch b := m[smpData:smpDataEnd]; m.attribute() {
	case attrNodeInfo:
		p.Node, p.Ports = binary.BigEndian.Uint64(b[12:]), b[3]
		p.GUID, p.Number = binary.BigEndian.Uint64(b[20:]), b[36]
	case attrNodeDescription:
		p.Name = description(b)
	case attrPortInfo:
		info := (*portInfo)(b)
		p.LID, p.MTU, p.Up = info.lid(), info.mtuCap(), info.physical() == physicalUp
	}
}

// Known reports whether all of it has been learnt.
func (p *Peer) Known() bool {
	return p.GUID != 0 && p.Node != 0 && p.Number != 0 && p.Number <= p.Ports && p.Name != "" && p.MTU != 0
}

// description is a NodeDescription, as far as it can be printed: anybody may have sent it.
func description(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(bytes.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' {
			return '.'
		}
		return r
	}, b))
}

// UpdatePeers takes a new snapshot of other urdmads' ports: each keeps its index. One for
// which no switch has a free port is in no subnet, nor is one with the GUID of another. One
// that is in the subnet gets nobody else's GUID or LID, whatever it says later.
func (s *Subnet) UpdatePeers(list []Peer) {
	changed := false
	for i, p := range list {
		if i == len(s.peers) {
			s.peers, s.told = append(s.peers, nil), append(s.told, Peer{})
		}
		if p == s.told[i] {
			continue
		}
		changed = true
		if s.peers[i] == nil {
			s.peers[i] = s.placePeer(i, &p)
		}
		if e := s.peers[i]; e != nil {
			e.follow(&s.told[i], s.ownOf(e, p))
			s.told[i] = p
		}
	}
	if changed {
		s.sweep()
	}
}

// ownOf is what a peer's port says of itself, but for what is another's: it keeps its own.
func (s *Subnet) ownOf(e *endpoint, p Peer) *Peer {
	for _, n := range s.nodes {
		if n != e.node && (n.has(p.GUID) || n.has(p.Node)) {
			p.GUID, p.Node = e.guid, e.node.guid
		}
		for _, other := range n.ports {
			if other == nil || other == e {
				continue
			}
			if other.guid == p.GUID {
				p.GUID = e.guid
			}
			if !other.unowned() && other.info.lid() == p.LID {
				p.LID = e.info.lid()
			}
		}
	}
	return &p
}

// placePeer finds a peer's port of its channel adapter, that of the topology or one that another of
// its ports has; or else has one plugged into the
// switch of the device that leads there, or else into any with a free port; nil: there is none.
func (s *Subnet) placePeer(i int, p *Peer) *endpoint {
	if !p.Known() {
		return nil
	}
	var at *node
	for _, n := range s.nodes {
		switch {
		case n.takes(p):
			at = cmp.Or(at, n)
		case n.has(p.GUID), n.has(p.Node):
			return nil
		}
	}
	if at != nil && at.ports[p.Number].peer != nil {
		e := at.ports[p.Number]
		e.remote = i
		e.plug(false) // until follow says otherwise
		return e
	}
	out := freePort(s.devices[p.Device].peer.node)
	if out == nil {
		if out, _ = s.free(0); out == nil {
			return nil
		}
	}
	if at == nil {
		at = s.add(channelAdapter, p.Node, p.Name, 1, int(p.Ports))
	}
	e := at.ports[p.Number]
	e.remote = i
	link(e, out)
	return e
}

// takes reports whether a node is a peer's: of the topology one that nobody has, linked to a switch, or one
// of whose ports others are peers of the same node.
func (n *node) takes(p *Peer) bool {
	if n.kind != channelAdapter || len(n.ports) != 1+int(p.Ports) || !n.has(p.GUID) && n.guid != p.Node && n.desc != p.Name {
		return false
	}
	e, remote := n.ports[p.Number], false
	for _, other := range n.ports[1:] {
		if other.device >= 0 {
			return false
		}
		remote = remote || other.remote >= 0
	}
	if e.peer == nil {
		return remote && n.guid == p.Node
	}
	return e.unowned() && e.peer.node.kind == switchNode
}

// follow makes of a peer's port what it says of itself, where that is new. What a subnet
// manager has set meanwhile stays.
func (e *endpoint) follow(old, p *Peer) {
	e.node.guid, e.guid, e.node.desc = p.Node, p.GUID, p.Name
	if p.LID != old.LID {
		e.setLID(p.LID)
	}
	if p.MTU != old.MTU {
		e.info.setMTU(min(max(p.MTU, 1), mtu4096))
	}
	if p.Up != e.cable {
		e.plug(p.Up)
	}
}

// PeerLID is the LID that a peer has in our subnet.
func (s *Subnet) PeerLID(peer int) uint16 { return s.peers[peer].info.lid() }

// crosses reports whether a MAD goes from one urdmad to another: all that programs and
// performance management say to each other. Each has a subnet management and administration
// of its own.
func (m MAD) crosses() bool { return !m.Subnet() && m.Class() != ClassAdmin }

// Arrive takes a MAD that came by the wire of a device from a peer of UpdatePeers, or
// with -1 from another host: what arrives at the device's port, and what is to go
// back.
func (s *Subnet) Arrive(device, peer int, m MAD) (answer MAD, arrived []Delivery) {
	if len(m) < Size || m[0] != 1 {
		return nil, nil
	}
	at := s.devices[device]
	switch {
	case m.Class() == ClassSubnet && m.Method() == MethodGet && slices.Contains(peerAttributes, m.attribute()):
		answer, _ = s.subnetManagement(at, m)
	case m.Class() == ClassPerf && !m.Response():
		answer = at.performance(m)
	case m.crosses() && peer >= 0 && peer < len(s.peers) && s.peers[peer] != nil:
		arrived = []Delivery{{device, -1, Packet{SLID: s.peers[peer].info.lid(), DLID: at.info.lid(), MAD: m}}}
	}
	return answer, arrived
}
