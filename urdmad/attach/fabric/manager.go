package fabric

import "encoding/binary"

// smState is SMState of SMInfo (IBA table 166).
type smState byte

const (
	smNotActive smState = 0
	smMaster    smState = 3
)

const smInfoSize = 21

// master reports whether our subnet manager is the one: where nobody has claimed to run
// another.
func (s *Subnet) master() bool {
	for _, n := range s.managers {
		if n > 0 {
			return false
		}
	}
	return true
}

func (s *Subnet) putSMInfo(b []byte) {
	state := smNotActive
	if s.master() {
		state = smMaster
	}
	s.activity++
	binary.BigEndian.PutUint64(b, s.home.guid)
	binary.BigEndian.PutUint32(b[16:], s.activity)
	b[20] = byte(state) // with the lowest priority, 0
}

// sweep follows a change: our subnet manager does what there is to do, and another one is told of it.
func (s *Subnet) sweep() {
	s.manage()
	s.tell()
}

// manage is our subnet manager at work: each port has a LID and is active, and every
// switch knows the way to each LID. It does nothing while another one manages.
func (s *Subnet) manage() {
	s.home.info.setCapability(capIsSM, s.master())
	if !s.master() {
		return
	}
	s.discover()
	s.assignLIDs()
	s.computeRoutes()
	for e := range s.endpoints {
		e.info.setSMLID(s.home.info.lid())
		if e.joined() {
			e.info.setNeighborMTU(min(e.info.mtuCap(), e.peer.info.mtuCap()))
		}
		if e.info.state() == stateInit || e.info.state() == stateArmed {
			e.info.setState(stateActive, e.info.physical())
		}
	}
}

// discover finds the nodes that links lead to.
func (s *Subnet) discover() {
	reached := s.home.node.distances()
	for _, n := range s.nodes {
		_, n.known = reached[n]
		for _, out := range n.ports[1:] {
			if n.kind == channelAdapter && out.joined() {
				_, known := reached[out.peer.node]
				n.known = n.known || known
			}
		}
	}
}

// distances are how many links lie between a switch and each that it reaches.
func (n *node) distances() map[*node]int {
	d := map[*node]int{n: 0}
	for queue := []*node{n}; len(queue) > 0; queue = queue[1:] {
		for _, out := range queue[0].ports[1:] {
			if !out.joined() || out.peer.node.kind != switchNode {
				continue
			}
			if _, seen := d[out.peer.node]; !seen {
				d[out.peer.node] = d[queue[0]] + 1
				queue = append(queue, out.peer.node)
			}
		}
	}
	return d
}

// endpoints yields all ports of the nodes that our subnet manager has found.
func (s *Subnet) endpoints(yield func(*endpoint) bool) {
	for _, n := range s.nodes {
		if !n.known {
			continue
		}
		for _, e := range n.ports {
			if e != nil && !yield(e) {
				return
			}
		}
	}
}

// ends yields the ports that have a LID: those of channel adapters that something is plugged
// into, and port 0 of switches.
func (s *Subnet) ends(yield func(*endpoint) bool) {
	for e := range s.endpoints {
		if e.own() == e && (e.num == 0 || e.peer != nil) && !yield(e) {
			return
		}
	}
}

// assignLIDs gives a LID to each port that has none, or one that a port before it has. Devices
// come first: theirs are made of their addresses.
func (s *Subnet) assignLIDs() {
	used := map[uint16]bool{0: true}
	next := uint16(1)
	give := func(e *endpoint) {
		lid := e.info.lid()
		if lid > maxLID || used[lid] {
			for used[next] {
				next++
			}
			lid = next
		}
		used[lid] = true
		e.setLID(lid)
		e.info[offProtectLMC] &^= 7 // LMC: one LID each
	}
	for _, e := range s.devices {
		give(e)
	}
	for e := range s.ends {
		if e.device < 0 {
			give(e)
		}
	}
}

// computeRoutes writes the forwarding tables: a shortest way to each LID, and where there
// are several the LIDs take turns.
func (s *Subnet) computeRoutes() {
	for _, n := range s.nodes {
		for i := range n.lft {
			n.lft[i] = noPort
		}
	}
	far := map[*node]map[*node]int{}
	var top uint16
	turn := 0
	for e := range s.ends {
		lid, last := e.info.lid(), e // by which the last switch sends it
		if e.node.kind == channelAdapter {
			last = e.peer
		}
		top = max(top, lid)
		if last.node.kind == switchNode && (last == e || e.joined()) {
			if far[last.node] == nil {
				far[last.node] = last.node.distances()
			}
			for n := range far[last.node] {
				n.lft[lid] = n.towards(far[last.node], turn)
			}
			last.node.lft[lid] = byte(last.num)
		}
		turn++
	}
	for _, n := range s.nodes {
		if n.kind == switchNode {
			binary.BigEndian.PutUint16(n.info[offLinearTop:], top)
		}
	}
}

// towards is the port of one of the ways that are shortest; noPort where n is the end.
func (n *node) towards(distance map[*node]int, turn int) byte {
	var ways []byte
	for _, out := range n.ports[1:] {
		if out.joined() && out.peer.node.kind == switchNode && distance[out.peer.node] == distance[n]-1 {
			ways = append(ways, byte(out.num))
		}
	}
	if len(ways) == 0 {
		return noPort
	}
	return ways[turn%len(ways)]
}
