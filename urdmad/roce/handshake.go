package roce

import (
	"net/netip"

	"urdma/urdmad/clock"
	"urdma/urdmad/netif"
	"urdma/urdmad/qp"
	"urdma/wire"
	"urdma/wire/ibcm"
	"urdma/wire/roce"
)

// This file sets up connections of rdma_cm (InfiniBand vol. 1): a request, a
// reply and an acknowledgement of that. Requests and replies are repeated by the manager of
// connections, which calls Request and Accept again until it hears of an answer.

// Handler manages connections of rdma_cm. Calls come on the worker's thread.
type Handler interface {
	qp.Manager
	// AskedFor: a peer asks for a connection; Start and Accept, Reject or Release answer.
	AskedFor(c *Conn, m *ibcm.Message, private []byte)
	// Answered: the peer has accepted or rejected our request; Start or Release follows,
	// unless it is a reject.
	Answered(c *Conn, m *ibcm.Message)
	// Asked: a peer asks for a queue pair of type UD, or answers; Stack.Say asks and answers.
	Asked(q *Question)
}

// stage is how far a connection of rdma_cm has come.
type stage uint8

const (
	opening       stage = iota // active: not asked for yet
	requesting                 // active: the answer is to come
	replied                    // active: accepted, Start is to come
	requested                  // passive: the program is to answer
	accepted                   // passive: the peer has said nothing since
	established                // data flows
	disconnecting              // our DREQ is to be answered
	rejected                   // passive: kept for requests that are repeated
	over
)

// handshake is what a connection of rdma_cm has beside one by number.
type handshake struct {
	stage         stage
	local, remote uint32 // communication IDs
	tid           uint64
	service       uint16
	theirs        ibcm.Message // the peer's request or reply
	ours          ibcm.Message // what is repeated
	asked         bool         // active: the peer's host has the request
	withdrawn     bool         // passive: the peer has given its request up
	qpn           wire.QPN     // of our queue pair
	timer         *clock.Timer
	tries         int
	until         clock.Time // of drain
}

// requestKey recognises another copy of a request by its communication ID. peers has queue pair
// numbers in its place.
type requestKey struct {
	peer netip.Addr
	id   uint32
}

// SetHandler names the manager of connections; before the first packet.
func (s *Stack) SetHandler(h Handler) { s.handler = h }

// Open returns the active side of a connection from a port number of rdma_cm to another,
// which is nothing but an intention until Request.
func (s *Stack) Open(dev int, local, peer netip.AddrPort) *Conn {
	c := s.newConn(s.ports[dev], local, peer)
	c.shake.service = peer.Port()
	return c
}

