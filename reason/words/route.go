package words

import (
	"fmt"
	"net/netip"
	"strings"
)

// Port is a port with its address and network.
type Port struct {
	Name    string
	Network netip.Prefix
}

// NoRoute says why none of the ports leads to an address (ENETUNREACH). If the address is in the network of a port,
// that port has no wire: it is a loopback port.
func NoRoute(to netip.Addr, ports []Port) string {
	var own []string
	for _, p := range ports {
		if p.Network.Contains(to) {
			return fmt.Sprintf("nobody has %v: its network is that of the loopback port %s %v, on which only programs of "+
				"this urdmad are; another vdev reaches other hosts", to, p.Name, p.Network)
		}
		own = append(own, fmt.Sprintf("%s %v", p.Name, p.Network))
	}
	return fmt.Sprintf("no route to %v: urdmad has %s; a port in its network, or \"gateway\" in urdma.json, is needed", to,
		strings.Join(own, ", "))
}
