// Package topology has InfiniBand subnets as text, in the form that ibnetdiscover(8)
// prints: switches, hosts' channel adapters and the links between them. parse.go reads
// it, write.go writes it, generate.go makes one of so many hosts and switches.
//
// It must not know what a subnet does.
package topology

// Topology is nodes in the file's order. The links of both ends agree.
type Topology struct {
	File  string // "" where it was not read from one
	Nodes []*Node
}

// Node is a switch or a channel adapter (CA).
type Node struct {
	Switch bool
	ID     string // by which links name it
	GUID   uint64
	Name   string // the NodeDescription
	LID    uint16 // of a switch; 0: any
	Line   int    // of the file
	Ports  []Port // by number; Ports[0] is no link
}

// Port is one end of a link.
type Port struct {
	GUID     uint64 // of a channel adapter's
	LID      uint16 // likewise; 0: any
	Peer     *Node  // nil: nothing is plugged in
	PeerPort int
	line     int
}

// Limits of what a subnet can be: ports that a node can have (IBA leaves 254 numbers
// to a switch, of which 255 in a MAD means all), nodes of one file, and bytes of a
// NodeDescription.
const (
	MaxPorts = 253
	MaxNodes = 1024
	maxName  = 64
)

func (n *Node) plug(num int, to *Node, toPort int) {
	n.Ports[num].Peer, n.Ports[num].PeerPort = to, toPort
	to.Ports[toPort].Peer, to.Ports[toPort].PeerPort = n, num
}
