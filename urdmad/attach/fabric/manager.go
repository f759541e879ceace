package fabric

import "encoding/binary"

// smState is SMState of SMInfo (IBA table 166).
type smState byte

const (
	smNotActive smState = 0
	smMaster    smState = 3
)

const smInfoSize = 21

// master reports whether our subnet manager is the master: no other one has been claimed.
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

// sweep handles a change: our subnet manager reconfigures the subnet, or another subnet manager
// is notified.
func (s *Subnet) sweep() {
	s.manage()
	s.tell()
}

// manage is the work of our subnet manager: it gives each port a LID and activates it, and fills
// the switches' forwarding tables. It does nothing while another subnet manager is the master.
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

// discover finds the nodes that are reachable through links.
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

// distances returns the number of links between a switch and each switch it reaches.
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

// ends yields the ports that have a LID: connected ports of channel adapters, and port 0 of
// switches.
func (s *Subnet) ends(yield func(*endpoint) bool) {
	for e := range s.endpoints {
		if e.own() == e && (e.num == 0 || e.peer != nil) && !yield(e) {
			return
		}
	}
}

// assignLIDs gives a LID to each port that has none, or whose LID is already used by an earlier
// port. Devices come first, because their LIDs are made from their addresses.
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

// computeRoutes writes the forwarding tables: a shortest path to each LID, with LIDs distributed
// over equal paths.
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
		lid, last := e.info.lid(), e // last is the port from which the last switch sends to lid
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

// towards returns the port of one of the shortest paths; noPort if n is the destination.
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
