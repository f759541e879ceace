package roce

import (
	"log/slog"
	"math/rand/v2"
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/datagram"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rc"
	"urdma/wire"
	"urdma/wire/roce"
)

// Stack is all connections over RoCEv2 of one worker.
type Stack struct {
	Stats Stats

	clock *clock.Clock
	table *qp.Table
	log   *slog.Logger
	ports map[int]*Port // by device number
	conns map[wire.QPN]*Conn

	handler  Handler
	rand     *rand.Rand
	ids      map[uint32]*Conn // of rdma_cm, by our communication ID
	asked    map[requestKey]*Conn
	peers    map[requestKey]*Conn // of rdma_cm and established, by the peer's queue pair
	rejected int                  // of them
}

// Stats counts what no queue pair counts.
type Stats struct {
	Malformed   uint64 `counter:"roce_malformed"`        // packets with a wrong header
	WrongICRC   uint64 `counter:"roce_wrong_icrc"`       // with a wrong CRC
	NoQueuePair uint64 `counter:"roce_no_queue_pair"`    // for a queue pair that takes none, or not from there
	Unsupported uint64 `counter:"roce_not_supported"`    // of a transport that we do not speak
	Unreachable uint64 `counter:"roce_no_neighbour"`     // sends that failed because nobody answers for the next hop
	Refused     uint64 `counter:"roce_requests_refused"` // that were wrong: a NAK ended the connection
	CNPSent     uint64 `counter:"roce_cnp_sent"`         // notices of congestion
	CNPHeard    uint64 `counter:"roce_cnp_heard"`
	RC          rc.Stats
}

// Port is an interface that speaks RoCEv2.
type Port struct {
	If *netif.Interface

	s         *Stack
	datagrams *datagram.Port
	sent      roce.Sums   // of packets that leave
	come      roce.Sums   // and of those that have come
	head      roce.Header // of the packet that has come
	psn       roce.PSN    // of the next management datagram
}

// NewStack returns a Stack without ports.
func NewStack(t *qp.Table, log *slog.Logger, r *rand.Rand) *Stack {
	return &Stack{clock: t.Clock, table: t, log: log, rand: r, ports: map[int]*Port{}, conns: map[wire.QPN]*Conn{}, ids: map[uint32]*Conn{}, asked: map[requestKey]*Conn{}, peers: map[requestKey]*Conn{}}
}

// AddPort has an interface speak RoCEv2, before its first Poll.
func (s *Stack) AddPort(d *datagram.Port) *Port {
	n := d.If
	p := &Port{If: n, s: s, datagrams: d}
	d.Speak(datagrams{})
	n.CarryBare(&p.sent)
	s.ports[n.Dev] = p
	return p
}

// MTUs are those that paths have, in bytes of payload; enum ibv_mtu numbers them from 1.
var MTUs = [...]int{256, 512, 1024, 2048, 4096}

// overhead is the most that stands around a payload, IP and UDP headers apart.
const overhead = roce.MaxHeaderLen + roce.ICRCLen

// MaxMTU is the number of the largest path MTU that a port's packets have room for.
func (p *Port) MaxMTU() (number uint32) {
	for _, mtu := range MTUs {
		if mtu+overhead <= p.If.MaxDatagram() {
			number++
		}
	}
	return max(number, 1)
}

// MaxMTU is that of a device's port.
func (s *Stack) MaxMTU(dev int) uint32 { return s.ports[dev].MaxMTU() }

// local is our end of a connection, peer the other's.
func (p *Port) local() netip.AddrPort { return netip.AddrPortFrom(p.If.IP(), roce.Port) }
