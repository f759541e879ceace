package connect

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"urdma/reason"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/handshake"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/qpconnect"
	"urdma/urdmad/core/roce"
	"urdma/urdmad/core/samehost"
	"urdma/urdmad/core/trp"
	"urdma/verbs/abi"
	"urdma/verbs/personality"
)

// Numbers changes queue pairs as ibv_modify_qp(3) requests, and connects queue pairs by number when they
// enter RTR.
type Numbers struct {
	n     *network
	m     *qpconnect.Manager
	addrs []netip.Addr
}

// Renumber applies device dev's new address. Both managers share the list of addresses.
func (x *Numbers) Renumber(dev int, a netip.Addr) { x.addrs[dev] = a }

// Modify changes a queue pair of a device. If it returns an error, nothing has changed.
func (x *Numbers) Modify(q *qp.QP, dev int, mask uint32, a *abi.QPAttr) error {
	switch q.Type {
	case abi.QPTypeUD:
		return x.n.e.Datagrams.Modify(q, dev, mask, a)
	case abi.QPTypeRawPacket:
		return x.n.e.Raw.Modify(q, dev, mask, a)
	}
	if q.Follows(mask, a) {
		return q.Follow(mask, a)
	}
	if err := q.CheckModify(mask, a); err != nil {
		return err
	}
	var peer netip.Addr
	if mask&abi.QPMaskAV != 0 {
		var byLID, ok bool
		if peer, byLID, ok = x.peer(dev, a); !ok {
			return fmt.Errorf("%w: ah_attr names no peer: is_global %d, grh.dgid %v, dlid %#x; expected is_global 1 and the peer's GID, or its LID",
				qp.ErrAttribute, a.IsGlobal, netip.AddrFrom16(a.DGID), a.DLID)
		}
		if err := x.m.Check(dev, peer); err != nil && !byLID { // InfiniBand's adapters do not look for a LID
			return err
		}
	}
	if q.Type != abi.QPTypeUC {
		dev, peer = x.meeting(dev, peer, a.DestQPNum)
	}
	if mask&abi.QPMaskPathMTU != 0 && x.n.e.SpeaksRoCE(dev) && a.PathMTU > x.n.e.RoCE.MaxMTU(dev) {
		return fmt.Errorf("%w: path_mtu is %d, the port's packets have room for %d", qp.ErrAttribute, a.PathMTU,
			x.n.e.RoCE.MaxMTU(dev))
	}
	if q.Type == abi.QPTypeUC {
		return x.n.e.Datagrams.ModifyUC(q, dev, mask, a, peer)
	}
	before := q.State()
	if err := q.Modify(mask, a); err != nil {
		return err
	}
	switch now := q.State(); {
	case now == abi.QPSRTR && before != now && x.n.e.SpeaksRoCE(dev) &&
		(!slices.Contains(x.addrs, peer) || x.n.e.QPs.Elsewhere(a.DestQPNum)):
		x.n.e.RoCE.Serve(q, dev, peer)
	case now == abi.QPSRTR && before != now:
		x.start(q, dev, peer)
	case now == abi.QPSRTS:
		switch c := q.Carrier().(type) {
		case *trp.Conn:
			x.n.e.TRP.SetPatience(c)
		case *roce.Conn:
			x.n.e.RoCE.Changed(c, before == abi.QPSRTR)
		}
	}
	return nil
}

// meeting is the device and the address by which a queue pair meets another: those of its
// port and of the peer, unless both are ours, one speaks RoCEv2, and another worker has the
// peer. Then both meet on that port.
func (x *Numbers) meeting(dev int, peer netip.Addr, number uint32) (int, netip.Addr) {
	other := slices.Index(x.addrs, peer)
	if other < 0 || x.n.e.SpeaksRoCE(other) == x.n.e.SpeaksRoCE(dev) || !x.n.e.QPs.Elsewhere(number) {
		return dev, peer
	}
	if x.n.e.SpeaksRoCE(other) {
		dev = other
	}
	return dev, x.addrs[dev]
}

