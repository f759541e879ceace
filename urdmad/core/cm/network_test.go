package cm_test

import (
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"syscall"
	"testing"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/handshake"
	"urdma/urdmad/core/trp"
	"urdma/wire"
)

// This file is a network for tests of managers: hosts on one link, a virtual clock, and packets that are
// lost, duplicated and delayed. conn_test.go implements the connections of its hosts.

const (
	ms  = clock.Millisecond
	sec = clock.Second
)

// path has the network's effects on packets.
type path struct {
	loss, double float64
	delay        clock.Time // longest; each packet draws its own, so they overtake
}

// world is the hosts and the link between them. All chance comes from rand.
type world struct {
	t      testing.TB
	rand   *rand.Rand
	now    clock.Time
	timers clock.Timers
	hosts  []*host
	path   path
	drop   func(op wire.TRPOp, from *host) bool // if set: packets lost on purpose
	parts  map[wire.TRPOp]int                   // packets sent, by opcode
	sent   func(datagram)                       // if set: sees them all
}

// options of a host.
type options struct {
	timeout  clock.Time // of handshakes; 4 s
	maxDepth uint16     // 16
	expected func(port uint16) bool
}

// newWorld creates a world with a host for each of the options; state that is left when the test ends is an
// error.
func newWorld(t testing.TB, seed uint64, opts ...options) *world {
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 0xc3)), path: path{delay: ms}, parts: map[wire.TRPOp]int{}}
	for i, o := range opts {
		if o.timeout == 0 {
			o.timeout = 4 * sec
		}
		if o.maxDepth == 0 {
			o.maxDepth = 16
		}
		h := &host{w: w, addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), timeout: o.timeout,
			conns: map[uint16]*conn{}, sockets: map[uint16]int{}}
		h.m = cm.New(cm.Config{Network: h, Log: slog.New(slog.DiscardHandler), Addrs: []netip.Addr{h.addr},
			Timeout: o.timeout, MaxDepth: o.maxDepth, Secret: [16]byte{byte(seed), byte(seed >> 8), byte(i)},
			Expected: o.expected})
		w.hosts = append(w.hosts, h)
	}
	return w
}

// after runs fn once a time has passed.
func (w *world) after(d clock.Time, fn func()) { w.timers.Set(clock.NewTimer(fn), w.now+d) }

// pass lets time go by.
func (w *world) pass(d clock.Time) {
	for end := w.now + d; ; {
		next := w.timers.Next()
		if next > end {
			w.now = end
			return
		}
		w.now = max(w.now, next)
		w.timers.Run(w.now)
	}
}

// until lets time go by until fn holds.
func (w *world) until(what string, limit clock.Time, fn func() bool) {
	w.t.Helper()
	for end := w.now + limit; !fn(); {
		if w.timers.Next() > end {
			w.t.Fatalf("%s: not within %d ms", what, limit/ms)
		}
		w.now = max(w.now, w.timers.Next())
		w.timers.Run(w.now)
	}
}

// checkEmpty reports state that is left after all ids are destroyed.
func (w *world) checkEmpty() {
	w.t.Helper()
	for _, h := range w.hosts {
		if n := h.m.Len(); n != 0 || len(h.conns) != 0 {
			w.t.Errorf("host %v: %d entries and %d connections are left", h.addr, n, len(h.conns))
		}
	}
	if next := w.timers.Next(); next != clock.Never {
		w.t.Errorf("a timer of %d ms is left at %d ms", next/ms, w.now/ms)
	}
}

// datagram is a UDP datagram.
type datagram struct {
	from, to netip.AddrPort
	payload  []byte
}

// send carries a datagram, or doesn't.
func (w *world) send(from *host, d datagram) {
	op := wire.TRPOp(d.payload[8] >> 4)
	w.parts[op]++
	if w.sent != nil {
		w.sent(d)
	}
	if w.drop != nil && w.drop(op, from) || w.rand.Float64() < w.path.loss {
		return
	}
	copies := 1
	for w.rand.Float64() < w.path.double && copies < 4 {
		copies++
	}
	for range copies {
		w.after(1+clock.Time(w.rand.Int64N(int64(w.path.delay))), func() {
			if h := w.host(d.to.Addr()); h != nil {
				h.receive(d)
			}
		})
	}
}

func (w *world) host(a netip.Addr) *host {
	for _, h := range w.hosts {
		if h.addr == a {
			return h
		}
	}
	return nil
}

// Listen is cm.Network's: only some tests have requests come by connections.
func (h *host) Listen(id *cm.ID, _ int) error {
	local, _ := id.Bound()
	if h.foreign[local.Port()] {
		return syscall.EADDRINUSE
	}
	h.sockets[local.Port()]++
	return nil
}

func (h *host) Unlisten(id *cm.ID, _ int) {
	local, _ := id.Bound()
	h.sockets[local.Port()]--
}

