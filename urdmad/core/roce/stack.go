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

// Stack has all RoCEv2 connections of one worker.
type Stack struct {
	Stats Stats

	clock *clock.Clock
	table *qp.Table
	log   *slog.Logger
	ports map[int]*Port // by device number
	conns map[wire.QPN]*Conn

	handler  Handler
	rand     *rand.Rand
	ids      map[uint32]*Conn // connections of rdma_cm, by our communication ID
	asked    map[requestKey]*Conn
	peers    map[requestKey]*Conn // established connections of rdma_cm, by the peer's queue pair
	rejected int                  // the number of rejected connections in ids
}

// Stats counts events that belong to no queue pair.
type Stats struct {
	Malformed   uint64 `counter:"roce_malformed"`        // packets with an invalid header
	WrongICRC   uint64 `counter:"roce_wrong_icrc"`       // packets with a wrong CRC
	NoQueuePair uint64 `counter:"roce_no_queue_pair"`    // packets to a queue pair that doesn't exist or accept them
	Unsupported uint64 `counter:"roce_not_supported"`    // packets of an unsupported transport
	Unreachable uint64 `counter:"roce_no_neighbour"`     // sends to an unresolved next hop
	Refused     uint64 `counter:"roce_requests_refused"` // invalid requests: a NAK ended the connection
	CNPSent     uint64 `counter:"roce_cnp_sent"`         // congestion notification packets sent
	CNPHeard    uint64 `counter:"roce_cnp_heard"`
	RC          rc.Stats
}

// Port is an interface that uses RoCEv2.
type Port struct {
	If *netif.Interface

	s         *Stack
	datagrams *datagram.Port
	sent      roce.Sums   // checksums of outgoing packets
	come      roce.Sums   // checksums of received packets
	head      roce.Header // of the received packet
	psn       roce.PSN    // of the next management datagram
}

// NewStack returns a Stack without ports.
func NewStack(t *qp.Table, log *slog.Logger, r *rand.Rand) *Stack {
	return &Stack{clock: t.Clock, table: t, log: log, rand: r, ports: map[int]*Port{}, conns: map[wire.QPN]*Conn{},
		ids: map[uint32]*Conn{}, asked: map[requestKey]*Conn{}, peers: map[requestKey]*Conn{}}
}

// AddPort makes an interface use RoCEv2; call it before the first Poll.
func (s *Stack) AddPort(d *datagram.Port) *Port {
	n := d.If
	p := &Port{If: n, s: s, datagrams: d}
	d.Speak(datagrams{})
	n.CarryBare(&p.sent)
	s.ports[n.Dev] = p
	return p
}

// MTUs are the possible path MTUs, in bytes of payload; enum ibv_mtu numbers them from 1.
var MTUs = [...]int{256, 512, 1024, 2048, 4096}

// overhead is the greatest number of bytes around a payload, without IP and UDP headers.
const overhead = roce.MaxHeaderLen + roce.ICRCLen

// MaxMTU returns the number of the largest path MTU whose packets fit the port's.
func (p *Port) MaxMTU() (number uint32) {
	for _, mtu := range MTUs {
		if mtu+overhead <= p.If.MaxDatagram() {
			number++
		}
	}
	return max(number, 1)
}

// MaxMTU returns the MaxMTU of a device's port.
func (s *Stack) MaxMTU(dev int) uint32 { return s.ports[dev].MaxMTU() }

// local returns our end of a connection.
func (p *Port) local() netip.AddrPort { return netip.AddrPortFrom(p.If.IP(), roce.Port) }
