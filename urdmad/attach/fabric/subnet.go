package fabric

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"urdma/topology"
)

// Port is what a snapshot says of a port of urdmad's. A device is a channel adapter (CA) in the
// subnet; those of its ports follow each other.
type Port struct {
	Name     string // of the device
	Node     uint64 // the device's GUID; 0: GUID, and there is no other port
	GUID     uint64
	LID      uint16 // that the port is to have; 0: any
	MTU      int    // bytes of the largest datagram
	Up       bool
	Counters Counters
}

// Counters are what a port has carried since urdmad started.
type Counters struct {
	RxPackets, TxPackets uint64
	RxBytes, TxBytes     uint64
	RxErrors             uint64 // packets that were malformed
	TxDropped            uint64 // packets for which there was no room
	LinkDowns            uint64
}

// nodeType is that of IBA table 160.
type nodeType byte

const (
	channelAdapter nodeType = 1
	switchNode     nodeType = 2
)

// node is a channel adapter or a switch.
type node struct {
	kind nodeType
	guid uint64
	desc string
	// device is the name of urdmad's device that it is, "" for none.
	device string
	known  bool        // our subnet manager has found it
	ports  []*endpoint // by number; 0: of a switch its own port, of a channel adapter nil

	// Of a switch:
	info []byte // SwitchInfo
	lft  []byte // port by LID, noPort where there is none
	mft  []byte // as its blocks are numbered
}

// endpoint is a port of a node.
type endpoint struct {
	node   *node
	num    int
	guid   uint64
	info   portInfo
	peer   *endpoint // at the other end of the link; nil: nothing is plugged in
	device int       // of urdmad's, -1: it is no such port
	cable  bool      // what is plugged in would carry packets
	off    bool      // somebody disabled it

	reregistered int  // Shown's
	told         bool // whether it carried packets when traps were sent last
	pkeys        [2 * pkeys]byte
	counters     Counters // since it exists; of links between simulated nodes, the MADs
	errors       Errors   // besides, on purpose
	cleared      [2]counts
}

// Subnet is nodes, their links, and their subnet manager. One goroutine uses it at a time.
type Subnet struct {
	nodes    []*node
	devices  []*endpoint // of urdmad's, in the snapshots' order
	home     *endpoint   // where our subnet manager is: port 0 of the first device's switch
	managers []int       // how many subnet managers have claimed the port, by device
	activity uint32      // SMInfo's count

	out   []Delivery // traps that nobody has taken
	traps uint64     // how many were sent
}

const (
	vendorID = 0x757264 // "urd"
	deviceID = 0x0001
	revision = 1
	noPort   = 0xff
	lftSize  = maxLID + 1
	// maxLID is the last unicast LID.
	maxLID = 0xbfff
)

// New makes a subnet of nodes and links, and has urdmad's ports take their places there: a port
// is the channel adapter of its GUID, or else of its name, or has one plugged into the next
// switch with a free port. Without a topology it is one switch. host is the name of the
// machine.
func New(host string, ports []Port, t *topology.Topology) (*Subnet, error) {
	if len(ports) == 0 {
		return nil, errors.New("fabric: no ports, expected 1 at least")
	}
	if t == nil {
		if len(ports) > topology.MaxPorts {
			return nil, fmt.Errorf("fabric: %d ports, expected 1 to %d", len(ports), topology.MaxPorts)
		}
		t = &topology.Topology{Nodes: []*topology.Node{{Switch: true, GUID: ports[0].GUID | switchGUID,
			Name: host + " switch", Ports: make([]topology.Port, len(ports)+1)}}}
	}
	s := &Subnet{managers: make([]int, len(ports))}
	s.build(t)
	if err := s.place(host, t, ports); err != nil {
		return nil, err
	}
	s.home = s.devices[0].peer.node.ports[0]
	s.Update(ports)
	s.sweep()
	s.out = nil // nobody has asked for it yet
	return s, nil
}

// switchGUID makes a switch's GUID of a port's: no EUI-64 of a MAC address has this bit,
// which there says that a group is meant.
const switchGUID = 1 << 56