func (x *Numbers) start(q *qp.QP, dev int, peer netip.Addr) {
	a := &q.Attr
	x.m.Start(qpconnect.Params{QP: queuePair{q}, Dev: dev, IRD: uint16(a.MaxDestRdAtomic),
		MinRNRTimer: uint8(a.MinRNRTimer),
		PathMTU:     uint8(a.PathMTU), RQPSN: a.RQPSN, Peer: qpconnect.End{Addr: peer, QPN: a.DestQPNum}})
}

// Reach calls done once it is known whether a packet of a queue pair to which Modify will give these attributes would
// find its next hop, as the kernel resolves the destination of a RoCE adapter's queue pair before it enters RTR: at
// once, or when the next hop has answered or been silent for a second. What Modify refuses, a peer within this urdmad,
// and one that is named by its LID are not looked for.
func (x *Numbers) Reach(q *qp.QP, dev int, mask uint32, a *abi.QPAttr, done func(found bool)) {
	if mask&abi.QPMaskAV == 0 || q.Type == abi.QPTypeUD || q.Follows(mask, a) || q.CheckModify(mask, a) != nil {
		done(true)
		return
	}
	peer, byLID, ok := x.peer(dev, a)
	at := x.n.e.Interface(dev)
	hop, routed := at.NextHop(peer)
	if !ok || byLID || !routed || slices.Contains(x.addrs, peer) {
		done(true)
		return
	}
	at.Resolve(hop, func(_ netif.Link, found bool) { done(found) })
}

// peer returns the address of a path's destination, and whether the path has it by its LID (docs/WIRE.md chapter 9).
func (x *Numbers) peer(dev int, a *abi.QPAttr) (peer netip.Addr, byLID, ok bool) {
	gid := netip.AddrFrom16(a.DGID)
	if a.IsGlobal != 0 && gid.Is4In6() {
		return gid.Unmap(), false, true
	}
	if ip, ok := personality.OfLinkLocal(gid); ok && a.IsGlobal != 0 && x.addrs[dev].Is4() {
		return ip, false, true
	}
	if a.DLID >= personality.MinLID && a.DLID <= personality.MaxLID {
		peer := x.addrs[dev].As16()
		peer[14], peer[15] = byte(a.DLID>>8), byte(a.DLID)
		return netip.AddrFrom16(peer).Unmap(), true, true
	}
	return gid, false, a.IsGlobal != 0 && x.addrs[dev].Is6() && (gid.IsGlobalUnicast() || gid.IsLinkLocalUnicast())
}

// Pair returns the pair of a queue pair, or nil.
func (x *Numbers) Pair(q *qp.QP) *qpconnect.Pair { return x.m.Pair(q.QPN) }

// Stats returns the counters.
func (x *Numbers) Stats() qpconnect.Stats { return x.m.Stats }

// PairOf returns the pair of a connection by number; nil for other connections.
func PairOf(c *qp.Connection) *qpconnect.Pair {
	if c == nil {
		return nil
	}
	v, _ := c.Owner.(*qpconnect.Pair)
	return v
}

// Patience implements qpconnect.QueuePair.
func (q queuePair) Patience() clock.Time { return qp.RetryTime(&q.Attr) }

// Exhaust implements qpconnect.QueuePair.
func (q queuePair) Exhaust() {
	q.FailOldest(abi.StatusRetryExcErr, reason.Silent)
	q.Flush(reason.Silent)
	if c := q.Carrier(); c != nil {
		c.Failed()
	}
}

// PairQP returns a pair's queue pair.
func PairQP(v *qpconnect.Pair) *qp.QP { return v.QP.(queuePair).QP }

// numberNetwork implements qpconnect.Network; methods in common with cm.Network are those of network.
type numberNetwork struct{ *network }

func (n *numberNetwork) Random() uint32 { return n.e.TRP.Random() }

