package connect

import (
	"errors"
	"net/netip"
	"syscall"

	"urdma/urdmad/clock"
	"urdma/urdmad/cm"
	"urdma/urdmad/engine"
	"urdma/wire"
)

// New returns the connection manager of an engine that has no ports yet. It
// fills in the network of the configuration; addresses are those of the ports
// in the order in which they are added.
func New(e *engine.Engine, c cm.Config) *cm.Manager {
	n := &network{e: e}
	c.Network = n
	n.m = cm.New(c)
	e.SetHandler(n)
	return n.m
}

// network is an engine as the connection manager sees it.
type network struct {
	e *engine.Engine
	m *cm.Manager
}

func (n *network) Now() clock.Time                   { return n.e.Now() }
func (n *network) Set(t *clock.Timer, at clock.Time) { n.e.SetTimer(t, at) }

func (n *network) NextHop(dev int, dst netip.Addr) (netip.Addr, bool) {
	if !dst.Is4() {
		return netip.Addr{}, false
	}
	hop, ok := n.e.NextHop(dev, dst.As4())
	return netip.AddrFrom4(hop), ok
}

// Resolve answers with an Ethernet address, which is what links are here.
func (n *network) Resolve(dev int, hop netip.Addr, done func(cm.Link, bool)) {
	n.e.Resolve(dev, hop.As4(), func(mac wire.MAC, ok bool) { done(mac, ok) })
}

func (n *network) Send(p *cm.Packet) {
	mac, _ := p.Link.(wire.MAC)
	n.e.SendControl(&engine.ControlPacket{Dev: p.Dev, MAC: mac, Peer: p.Peer.Addr().As4(), LocalPort: p.Local.Port(),
		PeerPort: p.Peer.Port(), TRP: p.TRP, Extended: p.Extended, Connect: p.Connect})
}

func (n *network) Show(p *cm.Packet, qp cm.QueuePair) {
	if !n.e.Tapped() {
		return
	}
	n.e.ShowControl(&engine.LocalControl{Dev: p.Dev, From: p.Local.Addr().As4(), To: p.Peer.Addr().As4(),
		FromPort: p.Local.Port(), ToPort: p.Peer.Port(), Op: p.TRP.Op, Connect: p.Connect}, EngineQP(qp))
}

func (n *network) Open(id *cm.ID, dev int, port uint16, peer netip.AddrPort) (cm.Conn, error) {
	c, err := n.e.NewConn(dev, port, peer.Addr().As4(), peer.Port())
	if errors.Is(err, engine.ErrPortInUse) {
		return nil, syscall.EADDRINUSE
	}
	if err != nil {
		return nil, err
	}
	return n.own(c, id), nil
}

func (n *network) ConnAt(dev int, port uint16) cm.Conn {
	c := n.e.ConnAt(dev, port)
	if c == nil {
		return nil
	}
	return c.Owner.(*conn)
}

func (n *network) Join(a, b cm.End) (cm.Conn, cm.Conn) {
	ca, cb := n.end(a), n.end(b)
	engine.Join(ca, cb)
	return n.own(ca, a.ID), n.own(cb, b.ID)
}

func (n *network) end(e cm.End) *engine.Conn {
	return n.e.NewLocalConn(e.Dev, e.Local.Addr().As4(), e.Peer.Addr().As4(), e.Local.Port(), e.Peer.Port())
}

// Packet is engine.Handler's.
func (n *network) Packet(dev int, f *wire.Frame, t *wire.TRP, body []byte) {
	n.m.Receive(&cm.Packet{Dev: dev, Link: f.Src, TRP: *t,
		Local: netip.AddrPortFrom(netip.AddrFrom4(f.DstIP), f.DstPort),
		Peer:  netip.AddrPortFrom(netip.AddrFrom4(f.SrcIP), f.SrcPort)}, body)
}

// Established is engine.Handler's.
func (n *network) Established(c *engine.Conn) { n.m.Established(IDOf(c)) }

// Closed is engine.Handler's.
func (n *network) Closed(c *engine.Conn, why engine.CloseReason) {
	reason := cm.EndOrderly
	if why == engine.CloseDead {
		reason = cm.EndSilent
	}
	n.m.Closed(IDOf(c), reason)
}
