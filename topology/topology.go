// Package topology has InfiniBand subnets as text, in the format that ibnetdiscover(8) prints: switches, hosts'
// channel adapters and the links between them.
//
// It must not know what a subnet does.
package topology

// Topology lists the nodes in the file's order. Both ends of a link point to each other.
type Topology struct {
	File  string // "" if it was not read from a file
	Nodes []*Node
}

// Node is a switch or a channel adapter (CA).
type Node struct {
	Switch bool
	ID     string // name of the node in links
	GUID   uint64
	Name   string // the NodeDescription
	LID    uint16 // of a switch; 0: any
	Line   int    // line in the file
	Ports  []Port // by number; Ports[0] is no link
}

// Port is one end of a link.
type Port struct {
	GUID     uint64 // of a channel adapter's port
	LID      uint16 // of a channel adapter's port; 0: any
	Peer     *Node  // nil: not connected
	PeerPort int
	line     int
}

// Limits of a subnet: ports of a node (IBA has 254 port numbers for a switch; 255 in a MAD means all), nodes of one
// file, and bytes of a NodeDescription.
const (
	MaxPorts = 253
	MaxNodes = 1024
	maxName  = 64
)

func (n *Node) plug(num int, to *Node, toPort int) {
	n.Ports[num].Peer, n.Ports[num].PeerPort = to, toPort
	to.Ports[toPort].Peer, to.Ports[toPort].PeerPort = n, num
}
