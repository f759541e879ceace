package roce

import (
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/handshake"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/wire"
	"urdma/wire/ibcm"
	"urdma/wire/roce"
)

// This file sets up connections of rdma_cm (InfiniBand vol. 1): by a request, a reply and an
// acknowledgement of the reply. The connection manager repeats requests and replies: it calls Send again
// until there is an answer.

// Handler is the manager of rdma_cm connections. It is called on the worker's thread.
type Handler interface {
	qp.Manager
	// AskedFor: a peer requests a connection; Start and a reply, a reject, or Release answers it.
	AskedFor(c *Conn, m *handshake.Message)
	// Replied: the peer has accepted or rejected our request; Start or Release follows,
	// unless it is a reject. Pending, when a request is repeated, says that the peer's host has it.
	Replied(c *qp.Connection, m *handshake.Message)
	// ServiceArrived: a peer has sent a SIDR_REQ or SIDR_REP; Stack.SendService sends both.
	ServiceArrived(m *handshake.Message)
}

// shakeState is the state of the setup of an rdma_cm connection.
type shakeState uint8

const (
	opening       shakeState = iota // active: no request sent yet
	requesting                      // active: waiting for the answer
	replied                         // active: accepted, waiting for Start
	requested                       // passive: waiting for the program's answer
	accepted                        // passive: accepted, no message from the peer since
	established                     // data flows
	disconnecting                   // waiting for the answer to our DREQ
	rejected                        // passive: kept to answer repeated requests
	over
)

// setup is the state that a connection of rdma_cm has in addition to that of one by number.
type setup struct {
	state         shakeState
	local, remote uint32 // communication IDs
	tid           uint64
	service       uint16
	theirs        ibcm.Message // the peer's request or reply
	ours          ibcm.Message // our message, which may be repeated
	asked         bool         // active: the peer's host has said that its program has not answered
	withdrawn     bool         // passive: the peer has withdrawn its request
	qpn           wire.QPN     // of our queue pair
	timer         *clock.Timer
	tries         int
	until         clock.Time // end of the time for drain
}

// requestKey identifies a connection by the peer's host and its communication ID, so that copies of a
// request are recognised; in peers it has the queue pair number instead of the ID. Networks at two ports
// may have hosts with the same address.
type requestKey struct {
	port *Port
	peer netip.Addr
	id   uint32
}

// SetHandler sets the connection manager; call it before the first packet.
func (s *Stack) SetHandler(h Handler) { s.handler = h }

// Open returns the active side of a connection between two port numbers of rdma_cm. Nothing is sent before
// Send.
func (s *Stack) Open(dev int, local, peer netip.AddrPort) *Conn {
	c := s.newConn(s.ports[dev], local, peer)
	c.shake.service = peer.Port()
	return c
}

func (s *Stack) newConn(p *Port, local, peer netip.AddrPort) *Conn {
	c := &Conn{s: s, port: p, shake: &setup{}}
	c.Dev, c.Local, c.Peer = p.If.Dev, local, peer
	c.timer, c.shake.timer = clock.NewTimer(c.ready), clock.NewTimer(c.tick)
	for c.shake.local == 0 || s.ids[c.shake.local] != nil || s.table.Elsewhere(c.shake.local) {
		c.shake.local = s.rand.Uint32()
	}
	c.shake.tid = uint64(s.rand.Uint32())<<32 | uint64(c.shake.local)
	c.psn = roce.PSN(s.rand.Uint32() & (1<<24 - 1))
	s.ids[c.shake.local] = c
	return c
}

// Send sends a request, a reply or a reject for queue pair q. Start has set the queue pair before a reply. Repeated
// requests and replies are the same as the first.
func (c *Conn) Send(m *handshake.Message, q *qp.QP) {
	switch m.Kind {
	case handshake.Request:
		c.ask(m, q)
	case handshake.Reply:
		c.accept(m)
	case handshake.Reject:
		c.reject(m.PrivateData, ibcm.Reason(m.Reason))
	}
}

// MaxPrivate has the greatest length of a message's private data.
var MaxPrivate = map[handshake.Kind]int{handshake.Request: ibcm.MaxPrivate, handshake.Reply: ibcm.MaxReply,
	handshake.Reject: ibcm.MaxReject, handshake.Resolve: ibcm.MaxServicePrivate, handshake.Resolved: ibcm.MaxServiceReply}

// acknowledgeTimeout is the time-out of rdma_cm connections: 134 ms; a retry counts after four times as
// long. peerTimeout is for peers that count after one time-out: 1.1 s, the same as between Linux hosts, so
// that both sides survive an outage of some seconds.
const (
	acknowledgeTimeout = 15
	peerTimeout        = 18
)

// tries is the number of retries.
const tries = 7

// ask sends the connection request, first or again. Both sides' packets have its traffic class.
func (c *Conn) ask(o *handshake.Message, q *qp.QP) {
	h := c.shake
	switch h.state {
	case opening:
		c.class = o.TrafficClass
		l, _ := o.Link.(netif.Link)
		c.reach(l)
		c.speak(transportOf(q))
		mtu := c.port.MaxMTU()
		private := make([]byte, ibcm.HeaderLen, ibcm.HeaderLen+len(o.PrivateData))
		(&ibcm.Addresses{Src: c.Local, Dst: c.Peer.Addr()}).Put(private)
		c.mtu = uint32(MTUs[mtu-1])
		h.ours = ibcm.Message{Kind: ibcm.REQ, TID: h.tid, Local: h.local, QPN: wire.QPN(q.QPN), PSN: c.psn,
			Responder: clamp8(o.IRD), Initiator: clamp8(o.ORD),
			RNRRetry: o.RNRRetry, SRQ: q.RQ.Shared() != nil, GUID: c.port.guid(), Service: ibcm.TCPService(h.service),
			Transport: transports[c.transport], PKey: roce.DefaultPKey,
			PathMTU: uint8(mtu), Retries: tries, AckTimeout: peerTimeout, Src: c.Local.Addr().As16(), Dst: c.Peer.Addr().As16(),
			TrafficClass: o.TrafficClass, HopLimit: 64,
			Private: append(private, o.PrivateData...)}
		h.state = requesting
	case requesting:
		if h.asked { // since the last request; a host that has gone says nothing to the next one
			h.asked = false
			c.s.handler.Replied(&c.Connection, &handshake.Message{Kind: handshake.Pending})
		}
	default:
		return
	}
	c.manage(&h.ours)
}

