package enginetest

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/connect"
	"urdma/urdmad/core/handshake"
	"urdma/verbs/abi"
	"urdma/wire"
)

// Injected are frames that come before the next turn.
type Injected struct {
	w      *World
	frames [][]byte
	from   []*linked.Port
}

// NewInjected returns one; the world's Intrude is its own.
func NewInjected(w *World) *Injected {
	in := &Injected{w: w}
	w.Intrude = func() {
		for i, frame := range in.frames {
			in.from[i].Inject(frame)
		}
		in.frames, in.from = in.frames[:0], in.from[:0]
	}
	return in
}

// Inject has a frame come before the next turn, from the host that does not have the address that it is for.
func (in *Injected) Inject(frame []byte) {
	by, to := in.w.A.Port, frame[wire.EthernetLen+16:][:4]
	if in.w.opt.IPv6 {
		to = frame[wire.EthernetLen+24:][:16]
	}
	if bytes.Equal(to, in.w.A.Addr.AsSlice()) {
		by = in.w.B.Port
	}
	in.frames, in.from = append(in.frames, frame), append(in.from, by)
}

// Managed is programs that do all that rdma_cm can do, and a pair of queue pairs that nobody changes anything for.
// A's program connects, sends a message and disconnects; is rejected; and asks for a queue pair of type UD.
type Managed struct {
	*World
	*Injected
	a, b, service *Client
	witness       *NumberPair
	last          map[*cm.ID]cm.EventKind
	// What the program of A was told, by what it had asked for, and whether its message has arrived.
	Connected, Rejected, Answered, Sent bool
}

// NewManaged returns one.
func NewManaged(t *testing.T, o Options) *Managed {
	o.Seed, o.NoCapture, o.ConnectTimeout = 78, true, time.Second
	w := New(t, o)
	m := &Managed{World: w, Injected: NewInjected(w), a: w.A.NewClient(), b: w.B.NewClient(), service: w.B.NewClient(),
		witness: ConnectedPairIn(w, false, 2), last: map[*cm.ID]cm.EventKind{}}
	m.witness.Exchange(100)
	return m
}

// Live has the programs handle their events for some time: B's accepts every request but those that say "no", and
// ended connections are destroyed.
func (m *Managed) Live(d time.Duration) {
	for end := m.Now() + clock.Time(d); m.Now() < end; m.Pass(5 * time.Millisecond) {
		for _, c := range []*Client{m.a, m.b, m.service} {
			for ev, ok := c.Next(); ok; ev, ok = c.Next() {
				m.order(&ev)
				m.event(c, &ev)
			}
		}
	}
}

// order verifies that an id gets one answer, and that only what was established is disconnected.
func (m *Managed) order(ev *cm.Event) {
	m.T.Helper()
	if ev.Kind == cm.EventConnectRequest {
		return
	}
	last, answered := m.last[ev.ID]
	if answered && (last != cm.EventEstablished || ev.Kind != cm.EventDisconnected) ||
		!answered && ev.Kind == cm.EventDisconnected {
		m.T.Errorf("%v comes after %v (%t)", ev.Kind, last, answered)
	}
	m.last[ev.ID] = ev.Kind
}

func (m *Managed) event(c *Client, ev *cm.Event) {
	private := strings.TrimRight(string(ev.Param.PrivateData), "\x00") // InfiniBand's messages have a fixed length
	switch ev.Kind {
	case cm.EventConnectRequest:
		m.request(c, ev.Child, private)
	case cm.EventEstablished:
		m.Connected = m.Connected || private == "welcome"
		m.Answered = m.Answered || private == "here" && ev.Param.QPN == 77 && ev.Param.QKey == 7
	case cm.EventRejected:
		m.Rejected = m.Rejected || private == "never" && ev.Reason == handshake.ByConsumer
		c.Destroy(ev.ID)
	case cm.EventDisconnected, cm.EventConnectError, cm.EventUnreachable:
		c.Destroy(ev.ID)
	}
}

func (m *Managed) request(c *Client, child *cm.ID, private string) {
	answer := Param(4, "welcome")
	switch {
	case c == m.service:
		answer.QPN, answer.QKey, answer.PrivateData = 77, 7, []byte("here")
		c.Host.Do(func() { _ = c.Host.CM.Accept(child, nil, answer) })
		c.Destroy(child)
	case private == "no":
		c.Host.Do(func() { _ = c.Host.CM.Reject(child, []byte("never")) })
		c.Destroy(child)
	default:
		q := c.NewQP(nil)
		q.PostRecv(1, c.Register(64, abi.AccessLocalWrite).SGE(0, 64))
		c.Host.Do(func() { _ = c.Host.CM.Accept(child, connect.QueuePair(q.Q), answer) })
	}
}

// Run has all happen. Nothing is left of it.
func (m *Managed) Run() {
	m.T.Helper()
	listeners := []*cm.ID{m.b.Listen(7000, 4), m.service.Listen(7001, 4)}
	listeners[1].Datagrams = true
	a := m.a.NewQP(nil)
	id, refused, asker := m.a.Resolve(m.B.Addr, 7000), m.a.Resolve(m.B.Addr, 7000), m.a.Resolve(m.B.Addr, 7001)
	asker.Datagrams = true
	m.a.Connect(id, a, Param(4, "hello"))
	m.a.Connect(refused, m.a.NewQP(nil), Param(4, "no"))
	m.A.Do(func() { _ = m.A.CM.Connect(asker, nil, &cm.Param{PrivateData: []byte("who")}) })
	m.Live(100 * time.Millisecond)
	if a.Q.State() == abi.QPSRTS {
		a.Post(Send(1), m.a.Register(64, 0).SGE(0, 64))
	}
	m.Live(100 * time.Millisecond)
	m.A.Do(func() { _ = m.A.CM.Disconnect(id) })
	m.Live(2 * time.Second)
	for _, e := range a.Send.Poll() {
		m.Sent = m.Sent || e.Status == abi.StatusSuccess
	}
	for _, one := range []*cm.ID{id, refused, asker} {
		m.a.Destroy(one)
	}
	m.Live(time.Second)
	for _, l := range listeners {
		l.Owner.(*Client).Destroy(l)
	}
}

// Well reports whether all has gone well.
func (m *Managed) Well() bool { return m.Connected && m.Rejected && m.Answered && m.Sent }

// End ends the programs: nothing that their peers had them keep is left, and the witness goes on.
func (m *Managed) End() {
	m.T.Helper()
	m.SetPath(linked.Path{})
	m.witness.Exchange(3000)
	m.witness.QA.Destroy()
	m.witness.QB.Destroy()
	m.a.Remove()
	m.b.Remove()
	m.service.Remove()
	m.Pass(30 * time.Second)
	for _, h := range []*Host{m.A, m.B} {
		if n := h.CM.Len(); n > 0 {
			m.T.Errorf("host %s: %d ids are left", h.Name, n)
		}
	}
	m.CheckQuiet()
}