// host is a machine with one address: cm.Network.
type host struct {
	w       *world
	m       *cm.Manager
	addr    netip.Addr
	timeout clock.Time       // of handshakes
	conns   map[uint16]*conn // by our port number
	qpns    uint32
	sockets map[uint16]int            // port numbers where connections come in
	foreign map[uint16]bool           // and those of other programs' sockets
	cut     bool                      // nothing arrives any more
	slow    map[netip.Addr]clock.Time // neighbours that take their time to resolve
}

func (h *host) Now() clock.Time                   { return h.w.now }
func (h *host) Set(t *clock.Timer, at clock.Time) { h.w.timers.Set(t, at) }
func (h *host) Soon(fn func())                    { h.w.timers.Soon(fn) }

var network = netip.MustParsePrefix("10.0.0.0/24")

func (h *host) Wire(int) cm.Wire { return h }

func (h *host) MaxPrivate(handshake.Kind) int { return trp.MaxPrivate }

func (h *host) Size(m *cm.Message) (packet, end int) { return trp.Size(m) }

func (h *host) Home(int) cm.Link { return nil }

func (h *host) NextHop(dev int, dst netip.Addr) (netip.Addr, bool) { return dst, network.Contains(dst) }

// resolveTime is how long a neighbour that isn't there is asked for.
const resolveTime = 1 * sec

// link is a neighbour's address, as its Ethernet address would be.
type link netip.Addr

func (h *host) Resolve(dev int, hop, _ netip.Addr, done func(cm.Link, bool)) {
	if h.w.host(hop) == nil {
		h.w.after(resolveTime, func() { done(nil, false) })
		return
	}
	h.w.after(h.slow[hop]+clock.Time(h.w.rand.Int64N(int64(ms))), func() { done(link(hop), true) })
}

func (h *host) Send(p *cm.Message) { h.sendMessage(p, nil) }

// sendMessage sends a message as bytes.
func (h *host) sendMessage(p *cm.Message, offer *wire.TRPExtension) {
	if p.Dev != 0 || p.Local.Addr() != h.addr || p.Link != link(p.Peer.Addr()) {
		h.w.t.Errorf("host %v sends from device %d, %v, to %v by link %v", h.addr, p.Dev, p.Local, p.Peer, p.Link)
	}
	h.sendPacket(p, trp.PacketOf(p, offer))
}

func (h *host) sendPacket(p *cm.Message, k trp.Packet) {
	b := make([]byte, wire.TRPExtLen+k.Connect.Len())
	n, err := k.Put(b)
	if err != nil {
		h.w.t.Fatal(err)
	}
	h.w.send(h, datagram{p.Local, p.Peer, b[:n]})
}

// receive hands a datagram to its connection or to the manager.
func (h *host) receive(d datagram) {
	if h.cut {
		return
	}
	c := h.conns[d.to.Port()]
	control := wire.TRPOp(d.payload[8] >> 4).IsControl()
	if c != nil && c.state != opening && !control {
		c.receive(d)
		return
	}
	var t wire.TRP
	at, err := t.Parse(d.payload)
	if err != nil {
		h.w.t.Fatal(err)
	}
	if control { // others belong to connections that are gone
		h.message(d.from, d.to, t, append([]byte(nil), d.payload[at:]...))
	}
}

// message hands a message to the manager, as the network does.
func (h *host) message(from, to netip.AddrPort, t wire.TRP, body []byte) {
	p := &cm.Message{Link: link(from.Addr()), Local: to, Peer: from}
	if trp.Decode(p, &t, body) != nil {
		return
	}
	wanted, c := true, h.conns[to.Port()]
	switch {
	case c == nil || p.Kind == handshake.Request || p.Answers != uint32(c.isn) || from.Addr() != c.peer.Addr():
		wanted = h.m.Receive(nil, p)
	case p.Kind == handshake.Reply && c.state == open && from == c.peer:
		c.send(wire.OpData, 0) // the first acknowledgement was lost
	default:
		wanted = h.m.Receive(c, p)
	}
	if !wanted {
		h.sendPacket(p, trp.FinOf(p))
	}
}

func (h *host) Open(id *cm.ID, dev int, port uint16, peer netip.AddrPort) (cm.Conn, error) {
	if h.conns[port] != nil {
		return nil, syscall.EADDRINUSE
	}
	c := &conn{h: h, id: id, port: port, peer: peer, isn: wire.PSN(h.w.rand.Uint32()), cookie: h.w.rand.Uint32()}
	c.timer = clock.NewTimer(c.tick)
	h.conns[port] = c
	return c, nil
}

func (h *host) InUse(dev int, port uint16) bool { return h.conns[port] != nil }

func (h *host) Join(a, b cm.End) (cm.Conn, cm.Conn) {
	ca, cb := &conn{h: h, id: a.ID, sameHost: true}, &conn{h: h, id: b.ID, sameHost: true}
	ca.other, cb.other = cb, ca
	ca.timer, cb.timer = clock.NewTimer(ca.tick), clock.NewTimer(cb.tick)
	return ca, cb
}