func (s *Subnet) add(kind nodeType, guid uint64, desc string, first, ports int) *node {
	n := &node{kind: kind, guid: guid, desc: desc, ports: make([]*endpoint, ports+1)}
	for i := first; i <= ports; i++ {
		n.ports[i] = newEndpoint(n, i)
	}
	if kind == switchNode {
		n.info = newSwitchInfo()
		n.mft = make([]byte, (ports/16+1)*2*multicastLIDs)
		n.lft = bytes.Repeat([]byte{noPort}, lftSize)
	}
	s.nodes = append(s.nodes, n)
	return n
}

func newEndpoint(n *node, num int) *endpoint {
	e := &endpoint{node: n, num: num, guid: n.guid, device: -1, info: newPortInfo(n.kind, num)}
	binary.BigEndian.PutUint16(e.pkeys[:], defaultPKey)
	return e
}

const defaultPKey = 0xffff

func link(a, b *endpoint) { a.peer, b.peer = b, a }

// port returns the port of a number, nil if the node has none.
func (n *node) port(num int) *endpoint {
	if num < 0 || num >= len(n.ports) {
		return nil
	}
	return n.ports[num]
}

// own is the port that has the node's LID when a packet came in by e.
func (e *endpoint) own() *endpoint {
	if e.node.kind == switchNode {
		return e.node.ports[0]
	}
	return e
}

// Update takes a new snapshot of urdmad's ports, in New's order.
func (s *Subnet) Update(ports []Port) {
	changed := false
	for i := range s.devices {
		e, up := s.devices[i], ports[i].Up
		e.counters = ports[i].Counters
		e.peer.counters = ports[i].Counters.mirrored()
		if e.cable != up {
			changed = true
			e.plug(up)
		}
	}
	if changed {
		s.sweep()
	}
}

// Nodes are the names of switches and channel adapters.
func (s *Subnet) Nodes() (names []string) {
	for _, n := range s.nodes {
		names = append(names, n.desc)
	}
	return names
}

// Injected are the errors that device i's port has on purpose.
func (s *Subnet) Injected(i int) Errors { return s.devices[i].errors }

// mirrored are the counters of the other end of the link.
func (c Counters) mirrored() Counters {
	return Counters{RxPackets: c.TxPackets, TxPackets: c.RxPackets, RxBytes: c.TxBytes, TxBytes: c.RxBytes,
		LinkDowns: c.LinkDowns}
}

// Shown is what others show of a port.
type Shown struct {
	LID, SMLID     uint16
	LMC, SMSL      byte
	State, Phys    byte // PortState and PortPhysicalState (IBA table 155)
	CapabilityMask uint32
	Disabled       bool // by a Set of its PortInfo, or of the port's at the other end
	Reregistered   int  // how often a subnet manager wanted programs to register anew what it administers
}

// Shown returns it for device i.
func (s *Subnet) Shown(i int) Shown {
	e := s.devices[i]
	p := &e.info
	return Shown{LID: p.lid(), SMLID: p.smLID(), LMC: p.lmc(), SMSL: p[offMTUSMSL] & 0xf, State: p.state(),
		Phys: p.physical(), CapabilityMask: p.capabilities(), Disabled: e.off || e.peer.off, Reregistered: e.reregistered}
}

// Enable undoes what has disabled device i's port.
func (s *Subnet) Enable(i int) {
	e := s.devices[i]
	if e.off || e.peer.off {
		e.off, e.peer.off = false, false
		e.train()
		s.sweep()
	}
}

// Claim says that a subnet manager runs on device i's port (IsSM in its PortInfo): as long
// as there is one, ours does nothing. Each Claim ends with a Release.
func (s *Subnet) Claim(i int) {
	s.managers[i]++
	s.devices[i].info.setCapability(capIsSM, true)
	s.sweep()
}

// Release undoes a Claim.
func (s *Subnet) Release(i int) {
	s.managers[i]--
	s.devices[i].info.setCapability(capIsSM, s.managers[i] > 0)
	s.sweep()
}
