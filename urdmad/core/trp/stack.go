package trp

import (
	"log/slog"
	"math/rand/v2"
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/datagram"
	"urdma/urdmad/core/handshake"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rdmap"
	"urdma/urdmad/core/reliable"
	"urdma/wire"
)

// minWindow is the least window, whatever a port can queue: with a smaller one the sender would wait for
// each acknowledgement.
const minWindow = 32

// Config configures a Stack. Zero values mean the defaults of package reliable.
type Config struct {
	DeathTimeout clock.Time // silence after which a peer counts as dead
	AckDelay     clock.Time
	Window       int     // outstanding segments of a connection; 0: MaxWindow
	Numbers      Numbers // nil: no other worker uses port numbers
}

// Numbers reserves UDP port numbers, which several workers share.
type Numbers interface {
	Take(number uint16) bool // false: another worker has it
	Give(number uint16)      // undoes one Take
}

// Handler is the connection manager.
type Handler interface {
	qp.Manager
	// Handshake handles a message, which it may keep. c is the connection at its port number, or nil. It returns
	// false for a reply to a request that was given up; the peer is told so.
	Handshake(c *Conn, m *handshake.Message) (wanted bool)
}

// Stack has all TRP connections of one worker.
type Stack struct {
	Stats Stats

	cfg     Config
	clock   *clock.Clock
	table   *qp.Table
	streams *rdmap.Stats
	handler Handler
	log     *slog.Logger
	rand    *rand.Rand
	ports   []*Port
	rings   reliable.Rings
	pages   heldPages
}

// Stats counts events that belong to no connection.
type Stats struct {
	NoConnection     uint64 `counter:"no_connection"`      // datagrams to an unused port number
	StrayAddress     uint64 `counter:"stray_address"`      // right port number, wrong peer, cookie or PSN
	BadAck           uint64 `counter:"bad_ack"`            // acknowledgements of data that was not sent
	ReceiverNotReady uint64 `counter:"receiver_not_ready"` // messages that waited for a receive
	RetainFailed     uint64 `counter:"retain_failed"`      // packets dropped because there was no memory to keep them
}

// NewStack returns a Stack without ports.
func NewStack(cfg Config, t *qp.Table, streams *rdmap.Stats, log *slog.Logger, r *rand.Rand) *Stack {
	if cfg.DeathTimeout == 0 {
		cfg.DeathTimeout = reliable.DefaultDeathTimeout
	}
	if cfg.Window == 0 {
		cfg.Window = reliable.MaxWindow
	}
	cfg.Window = reliable.WindowSize(cfg.Window)
	return &Stack{cfg: cfg, clock: t.Clock, table: t, streams: streams, log: log, rand: r}
}

// Random returns a random number that others can't guess, for cookies.
func (s *Stack) Random() uint32 { return s.rand.Uint32() }

// SetHandler sets the connection manager; call it before the first packet.
func (s *Stack) SetHandler(h Handler) { s.handler = h }

// SetDeathTimeout changes how long new connections tolerate a silent peer; existing connections keep their
// timeout.
func (s *Stack) SetDeathTimeout(t clock.Time) { s.cfg.DeathTimeout = t }

// DeathTimeout returns how long new connections tolerate a silent peer.
func (s *Stack) DeathTimeout() clock.Time { return s.cfg.DeathTimeout }

// Window returns how many segments a connection has outstanding on a short path.
func (s *Stack) Window() int { return min(s.cfg.Window, reliable.DefaultWindow) }

// AddPort adds an interface for connections. Its device number is the next free one.
func (s *Stack) AddPort(d *datagram.Port) *Port {
	n := d.If
	p := &Port{If: n, datagrams: d, s: s}
	p.fitWindow()
	n.Batches.Blamed = func(peer netip.Addr) {
		s.log.Warn("datagrams that leave in one send are lost on their way; they go one by one to this peer", "peer", peer)
	}
	n.Lost = func(by wire.MAC) {
		s.log.Error("another host has the port's IPv6 address: the port is cut off until urdmad is started again",
			"address", n.IP(), "mac", by, "connections", p.EndFrom(n.IP()))
	}
	n.Contested = func(by wire.MAC) {
		s.log.Warn("another host uses the port's IPv4 address: packets for one go to the other, and neither is reached for sure", "address", n.IP(), "mac", by)
	}
	s.ports = append(s.ports, p)
	return p
}

// Port returns the port of a device number.
func (s *Stack) Port(dev int) *Port { return s.ports[dev] }
