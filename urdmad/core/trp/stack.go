package trp

import (
	"log/slog"
	"math/rand/v2"
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/datagram"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rdmap"
	"urdma/urdmad/core/reliable"
	"urdma/wire"
)

// minWindow is offered whatever a port holds: with less, each acknowledgement is
// waited for.
const minWindow = 32

// Config of a Stack. Zeros take the defaults of package reliable.
type Config struct {
	DeathTimeout clock.Time // silence after which a peer counts as dead
	AckDelay     clock.Time
	Window       int     // segments in flight a connection; 0: DefaultWindow, and as many as long paths need
	Numbers      Numbers // nil: no other worker has any

	bounded bool // Window was given
}

// Numbers are the UDP port numbers that several workers share.
type Numbers interface {
	Take(number uint16) bool // false: another worker has it
	Give(number uint16)      // undoes one Take
}

// wideWindow is how many segments a connection has in flight to a peer that states
// credits of 20 bits.
func (cfg *Config) wideWindow() int {
	if cfg.bounded {
		return cfg.Window
	}
	return reliable.MaxWideWindow
}

// Handler manages connections.
type Handler interface {
	qp.Manager
	// Handshake is a request, accept or reject. body follows the base header and
	// is private memory.
	Handshake(dev int, d *netif.Datagram, t *wire.TRP, body []byte)
}

// Stack is all TRP connections of one worker.
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

// Stats counts what no connection counts.
type Stats struct {
	NoConnection     uint64 `counter:"no_connection"`      // datagrams to a port number nobody has
	StrayAddress     uint64 `counter:"stray_address"`      // right port number, wrong peer, cookie or PSN
	BadAck           uint64 `counter:"bad_ack"`            // acknowledgements of what was not sent
	ReceiverNotReady uint64 `counter:"receiver_not_ready"` // messages that waited for a receive
	RetainFailed     uint64 `counter:"retain_failed"`      // packets dropped because there was no memory to keep them
}

// NewStack returns a Stack without ports.
func NewStack(cfg Config, t *qp.Table, streams *rdmap.Stats, log *slog.Logger, r *rand.Rand) *Stack {
	if cfg.DeathTimeout == 0 {
		cfg.DeathTimeout = reliable.DefaultDeathTimeout
	}
	cfg.bounded = cfg.Window > 0
	cfg.Window = min(reliable.WindowSize(cfg.Window), reliable.MaxWindow)
	return &Stack{cfg: cfg, clock: t.Clock, table: t, streams: streams, log: log, rand: r}
}

// Random draws a number that strangers cannot guess: a cookie.
func (s *Stack) Random() uint32 { return s.rand.Uint32() }

// SetHandler names the manager of connections; before the first packet.
func (s *Stack) SetHandler(h Handler) { s.handler = h }

// SetDeathTimeout changes how long new connections wait for a silent peer; those
// that exist keep theirs.
func (s *Stack) SetDeathTimeout(t clock.Time) { s.cfg.DeathTimeout = t }

// DeathTimeout is how long new connections wait for a silent peer.
func (s *Stack) DeathTimeout() clock.Time { return s.cfg.DeathTimeout }

// Window is how many segments a connection holds out of order.
func (s *Stack) Window() int { return s.cfg.Window }

// AddPort has connections use an interface, whose device number is the next.
func (s *Stack) AddPort(d *datagram.Port) *Port {
	n := d.If
	p := &Port{If: n, datagrams: d, s: s}
	p.fitWindows()
	n.Batches.Blamed = func(peer netip.Addr) {
		s.log.Warn("datagrams that leave in one send are lost on their way; they go one by one to this peer", "peer", peer)
	}
	n.Lost = func(by wire.MAC) {
		s.log.Error("another host has the port's IPv6 address: the port is cut off until urdmad is started again",
			"address", n.IP(), "mac", by, "connections", p.Forsake(n.IP()))
	}
	n.Contested = func(by wire.MAC) {
		s.log.Warn("another host uses the port's IPv4 address: packets for one go to the other, and neither is reached for sure", "address", n.IP(), "mac", by)
	}
	s.ports = append(s.ports, p)
	return p
}

// Port returns the port of a device number.
func (s *Stack) Port(dev int) *Port { return s.ports[dev] }

func (s *Stack) stray(n *netif.Interface, why string) {
	s.Stats.StrayAddress++
	n.Note("dropped: " + why)
}

func (s *Stack) badAck(n *netif.Interface) {
	s.Stats.BadAck++
	n.Note("dropped: acknowledges what was not sent")
}
