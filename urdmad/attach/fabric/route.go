package fabric

// Packet is a MAD with the fields of its local route header.
type Packet struct {
	SLID, DLID uint16
	MAD        MAD
}

// Delivery is a packet that arrives at the port of one of urdmad's devices and is not for one of
// the subnet's own agents.
type Delivery struct {
	Device int
	Packet
}

// Send sends a packet from a device's port. It returns the resulting packets that arrive at
// devices' ports: an answer, the MAD itself, or nothing. A MAD is not read or changed after the
// call. MADs that are shorter than Size or of unknown type are lost, as on a wire.
func (s *Subnet) Send(device int, p Packet) []Delivery {
	if len(p.MAD) < Size || p.MAD[0] != 1 {
		return nil
	}
	from := s.devices[device]
	p.SLID = from.info.lid()
	p.MAD = append(MAD(nil), p.MAD...)
	return s.carry(from, p)
}

// carry takes a packet from a port to its destination, and the answer back.
func (s *Subnet) carry(from *endpoint, p Packet) []Delivery {
	var at *endpoint // port at which the packet arrives at the destination node
	if p.MAD.directed() {
		at = s.directedRoute(from, &p)
	} else {
		at = s.route(from, p.DLID, p.MAD.Subnet())
	}
	if at == nil {
		return nil
	}
	taken := at.device < 0
	if !p.MAD.Response() {
		var answer MAD
		if answer, taken = s.agents(at, p.MAD); answer != nil {
			return s.carry(at, Packet{SLID: at.own().info.lid(), DLID: p.SLID, MAD: answer})
		}
	}
	if taken {
		return nil
	}
	return []Delivery{{at.device, p}}
}

// maxLinks is the largest number of links a packet passes; it stops packets in routing loops.
const maxLinks = 64

// route follows the switches' forwarding tables. Subnet management packets pass through ports
// that are only initialized.
func (s *Subnet) route(from *endpoint, lid uint16, subnet bool) *endpoint {
	if lid == permissiveLID || lid == 0 && subnet || from.own().has(lid) {
		return from
	}
	if lid == 0 || lid > maxLID {
		return nil
	}
	at := from
	for range maxLinks {
		out := at
		if at.node.kind == switchNode {
			out = at.node.port(int(at.node.lft[lid]))
		} else if at != from {
			return nil // a channel adapter does not forward
		}
		if out == nil || out.num == 0 || !out.joined() || !subnet && out.info.state() != stateActive {
			return nil
		}
		at = out.peer
		if !subnet && at.info.state() != stateActive {
			return nil
		}
		if at.own().has(lid) {
			return at
		}
	}
	return nil
}

// directedRoute follows the path in the MAD and records the return path (Linux's
// drivers/infiniband/core/mad.c). A LID-routed part may precede and follow it.
func (s *Subnet) directedRoute(from *endpoint, p *Packet) *endpoint {
	m := p.MAD
	hops := int(m[offHops])
	if hops > maxHops {
		return nil
	}
	begin, end := m.drSLID(), m.drDLID()
	if m.returning() {
		begin, end = end, begin
	}
	at := from
	if begin != permissiveLID {
		if at = s.route(from, p.DLID, true); at == nil {
			return nil
		}
	}
	for i := 1; i <= hops; i++ {
		num := int(m[initialPath+i])
		if m.returning() {
			num = int(m[returnPath+hops+1-i])
		}
		out := at.next(from, num)
		if out == nil {
			return nil
		}
		at = out.peer
		if !m.returning() {
			m[returnPath+i] = byte(at.num)
		}
	}
	if end != permissiveLID {
		return s.route(at, end, true)
	}
	return at
}

// next returns port number num of the node if a packet can leave through it: any port of a
// switch, or the port of a channel adapter at which the packet starts.
func (e *endpoint) next(from *endpoint, num int) *endpoint {
	out := e.node.port(num)
	if out == nil || out.num == 0 || !out.joined() || e.node.kind == channelAdapter && (e != from || out != from) {
		return nil
	}
	return out
}

// agents lets the node's own agents answer a request that arrived at port at. taken means that no
// other agent gets the request, whether or not there is an answer.
func (s *Subnet) agents(at *endpoint, m MAD) (answer MAD, taken bool) {
	switch m.Class() {
	case ClassSubnet, ClassDirected:
		return s.subnetManagement(at, m)
	case ClassPerf:
		return at.performance(m), true
	case ClassAdmin:
		if at.own() == s.home && s.master() {
			return s.administration(m), true
		}
	}
	if at.device < 0 { // a simulated node has no other agents
		return Unclaimed(m), true
	}
	return nil, false
}
