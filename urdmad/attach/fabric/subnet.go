package fabric

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"urdma/topology"
)

// Port is a port of urdmad in a snapshot. A device is a channel adapter (CA) in the subnet; its
// ports follow each other.
type Port struct {
	Name     string // device name
	Node     uint64 // the device's GUID; 0: it is GUID, and the device has one port
	GUID     uint64
	LID      uint16 // wanted LID; 0: any
	MTU      int    // bytes of the largest datagram
	Up       bool
	Counters Counters
}

// Counters are the totals of a port since urdmad started.
type Counters struct {
	RxPackets, TxPackets uint64
	RxBytes, TxBytes     uint64
	RxErrors             uint64 // packets that were malformed
	TxDropped            uint64 // packets for which there was no room
	LinkDowns            uint64
}

// nodeType is NodeType of IBA table 160.
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
	// device is the name of the urdmad device that the node stands for, or "".
	device string
	known  bool        // our subnet manager has found it
	ports  []*endpoint // by number; port 0 is the switch's own port, nil in a channel adapter

	// For a switch:
	info []byte // SwitchInfo
	lft  []byte // port by LID, noPort where there is none
	mft  []byte // in the order of its blocks
}

// endpoint is a port of a node.
type endpoint struct {
	node   *node
	num    int
	guid   uint64
	info   portInfo
	peer   *endpoint // port at the other end of the link; nil: not connected
	device int       // index of urdmad's port; -1: simulated
	cable  bool      // the cable can carry packets
	off    bool      // the port was disabled

	reregistered int  // see Shown
	told         bool // whether it could pass packets when traps were last sent
	pkeys        [2 * pkeys]byte
	counters     Counters // since it exists; of links between simulated nodes, the MADs
	errors       Errors   // injected errors, counted in addition
	cleared      [2]counts
}

// Subnet has the nodes, their links, and their subnet manager. It is not safe for concurrent use.
type Subnet struct {
	nodes    []*node
	devices  []*endpoint // urdmad's ports, in the order of snapshots
	home     *endpoint   // port of our subnet manager: port 0 of the first device's switch
	managers []int       // number of subnet managers that have claimed the port, by device
	activity uint32      // SMInfo's count

	out   []Delivery // traps not yet taken
	traps uint64     // number of traps sent
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

// New makes a subnet of the topology's nodes and links, and places urdmad's ports there. A port
// becomes the channel adapter with its GUID, or else with its name, or else a new one connected
// to the next switch with a free port. Without a topology the subnet is one switch. host is the
// name of the machine.
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
	s.out = nil // traps of the construction are not sent
	return s, nil
}

// switchGUID is a bit that turns a port's GUID into a switch's. No EUI-64 made from a MAC address
// has this bit, which there marks group addresses.
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

// port returns a port by number; nil if the node has none.
func (n *node) port(num int) *endpoint {
	if num < 0 || num >= len(n.ports) {
		return nil
	}
	return n.ports[num]
}

// own returns the port that has the node's LID, for a packet that came in at e.
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

// Nodes returns the names of switches and channel adapters.
func (s *Subnet) Nodes() (names []string) {
	for _, n := range s.nodes {
		names = append(names, n.desc)
	}
	return names
}

// Injected returns the injected errors of device i's port.
func (s *Subnet) Injected(i int) Errors { return s.devices[i].errors }

// mirrored returns the counters of the other end of the link.
func (c Counters) mirrored() Counters {
	return Counters{RxPackets: c.TxPackets, TxPackets: c.RxPackets, RxBytes: c.TxBytes, TxBytes: c.RxBytes,
		LinkDowns: c.LinkDowns}
}

// Shown is the part of a port's state that is shown outside the subnet.
type Shown struct {
	LID, SMLID     uint16
	LMC, SMSL      byte
	State, Phys    byte // PortState and PortPhysicalState (IBA table 155)
	CapabilityMask uint32
	Disabled       bool // by a Set of PortInfo at either end of the link
	Reregistered   int  // number of ClientReregister requests from a subnet manager
}

// Shown returns the shown state of device i.
func (s *Subnet) Shown(i int) Shown {
	e := s.devices[i]
	p := &e.info
	return Shown{LID: p.lid(), SMLID: p.smLID(), LMC: p.lmc(), SMSL: p[offMTUSMSL] & 0xf, State: p.state(),
		Phys: p.physical(), CapabilityMask: p.capabilities(), Disabled: e.off || e.peer.off, Reregistered: e.reregistered}
}

// Enable undoes a disabling of device i's port.
func (s *Subnet) Enable(i int) {
	e := s.devices[i]
	if e.off || e.peer.off {
		e.off, e.peer.off = false, false
		e.train()
		s.sweep()
	}
}

// Claim records that a subnet manager runs on device i's port (IsSM in its PortInfo). While there
// is a claim, our subnet manager does nothing. Each Claim ends with a Release.
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
