package qpconnect

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"syscall"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
)

// UDPPort is the destination port of requests by queue pair number.
const UDPPort = 30034

// End is one side of a connection.
type End struct {
	Addr netip.Addr
	QPN  uint32
}

// compare orders ends; the lower one is the requester.
func (e End) compare(o End) int {
	return cmp.Or(e.Addr.Compare(o.Addr), cmp.Compare(e.QPN, o.QPN))
}

// State is the progress of a pair.
type State uint8

// States of a pair.
const (
	Resolving  State = iota // the neighbour is being resolved
	Waiting                 // waiting for the other queue pair of this urdmad
	Connecting              // requests are being sent
	Accepting               // accepted; the peer's first packet has not arrived
	Connected
	Lost    // the peer ended the connection during our sends, which fail after the usual time-outs
	Stopped // removed from the tables
)

var stateNames = [...]string{"resolving", "waiting", "connecting", "accepting", "connected", "lost", "stopped"}

func (s State) String() string { return stateNames[s] }

// Params say which two queue pairs to connect, and how.
type Params struct {
	QP          QueuePair
	Dev         int
	Peer        End
	IRD         uint16 // Reads of the peer that are accepted at a time
	MinRNRTimer uint8
	PathMTU     uint8 // enum ibv_mtu
	RQPSN       uint32
}

// Pair is a queue pair with the peer in its attributes.
type Pair struct {
	Params
	Local   End
	Created clock.Time

	state    State
	sameHost bool
	tries    int // number of repetitions of the last packet
	timer    *clock.Timer
	patience *clock.Timer // time-out of posted work
	waits    bool         // patience is running
	attempt  int          // number of attempts, which identifies the attempt of an answer to Resolve
	link     cm.Link
	conn     Conn   // of the present attempt
	heard    uint32 // the peer's cookie in its latest request

	peer       netip.AddrPort // source of the peer's request or accept
	peerNumber uint32
	answered   uint32 // cookie of the accepted request
	challenge  uint32 // cookie of a challenge that was sent; 0: none
}

// State returns the progress of the pair.
func (v *Pair) State() State { return v.state }

// Tries returns how often the last packet of the handshake was repeated.
func (v *Pair) Tries() int { return v.tries }

// Config of a Manager.
type Config struct {
	Network Network
	Log     *slog.Logger
	Addrs   []netip.Addr // our addresses, by device number
	Timeout clock.Time   // how long an accept is repeated
	// Elsewhere reports whether a queue pair at one of our addresses belongs to another worker; nil: there
	// are no others.
	Elsewhere func(uint32) bool
}

// Manager has the pairs of a urdmad.
type Manager struct {
	net     Network
	log     *slog.Logger
	addrs   []netip.Addr
	timeout clock.Time
	pairs   map[uint32]*Pair
	Stats   Stats

	elsewhere func(uint32) bool
}

// Stats counts events.
type Stats struct{ Started, Ignored, Accepted, Established, Challenged, Ended uint64 }

// New returns a Manager without pairs.
func New(c Config) *Manager {
	return &Manager{net: c.Network, log: c.Log, addrs: c.Addrs, timeout: c.Timeout, pairs: map[uint32]*Pair{},
		elsewhere: c.Elsewhere}
}

// Check returns an error unless there is a route to a peer's address: ETIMEDOUT, with which the kernel refuses a path
// to such an address (RoCE), although that is known at once.
func (m *Manager) Check(dev int, peer netip.Addr) error {
	if slices.Contains(m.addrs, peer) {
		return nil
	}
	if _, ok := m.net.NextHop(dev, peer); !ok {
		return fmt.Errorf("no route leads to %v: %w", peer, syscall.ETIMEDOUT)
	}
	return nil
}

// Start starts looking for the peer of a queue pair that has entered RTR, also while no route leads to it.
func (m *Manager) Start(p Params) *Pair {
	v := &Pair{Params: p, Local: End{m.addrs[p.Dev], p.QP.Number()}, Created: m.net.Now(),
		sameHost: slices.Contains(m.addrs, p.Peer.Addr) && (m.elsewhere == nil || !m.elsewhere(p.Peer.QPN))}
	v.timer = clock.NewTimer(func() { m.tick(v) })
	v.patience = clock.NewTimer(v.QP.Exhaust)
	m.pairs[v.Local.QPN] = v
	m.Stats.Started++
	m.begin(v)
	return v
}

// Stop removes a pair without a connection: its queue pair is in error, was reset or is being destroyed.
func (m *Manager) Stop(v *Pair) {
	if v.state == Stopped {
		return
	}
	v.state = Stopped
	m.net.Set(v.timer, clock.Never)
	m.net.Set(v.patience, clock.Never)
	m.giveUp(v)
	if m.pairs[v.Local.QPN] == v {
		delete(m.pairs, v.Local.QPN)
	}
}

// giveUp ends the attempt.
func (m *Manager) giveUp(v *Pair) {
	if v.conn != nil {
		v.conn.Release()
		v.conn = nil
	}
}

// Pair returns the pair of a queue pair, or nil.
func (m *Manager) Pair(n uint32) *Pair { return m.pairs[n] }

// Len returns the number of pairs.
func (m *Manager) Len() int { return len(m.pairs) }
