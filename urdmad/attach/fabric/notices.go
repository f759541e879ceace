package fabric

import "encoding/binary"

// A switch notifies the subnet manager by a trap when one of its links comes up or goes down, so
// that opensm sweeps at once. urdmad's own subnet manager does not need traps.

const (
	trapLinkState = 128
	urgentGeneric = 1<<7 | 1 // type of the notice

	offTrap      = 4
	offIssuerLID = 6
	offDetails   = 10
)

// tell sends traps for switches whose links have changed since the last call.
func (s *Subnet) tell() {
	for _, n := range s.nodes {
		changed := false
		for _, e := range n.ports {
			if e != nil && e.told != e.joined() {
				e.told, changed = e.joined(), true
			}
		}
		if changed && n.kind == switchNode && !s.master() {
			s.linkChanged(n.ports[0])
		}
	}
}

// linkChanged sends the trap of the switch whose port 0 is e.
func (s *Subnet) linkChanged(e *endpoint) {
	m := make(MAD, Size)
	m[0], m[1], m[2], m[3] = 1, ClassSubnet, 1, MethodTrap
	s.traps++
	m.SetTransaction(s.traps)
	binary.BigEndian.PutUint16(m[16:], attrNotice)
	b := m[smpData:]
	b[0], b[3] = urgentGeneric, byte(switchNode)
	binary.BigEndian.PutUint16(b[offTrap:], trapLinkState)
	binary.BigEndian.PutUint16(b[offIssuerLID:], e.info.lid())
	binary.BigEndian.PutUint16(b[offDetails:], e.info.lid())
	s.out = append(s.out, s.carry(e, Packet{DLID: e.info.smLID(), SLID: e.info.lid(), MAD: m})...)
}

// Take returns the traps sent since the last call.
func (s *Subnet) Take() (out []Delivery) {
	out, s.out = s.out, nil
	return out
}