func (s *Stack) newConn(p *Port, local, peer netip.AddrPort) *Conn {
	c := &Conn{s: s, port: p, shake: &handshake{}}
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

// Offer is what our side brings to a connection.
type Offer struct {
	QP          *qp.QP
	IRD, ORD    uint16 // Reads we serve at once, Reads we want to have open
	RNRRetry    uint8  // how often the peer is to try for a receive of ours
	PrivateData []byte
	// TrafficClass is that of both sides' packets; who accepts has the one that was asked for.
	TrafficClass uint8
}

// acknowledgeTimeout is the time-out of connections of rdma_cm: 134 ms, of which four times
// as much counts as a try. peerTimeout is that of peers that don't count so: 1.1 s, as
// between Linux's, so that either side bears an outage of some seconds.
const (
	acknowledgeTimeout = 15
	peerTimeout        = 18
)

// tries are how often it does.
const tries = 7

// Request asks for the connection, first or again, by a link.
func (c *Conn) Request(o Offer, l netif.Link) {
	h := c.shake
	switch h.stage {
	case opening:
		c.class = o.TrafficClass
		c.reach(l)
		c.speak(transportOf(o.QP))
		mtu := c.port.MaxMTU()
		private := make([]byte, ibcm.HeaderLen, ibcm.HeaderLen+len(o.PrivateData))
		(&ibcm.Addresses{Src: c.Local, Dst: c.Peer.Addr()}).Put(private)
		c.mtu = uint32(MTUs[mtu-1])
		h.ours = ibcm.Message{Kind: ibcm.REQ, TID: h.tid, Local: h.local, QPN: wire.QPN(o.QP.QPN), PSN: c.psn, Responder: clamp8(o.IRD), Initiator: clamp8(o.ORD),
			RNRRetry: o.RNRRetry, SRQ: o.QP.RQ.Shared() != nil, GUID: c.port.guid(), Service: ibcm.TCPService(h.service), Transport: transports[c.transport], PKey: roce.DefaultPKey,
			PathMTU: uint8(mtu), Retries: tries, AckTimeout: peerTimeout, Src: c.Local.Addr().As16(), Dst: c.Peer.Addr().As16(), TrafficClass: o.TrafficClass, HopLimit: 64,
			Private: append(private, o.PrivateData...)}
		h.stage = requesting
	case requesting:
	default:
		return
	}
	c.manage(&h.ours)
}

// transports are those of packets as requests have them.
var transports = map[roce.Opcode]uint8{roce.RC: 0, roce.XRC: ibcm.XRC}

func clamp8(n uint16) uint8 { return uint8(min(n, 255)) }

// Asked reports whether the peer's host has the request and its program is to answer.
func (c *Conn) Asked() bool { return c.shake.stage == requesting && c.shake.asked }

// Accept answers the request, first or again; Start has named the queue pair.
func (c *Conn) Accept(o Offer) {
	h := c.shake
	switch {
	case h.stage == requested && c.live():
		h.ours = ibcm.Message{Kind: ibcm.REP, TID: h.theirs.TID, Local: h.local, Remote: h.remote, QPN: wire.QPN(c.QP.QPN), PSN: c.psn,
			Responder: clamp8(o.IRD), Initiator: clamp8(o.ORD), RNRRetry: o.RNRRetry, SRQ: c.QP.RQ.Shared() != nil, GUID: c.port.guid(), Private: o.PrivateData}
		if c.transport == roce.XRC {
			h.ours.QPN, h.ours.Target = 0, h.ours.QPN
		}
		h.stage = accepted
		if h.withdrawn {
			c.s.clock.Soon(func() { c.end(qp.CloseRemote) })
			return
		}
	case h.stage == accepted:
	default:
		return
	}
	c.manage(&h.ours)
}

// rejectTime is how long a reject is repeated to a peer that asks again, maxRejected how many are.
const (
	rejectTime  = 10 * clock.Second
	maxRejected = 4096
)

// Reject refuses the request, with private data of at most ibcm.MaxReject bytes.
func (c *Conn) Reject(private []byte, why ibcm.Reason) {
	h := c.shake
	if h.stage != requested {
		return
	}
	h.ours = ibcm.Message{Kind: ibcm.REJ, TID: h.theirs.TID, Local: h.local, Remote: h.remote, Reason: why, Private: private}
	h.stage = rejected
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
	if !q.Connectable() || h.stage != replied && h.stage != requested || transportOf(q) != c.transport {
		c.end(qp.CloseLocal)
		return
	}
	a := &q.Attr
	c.QP, c.peer, h.qpn = q, h.theirs.QPN, wire.QPN(q.QPN)
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
	if h.stage == replied {
		h.stage = established
		c.manage(c.use())
		c.supersede()
	}
	q.Attach(c)
}

// connectedRNRTimer is the min_rnr_timer of a connection of rdma_cm whose program has set
// none: 0.64 ms, where 0 stands for 655 ms.
const connectedRNRTimer = 12

func (c *Conn) use() *ibcm.Message {
	return &ibcm.Message{Kind: ibcm.RTU, TID: c.shake.theirs.TID, Local: c.shake.local, Remote: c.shake.remote}
}

// waits reports whether the peer may not know yet that the connection stands.
func (c *Conn) waits() bool { return c.shake != nil && c.shake.stage < established }

// used: the peer's next request came by a link.
func (c *Conn) used(l netif.Link) {
	if !c.open {
		c.reach(l)
	}
	c.known()
}

// known: the peer knows that the connection stands.
func (c *Conn) known() {
	if h := c.shake; h != nil && h.stage == accepted {
		h.stage = established
		c.supersede()
		c.s.handler.Established(&c.Connection)
		c.ready()
	}
}

// supersede ends the connection that the peer's queue pair had before: it is stale, as where the
// peer's machine was switched off (InfiniBand vol. 1). The peer has answered what a
// stranger can't see, so it is no one else. The request itself is not proof of that.
func (c *Conn) supersede() {
	key := requestKey{c.Peer.Addr(), uint32(c.peer)}
	if old := c.s.peers[key]; old != nil {
		c.s.clock.Soon(func() { old.end(qp.CloseRemote) })
	}
	c.s.peers[key] = c
}

const (
	drainTime  = clock.Second // longest that Disconnect waits for posted work
	drainCheck = clock.Millisecond
	dreqEvery  = 200 * clock.Millisecond
	dreqTries  = 5
)

// Disconnect ends the connection in good order: work already posted goes out (for a second
// at most), then the peer is told. One that was never started is given up.
func (c *Conn) Disconnect() {
	h := c.shake
	switch {
	case !c.live():
		c.Release()
	case h.until == 0:
		c.QP.Post() // its bell may not be answered yet
		h.until = c.now() + drainTime
		c.drain()
	}
}

func (c *Conn) drain() {
	h := c.shake
	if !c.live() {
		return
	}
	if c.now() >= h.until || c.QP.SQ.Empty() && c.req.Idle() && c.resp.Owed() == 0 {
		c.end(qp.CloseLocal)
		return
	}
	c.ready()
	c.s.clock.Set(h.timer, min(h.until, c.now()+drainCheck))
}

// Release gives up a connection that was never started, and tells the peer if it knows of it.
func (c *Conn) Release() {
	h := c.shake
	switch h.stage {
	case requesting:
		c.manage(&ibcm.Message{Kind: ibcm.REJ, TID: h.tid, Local: h.local, Refused: ibcm.RefusedNone, Reason: ibcm.TimedOut, GUID: c.port.guid()})
		c.forget()
	case replied:
		c.manage(&ibcm.Message{Kind: ibcm.REJ, TID: h.theirs.TID, Local: h.local, Remote: h.remote, Refused: ibcm.RefusedREP, Reason: ibcm.ConsumerDefined})
		c.forget()
	case opening:
		c.forget()
	case requested:
		if !c.live() {
			c.Reject(nil, ibcm.TimedOut)
		}
	}
}

// Abort ends a connection whose peer never answered.
func (c *Conn) Abort() { c.end(qp.CloseDead) }

// left tells the manager of connections of the end, and the peer unless it knows.
func (c *Conn) left(why qp.CloseReason) {
	h := c.shake
	c.s.handler.Closed(&c.Connection, why)
	switch {
	case h.stage == requested:
		c.Reject(nil, ibcm.NoResources)
		return
	case why == qp.CloseRemote:
		c.forget()
		return
	}
	h.stage = disconnecting
	h.ours = ibcm.Message{Kind: ibcm.DREQ, TID: h.tid, Local: h.local, Remote: h.remote, QPN: c.peer}
	c.tick()
}

// tick is the timer of a connection that waits for its end, or is rejected.
func (c *Conn) tick() {
	switch h := c.shake; h.stage {
	case disconnecting:
		if h.tries++; h.tries > dreqTries {
			c.forget()
			return
		}
		c.manage(&h.ours)
		c.s.clock.Set(h.timer, c.now()+dreqEvery)
	case rejected:
		c.s.rejected--
		c.forget()
	default:
		c.drain()
	}
}

// forget lets go of the connection's communication ID and its way.
func (c *Conn) forget() {
	h := c.shake
	h.stage = over
	c.s.clock.Set(h.timer, clock.Never)
	c.path.Leave()
	if c.s.ids[h.local] == c {
		delete(c.s.ids, h.local)
	}
	if key := (requestKey{c.Peer.Addr(), h.remote}); c.s.asked[key] == c {
		delete(c.s.asked, key)
	}
}

// messageArrived takes a management datagram.
func (p *Port) messageArrived(d *netif.Datagram, data []byte) (why string) {
	var b [ibcm.Len]byte // its sender may still change it
	var m ibcm.Message
	if err := m.Parse(b[:copy(b[:], data)]); err != nil {
		p.s.Stats.Malformed++
		return err.Error()
	}
	switch m.Kind {
	case ibcm.REQ:
		return p.requestArrived(d, &m)
	case ibcm.SIDRRequest:
		return p.asked(d, &m)
	case ibcm.SIDRReply:
		p.answered(d, &m)
		return ""
	}
	c := p.s.ids[m.Remote]
	if c == nil && m.Kind == ibcm.REJ && m.Reason == ibcm.TimedOut { // its sender may not know our ID
		c = p.s.asked[requestKey{d.Src.Addr(), m.Local}]
	}
	if c == nil || c.port != p || c.Peer.Addr() != d.Src.Addr() || c.shake.remote != 0 && c.shake.remote != m.Local {
		switch m.Kind {
		case ibcm.DREQ:
			p.answer(d, &ibcm.Message{Kind: ibcm.DREP, TID: m.TID, Local: m.Remote, Remote: m.Local})
		case ibcm.REP:
			p.answer(d, &ibcm.Message{Kind: ibcm.REJ, TID: m.TID, Local: m.Remote, Remote: m.Local, Refused: ibcm.RefusedREP, Reason: ibcm.InvalidCommID})
		}
		return "it is of no connection"
	}
	c.messageArrived(&m)
	return ""
}

func (c *Conn) messageArrived(m *ibcm.Message) {
	h := c.shake
	switch {
	case h.stage == requesting && m.TID != h.tid, h.stage != requesting && m.Kind == ibcm.REJ && m.TID != h.theirs.TID:
	case m.Kind == ibcm.MRA:
		h.asked = true
	case m.Kind == ibcm.REP && h.stage == requesting:
		if c.transport == roce.XRC {
			m.QPN = m.Target
		}
		h.theirs, h.remote, h.stage = *m, m.Local, replied
		c.s.handler.Answered(c, m)
	case m.Kind == ibcm.REP && h.stage == established:
		c.manage(c.use()) // the first was lost
	case m.Kind == ibcm.REJ && h.stage == requesting:
		c.forget()
		c.s.handler.Answered(c, m)
	case m.Kind == ibcm.REJ && h.stage == requested:
		h.withdrawn = true
	case m.Kind == ibcm.REJ && h.stage == accepted:
		c.end(qp.CloseRemote)
	case m.Kind == ibcm.RTU:
		c.known()
	case m.Kind == ibcm.LAP:
		c.manage(&ibcm.Message{Kind: ibcm.APR, TID: m.TID, Local: h.local, Remote: h.remote, Status: ibcm.AlternateUnsupported})
	case m.Kind == ibcm.DREQ && m.QPN == h.qpn:
		c.manage(&ibcm.Message{Kind: ibcm.DREP, TID: m.TID, Local: h.local, Remote: h.remote})
		if c.live() {
			c.end(qp.CloseRemote)
		} else if h.stage == disconnecting {
			c.forget()
		}
	case m.Kind == ibcm.DREP && h.stage == disconnecting:
		c.forget()
	}
}

// requestArrived takes a request for a connection.
func (p *Port) requestArrived(d *netif.Datagram, m *ibcm.Message) (why string) {
	s, key := p.s, requestKey{d.Src.Addr(), m.Local}
	if c := s.asked[key]; c != nil {
		c.askedAgain(m)
		return "asked again"
	}
	var a ibcm.Addresses
	service, ok := m.Service.TCPPort()
	switch {
	case !ok || a.Parse(m.Private) != nil || a.Src.Addr().Unmap() != d.Src.Addr():
		p.refuse(d, m, ibcm.InvalidService)
		return "no service of rdma_cm"
	case m.Transport != transports[roce.RC] && m.Transport != transports[roce.XRC]:
		p.refuse(d, m, ibcm.InvalidTransport)
		return "only reliable connections and those of XRC are supported"
	case m.PathMTU == 0 || uint32(m.PathMTU) > p.MaxMTU():
		p.refuse(d, m, ibcm.InvalidMTU)
		return "its path MTU is longer than our packets"
	case m.PKey&0x7fff != roce.DefaultPKey&0x7fff:
		p.refuse(d, m, ibcm.Unsupported)
		return "another partition's"
	}
	c := s.newConn(p, netip.AddrPortFrom(p.If.IP(), service), netip.AddrPortFrom(d.Src.Addr(), a.Src.Port()))
	h := c.shake
	h.stage, h.remote, h.theirs = requested, m.Local, *m
	h.theirs.Private = nil
	c.speak(roce.RC)
	if m.Transport == ibcm.XRC {
		c.speak(roce.XRC)
	}
	c.mtu = uint32(MTUs[m.PathMTU-1])
	c.class = m.TrafficClass
	c.reach(d.Link)
	s.asked[key] = c
	s.handler.AskedFor(c, m, append([]byte(nil), m.Private[ibcm.HeaderLen:]...))
	return ""
}

// askedAgain answers a request that came before.
func (c *Conn) askedAgain(m *ibcm.Message) {
	switch h := c.shake; h.stage {
	case requested:
		c.manage(&ibcm.Message{Kind: ibcm.MRA, TID: m.TID, Local: h.local, Remote: h.remote, Timeout: acceptTimeout})
	case accepted, rejected:
		c.manage(&h.ours)
	}
}

// acceptTimeout is how long a program may take to answer a request, as peers are told: 4.3
// seconds, and again at each further request.
const acceptTimeout = 20

func (p *Port) refuse(d *netif.Datagram, m *ibcm.Message, why ibcm.Reason) {
	p.answer(d, &ibcm.Message{Kind: ibcm.REJ, TID: m.TID, Remote: m.Local, Reason: why})
}

// manage sends a message to the peer; a full port loses it, as a network may.
func (c *Conn) manage(m *ibcm.Message) { c.port.manage(&c.path, m) }

// answer sends a message where a datagram came from.
func (p *Port) answer(d *netif.Datagram, m *ibcm.Message) {
	path := p.If.Path(d.Link, netip.AddrPortFrom(p.If.IP(), roce.Port), netip.AddrPortFrom(d.Src.Addr(), roce.Port))
	p.manage(&path, m)
}

func (p *Port) manage(path *netif.Path, m *ibcm.Message) {
	frame := p.If.Alloc()
	if frame == nil {
		return
	}
	b := path.Payload(frame)
	h := roce.Header{Opcode: roce.UD | roce.SendOnly, PKey: roce.DefaultPKey, Dst: ibcm.QP, PSN: p.psn, QKey: ibcm.QKey, Src: ibcm.QP}
	p.psn = p.psn.Add(1)
	n := h.Put(b)
	if err := m.Put(b[n:]); err != nil { // the manager of connections has bounded private data
		p.s.log.Error("management datagram not sent", "error", err)
		return
	}
	path.Send(frame, n+ibcm.Len+roce.ICRCLen)
}

// guid is the port's as a channel adapter: its Ethernet address (EUI-64).
func (p *Port) guid() uint64 {
	m := p.If.MAC()
	return uint64(m[0]^2)<<56 | uint64(m[1])<<48 | uint64(m[2])<<40 | 0xfffe<<24 | uint64(m[3])<<16 | uint64(m[4])<<8 | uint64(m[5])
}
