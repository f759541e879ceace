package topology

import (
	"bytes"
	"fmt"
)

// Bytes returns the topology as text.
func (t *Topology) Bytes() []byte {
	var b bytes.Buffer
	for _, n := range t.Nodes {
		kind, what := "Ca", "ca"
		if n.Switch {
			kind, what = "Switch", "switch"
		}
		fmt.Fprintf(&b, "%sguid=%#x\n%s\t%d %q\t\t# \"%s\"\n", what, n.GUID, kind, len(n.Ports)-1, n.ID, n.Name)
		for num, p := range n.Ports {
			if p.Peer == nil {
				continue
			}
			fmt.Fprintf(&b, "[%d]", num)
			if !n.Switch {
				fmt.Fprintf(&b, "(%x)", p.GUID)
			}
			fmt.Fprintf(&b, "\t%q[%d]\t\t# \"%s\"\n", p.Peer.ID, p.PeerPort, p.Peer.Name)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}
