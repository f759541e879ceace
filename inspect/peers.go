package inspect

import (
	"cmp"
	"net/netip"
	"slices"
)

// Peer is a host at the other end of connections over the wire, with what these connections know about the network
// between.
type Peer struct {
	Port     string `json:"port"`
	Address  string `json:"address"`
	Protocol string `json:"protocol"` // Wire.Protocol
	QPs      int    `json:"queue_pairs"`
	SilentNs int64  `json:"silent_ns"` // since any of the connections last received a packet
	RTTNs    int64  `json:"rtt_ns"`    // smallest smoothed RTT; 0 before the first sample
	MinRTTNs int64  `json:"min_rtt_ns"`
	PathMTU  int    `json:"path_mtu"` // smallest path MTU
	Segments uint64 `json:"segments"` // sent, without retransmissions
	Resent   uint64 `json:"resent"`
}

// Peers groups the queue pairs with connections over the wire by port and peer.
func (s *Snapshot) Peers() []Peer {
	type key struct{ port, address, protocol string }
	at := map[key]*Peer{}
	for i := range s.QPs {
		q := &s.QPs[i]
		if q.Wire == nil {
			continue
		}
		k := key{q.Device, host(q.Peer), q.Wire.Protocol}
		p := at[k]
		if p == nil {
			p = &Peer{Port: k.port, Address: k.address, Protocol: k.protocol, SilentNs: q.Wire.SilentNs}
			at[k] = p
		}
		p.QPs++
		p.SilentNs = min(p.SilentNs, q.Wire.SilentNs)
		p.RTTNs, p.MinRTTNs, p.PathMTU = least(p.RTTNs, q.Wire.RTTNs), least(p.MinRTTNs, q.Wire.MinRTTNs),
			least(p.PathMTU, q.Wire.PathMTU)
		p.Segments += q.Wire.Segments
		p.Resent += q.Wire.Resent
	}
	peers := []Peer{}
	for _, p := range at {
		peers = append(peers, *p)
	}
	slices.SortFunc(peers, func(a, b Peer) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Protocol, b.Protocol))
	})
	return peers
}

// least is the smaller of two values, where 0 means no value.
func least[T int | int64](a, b T) T {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// host is the address in text, without its port number.
func host(text string) string {
	if a, err := netip.ParseAddrPort(text); err == nil {
		return a.Addr().String()
	}
	return text
}
