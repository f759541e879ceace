package topology

import "fmt"

// Size is the size of a generated subnet.
type Size struct {
	Hosts    int // channel adapters with one port each
	Switches int // leaf switches, to which the hosts are connected
	Spines   int // spine switches, each linked to every leaf switch; 0: the leaf switches are linked with each other
}

// usual is the smallest number of ports of a switch, as in real ones.
const usual = 36

// spare is the number of ports that each leaf switch keeps free for urdmad's own devices.
const spare = 4

// Generate makes a subnet. Hosts are spread over the leaf switches in turn.
func Generate(s Size) (*Topology, error) {
	if s.Hosts < 0 || s.Switches < 1 || s.Spines < 0 || s.Hosts+s.Switches+s.Spines > MaxNodes {
		return nil, fmt.Errorf("%d hosts, %d switches and %d spines, expected 1 switch at least and %d nodes at most",
			s.Hosts, s.Switches, s.Spines, MaxNodes)
	}
	up := s.Spines
	if up == 0 {
		up = s.Switches - 1
	}
	ports := max((s.Hosts+s.Switches-1)/s.Switches+up+spare, s.Switches*min(s.Spines, 1))
	if ports > MaxPorts {
		return nil, fmt.Errorf("%d hosts at %d switches with %d links to others need switches of %d ports, expected %d at "+
			"most", s.Hosts, s.Switches, up, ports, MaxPorts)
	}
	t := &Topology{}
	add := func(sw bool, name string, kind, count, ports int) (list []*Node) {
		for i := 1; i <= count; i++ {
			// A locally administered GUID with "urd" in the middle.
			n := &Node{Switch: sw, GUID: 0x02_757264_00_0000_00 | uint64(kind)<<24 | uint64(i)<<8,
				Name: fmt.Sprintf("%s%d", name, i), Ports: make([]Port, ports+1)}
			n.ID = fmt.Sprintf("H-%016x", n.GUID)
			if sw {
				n.ID = fmt.Sprintf("S-%016x", n.GUID)
			}
			for num := 1; num <= ports && !sw; num++ {
				n.Ports[num].GUID = n.GUID + uint64(num)
			}
			list = append(list, n)
		}
		t.Nodes = append(t.Nodes, list...)
		return list
	}
	spines := add(true, "spine", 2, s.Spines, max(usual, ports))
	switches := add(true, "switch", 1, s.Switches, max(usual, ports))
	for i, h := range add(false, "host", 3, s.Hosts, 1) {
		h.plug(1, switches[i%s.Switches], i/s.Switches+1)
	}
	for i, sw := range switches {
		last := len(sw.Ports) - 1 // links between switches are the last ports
		for j, spine := range spines {
			sw.plug(last-j, spine, i+1)
		}
		for j := i + 1; j < s.Switches && s.Spines == 0; j++ {
			sw.plug(last-(j-1), switches[j], last-i)
		}
	}
	return t, nil
}