func (n *numberNetwork) Open(v *qpconnect.Pair) (qpconnect.Conn, error) {
	port, ok := n.m.FreePort(v.Dev)
	if !ok {
		return nil, syscall.EADDRNOTAVAIL
	}
	c, err := n.e.TRP.Open(v.Dev, port, netip.AddrPortFrom(v.Peer.Addr, qpconnect.UDPPort))
	if err != nil {
		return nil, err
	}
	c.Owner, c.ByNumber = v, true
	return &numberConn{c}, nil
}

func (n *numberNetwork) Join(a, b *qpconnect.Pair) {
	ca, cb := n.end(a), n.end(b)
	if a == b {
		cb = ca
	}
	samehost.Join(ca, cb)
	ca.Start(PairQP(a))
	if a != b {
		cb.Start(PairQP(b))
	}
}

// end returns a pair's end of a connection within this urdmad. Captures identify it by a port number.
func (n *numberNetwork) end(v *qpconnect.Pair) *samehost.Conn {
	at := func(e qpconnect.End) netip.AddrPort { return netip.AddrPortFrom(e.Addr, qpconnect.UDPPort) }
	c := n.e.SameHost.Open(v.Dev, at(v.Local), at(v.Peer))
	peer := n.numbers.m.Pair(v.Peer.QPN)
	c.Owner, c.ByNumber, c.IRD, c.ORD = v, true, v.IRD, peer.IRD
	c.PeerRNR, c.PeerMTU, c.PeerPSN = peer.MinRNRTimer, peer.PathMTU, peer.RQPSN
	return c
}

func (n *numberNetwork) Await(v *qpconnect.Pair) {
	q := PairQP(v)
	w := &Awaiting{v: v, m: n.numbers.m}
	w.Dev, w.ByNumber, w.QP, w.IRD, w.Owner = v.Dev, true, q, v.IRD, v
	w.ORD = uint16(q.Attr.MaxRdAtomic)
	w.Local, w.Peer = netip.AddrPortFrom(v.Local.Addr, 0), netip.AddrPortFrom(v.Peer.Addr, 0)
	n.e.QPs.Await(q, w)
}

// numberConn makes a TRP connection a qpconnect.Conn.
type numberConn struct{ *trp.Conn }

func (k *numberConn) Port() uint16   { return k.Local.Port() }
func (k *numberConn) Number() uint32 { return uint32(k.LocalISN) }
func (k *numberConn) Cookie() uint32 { return k.LocalCookie }

func (k *numberConn) Send(m *cm.Message, q cm.QueuePair) { k.SendMessage(m, QPOf(q)) }

func (k *numberConn) Start(s cm.Start, peer *handshake.ByNumber) {
	k.PeerRNR, k.PeerMTU, k.PeerPSN = peer.MinRNRTimer, peer.PathMTU, peer.RQPSN
	(&packetConn{k.Conn, side{nil, &k.Connection}}).Start(s)
}

// Awaiting is the carrier of a queue pair that has no connection by number yet.
type Awaiting struct {
	qp.Connection
	v *qpconnect.Pair
	m *qpconnect.Manager
}

// Transmit implements qp.Carrier: posted work waits.
func (w *Awaiting) Transmit() int {
	if w.QP.SQ.Outstanding() > 0 {
		w.m.Waiting(w.v)
	}
	return 0
}

// Failed implements qp.Carrier. A send may have failed that needs no peer: the others are flushed.
func (w *Awaiting) Failed() {
	w.QP.Flush(w.QP.Why())
	w.m.Stop(w.v)
}

// Faulted implements qp.Carrier.
func (w *Awaiting) Faulted() bool { return false }

// Detach implements qp.Carrier.
func (w *Awaiting) Detach() {
	w.m.Stop(w.v)
	w.QP.Detach()
}

// Serving implements qp.Carrier.
func (w *Awaiting) Serving() int { return 0 }