// transports has the transports as numbered in requests.
var transports = map[roce.Opcode]uint8{roce.RC: 0, roce.XRC: ibcm.XRC}

func clamp8(n uint16) uint8 { return uint8(min(n, 255)) }

// accept answers the request, first or again.
func (c *Conn) accept(o *handshake.Message) {
	h := c.shake
	switch {
	case h.state == requested && c.live():
		h.ours = ibcm.Message{Kind: ibcm.REP, TID: h.theirs.TID, Local: h.local, Remote: h.remote, QPN: wire.QPN(c.QP.QPN),
			PSN:       c.psn,
			Responder: clamp8(o.IRD), Initiator: clamp8(o.ORD), RNRRetry: o.RNRRetry, SRQ: c.QP.RQ.Shared() != nil,
			GUID: c.port.guid(), Private: o.PrivateData}
		if c.transport == roce.XRC {
			h.ours.QPN, h.ours.Target = 0, h.ours.QPN
		}
		h.state = accepted
		if h.withdrawn {
			c.s.clock.Soon(func() { c.end(qp.CloseRemote) })
			return
		}
	case h.state == accepted:
	default:
		return
	}
	c.manage(&h.ours)
}

// rejectTime is how long a reject is repeated to a peer that repeats its request; maxRejected bounds such
// rejects.
const (
	rejectTime  = 10 * clock.Second
	maxRejected = 4096
)

// reject refuses the request, with private data of at most ibcm.MaxReject bytes.
func (c *Conn) reject(private []byte, why ibcm.Reason) {
	h := c.shake
	if h.state != requested {
		return
	}
	h.ours = ibcm.Message{Kind: ibcm.REJ, TID: h.theirs.TID, Local: h.local, Remote: h.remote, Reason: why,
		Private: private}
	h.state = rejected
	c.manage(&h.ours)
	c.s.rejected++
	if c.s.rejected > maxRejected {
		c.tick()
		return
	}
	c.s.clock.Set(h.timer, c.now()+rejectTime)
}

// Start opens the connection for data and moves the queue pair to RTS.
func (c *Conn) Start(q *qp.QP) {
	h := c.shake
	if !q.Connectable() || h.state != replied && h.state != requested || transportOf(q) != c.transport {
		c.end(qp.CloseLocal)
		return
	}
	a := &q.Attr
	c.QP, c.peer, h.qpn = q, h.theirs.QPN, wire.QPN(q.QPN)
	c.path.SetSource(roce.SourcePort(c.peer))
	c.serve(int(c.IRD), c.psn)
	a.RNRRetry = uint32(h.theirs.RNRRetry)
	if a.MinRNRTimer == 0 {
		a.MinRNRTimer = connectedRNRTimer
	}
	if a.Timeout == 0 {
		a.Timeout, a.RetryCnt = acknowledgeTimeout, tries
	}
	a.SQPSN, a.RQPSN, a.DestQPNum = uint32(h.theirs.PSN), uint32(c.psn), uint32(c.peer)
	a.MaxRdAtomic = uint32(c.ORD)
	c.begin()
	c.s.conns[wire.QPN(q.QPN)] = c
	if h.state == replied {
		h.state = established
		c.manage(c.use())
		c.supersede()
	}
	q.Attach(c)
}

// connectedRNRTimer is the min_rnr_timer of an rdma_cm connection whose program has set none: 0.64 ms; the
// value 0 would mean 655 ms.
const connectedRNRTimer = 12

func (c *Conn) use() *ibcm.Message {
	return &ibcm.Message{Kind: ibcm.RTU, TID: c.shake.theirs.TID, Local: c.shake.local, Remote: c.shake.remote}
}

// waits reports whether the peer may not know yet that the connection is established.
func (c *Conn) waits() bool { return c.shake != nil && c.shake.state < established }

// used handles the peer's RTU, or its first request, which arrived by a link.
func (c *Conn) used(l netif.Link) {
	if !c.open {
		c.reach(l)
	}
	c.known()
}

// known records that the peer knows that the connection is established.
func (c *Conn) known() {
	if h := c.shake; h != nil && h.state == accepted {
		h.state = established
		c.supersede()
		c.s.handler.Established(&c.Connection)
		c.ready()
	}
}

// supersede ends the peer's queue pair's previous connection, which is stale, for example because the
// peer's machine was switched off (InfiniBand vol. 1). The peer has answered a message that a stranger
// can't see, so its address is proven; a request alone is no proof.
func (c *Conn) supersede() {
	key := requestKey{c.port, c.Peer.Addr(), uint32(c.peer)}
	if old := c.s.peers[key]; old != nil {
		c.s.clock.Soon(func() { old.end(qp.CloseRemote) })
	}
	c.s.peers[key] = c
}
