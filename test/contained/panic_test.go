package contained_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"urdma/reason"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// TestMain runs the tests in a network namespace of their own.
func TestMain(m *testing.M) { os.Exit(enginetest.RunWithLo(m)) }

// bug is an observer that panics at the first event of a kind, in the midst of what the core does.
type bug struct {
	at  uint32
	met int
}

var errBug = errors.New("a bug")

func (b *bug) Event(e *abi.TraceEvent) {
	if e.Kind == b.at && b.met == 0 {
		b.met++
		panic(errBug)
	}
}

func (b *bug) Failed(*qp.QP, *qp.Failure) {}

// exchange is two queue pairs, of which a sends a message to b.
type exchange struct {
	a, b      *enginetest.QP
	receiver  *enginetest.Client // of the message; nil: b's
	send      func()
	connected bool // by rdma_cm
}

// wire is a way to exchange messages.
type wire struct {
	opt   enginetest.Options
	local bool
	open  func(w *enginetest.World, local bool) exchange
}

// wires are all carriers, and all types of queue pairs.
var wires = map[string]wire{
	"trp":                    {open: connected},
	"tcp":                    {opt: enginetest.Options{TCP: true}, open: connected},
	"roce":                   {opt: enginetest.Options{RoCE: true}, open: connected},
	"samehost":               {local: true, open: connected},
	"between workers":        {opt: enginetest.Options{Workers: true}, open: connected},
	"UD":                     {open: datagrams},
	"UD, roce":               {opt: enginetest.Options{RoCE: true}, open: datagrams},
	"UD, one urdmad":         {local: true, open: datagrams},
	"UD, between workers":    {opt: enginetest.Options{Workers: true}, open: datagrams},
	"UC":                     {open: unreliable},
	"UC, roce":               {opt: enginetest.Options{RoCE: true}, open: unreliable},
	"UC, one urdmad":         {local: true, open: unreliable},
	"raw":                    {open: raw},
	"raw, between workers":   {opt: enginetest.Options{Workers: true}, open: raw},
	"XRC":                    {open: shared},
	"XRC, roce":              {opt: enginetest.Options{RoCE: true}, open: shared},
	"XRC, one urdmad":        {local: true, open: shared},
	"by number, one urdmad":  {local: true, open: byNumber},
	"by number, tcp":         {opt: enginetest.Options{TCP: true}, open: byNumber},
	"by number, two workers": {opt: enginetest.Options{Workers: true}, open: byNumber},
}

// message returns an exchange with memory for a message of 600 bytes.
func message(a, b *enginetest.QP, wr abi.SQE) exchange {
	source, sink := a.Client.Register(600, enginetest.ReadWrite), b.Client.Register(1000, enginetest.ReadWrite)
	return exchange{a: a, b: b, send: func() {
		b.PostRecv(1, sink.SGE(0, 1000))
		a.Post(wr, source.SGE(0, 600))
	}}
}

func connected(w *enginetest.World, local bool) exchange {
	a, b := w.Pair(local, nil)
	x := message(a, b, enginetest.Send(1))
	x.connected = true
	return x
}

// hosts returns the host of each queue pair.
func hosts(w *enginetest.World, local bool) (a, b *enginetest.Host) {
	if local {
		return w.A, w.A
	}
	return w.A, w.B
}

func byNumber(w *enginetest.World, local bool) exchange {
	p := enginetest.ConnectedPairIn(w, local, 2)
	p.Exchange(100)
	return message(p.QA, p.QB, enginetest.Send(1))
}

func datagrams(w *enginetest.World, local bool) exchange {
	ha, hb := hosts(w, local)
	a, b := ha.NewClient().NewDatagramQP(enginetest.QKey), hb.NewClient().NewDatagramQP(enginetest.QKey)
	return message(a, b, enginetest.To(enginetest.Send(1), hb.Addr, b.Q.QPN, enginetest.QKey))
}

func unreliable(w *enginetest.World, local bool) exchange {
	ha, hb := hosts(w, local)
	a, b := ha.NewClient().NewUC(), hb.NewClient().NewUC()
	a.ToRTR(b, 7)
	b.ToRTR(a, 9)
	a.ToRTS(9)
	b.ToRTS(7)
	return message(a, b, enginetest.Send(1))
}

func raw(w *enginetest.World, local bool) exchange {
	w.OpenRaw(abi.RawNonIP)
	ha, hb := hosts(w, local)
	a, b := ha.NewClient().NewRaw(), hb.NewClient().NewRaw()
	b.Flow(abi.CreateFlowRequest{})
	source, sink := a.Client.Register(600, enginetest.ReadWrite), b.Client.Register(1000, enginetest.ReadWrite)
	to, from := hb.Engine.Interface(0).MAC(), ha.Engine.Interface(0).MAC()
	copy(source.Bytes, append(append(to[:], from[:]...), 0x88, 0xb5))
	return exchange{a: a, b: b, send: func() {
		b.PostRecv(1, sink.SGE(0, 1000))
		a.Post(enginetest.Send(1), source.SGE(0, 600))
	}}
}

func shared(w *enginetest.World, local bool) exchange {
	ha, hb := hosts(w, local)
	domain, receiver := qp.NewDomain(), hb.NewClient()
	queue := receiver.NewNamed(domain, 16, receiver.NewCQ(64))
	a, b := ha.NewClient().NewInitiator(), hb.NewClient().NewTarget(domain)
	enginetest.Join(a, b, 4)
	source, sink := a.Client.Register(600, enginetest.ReadWrite), receiver.Register(1000, enginetest.ReadWrite)
	return exchange{a: a, b: b, receiver: receiver, send: func() {
		queue.Post(1, sink.SGE(0, 1000))
		a.Post(enginetest.SendTo(1, queue), source.SGE(0, 600))
	}}
}

// begin returns a world with an exchange, and traffic of others, whose log is to.
func (v wire) begin(t *testing.T, to slog.Handler) (x exchange, others func()) {
	if v.opt.TCP && !enginetest.HasLo() {
		t.Skip("no network namespace")
	}
	v.opt.Seed, v.opt.Panics, v.opt.Log = 5, 1, to
	w := enginetest.New(t, v.opt)
	x = v.open(w, v.local)
	c, d := w.Pair(v.local, nil)
	return x, func() { w.NewTraffic(c, d, enginetest.Load{Ops: 50, MaxSize: 20000}).Run(5 * time.Second) }
}

// ends verifies that a panic has ended victim's client and no other, with a report of that in the log. The others'
// traffic has gone on, and goes on.
func (x *exchange) ends(t *testing.T, victim *enginetest.QP, log string, others func()) {
	t.Helper()
	c := victim.Client
	if n := c.Host.Engine.Stats.Panics; n != 1 || len(c.Faults) != 1 {
		t.Fatalf("%d panics contained; the client was reported %d times", n, len(c.Faults))
	}
	if victim.Q.State() != abi.QPSErr || victim.Q.Why() != reason.Bug {
		t.Errorf("the queue pair is in state %d, because of %v", victim.Q.State(), victim.Q.Why())
	}
	peer := x.a
	if victim == x.a {
		peer = x.b
	}
	if n := len(peer.Client.Faults); n > 0 {
		t.Errorf("the peer was reported %d times", n)
	}
	if x.receiver != nil && len(x.receiver.Faults) > 0 {
		t.Error("the receiver in the XRC domain was reported")
	}
	for _, word := range []string{"panic", "stack", "please report"} {
		if !strings.Contains(log, word) {
			t.Errorf("the log has no %q: %s", word, log)
		}
	}
	c.Remove(victim)
	if x.connected {
		peer.Client.Event(abi.CMDisconnected, 10*time.Second)
	}
	others()
}

// TestPanic: a panic while a client's queue pair is served, on each wire and at each side, ends that client and no
// other; its peer learns that the connection ended.
func TestPanic(t *testing.T) {
	places := map[string]struct {
		kind   uint32
		passes bool // on the passive side
	}{
		"post": {abi.TraceSend, false}, "completion": {abi.TraceCompletion, false},
		"receive": {abi.TraceReceive, true}, "placed": {abi.TracePlaced, true},
	}
	for name, v := range wires {
		for place, p := range places {
			t.Run(name+"/"+place, func(t *testing.T) {
				var log bytes.Buffer
				x, others := v.begin(t, slog.NewTextHandler(&log, nil))
				victim := x.a
				if p.passes {
					victim = x.b
				}
				bug := &bug{at: p.kind}
				c := victim.Client
				c.Host.Do(func() { c.E.Watch, c.E.WatchAll = bug, true })
				x.send()
				c.Host.World.Pass(time.Millisecond)
				others()
				if bug.met != 1 {
					t.Fatalf("%d panics", bug.met)
				}
				if v.local { // the sender's turn does it all
					victim = x.a
				}
				x.ends(t, victim, log.String(), others)
				for _, word := range []string{errBug.Error(), "panic_test.go"} {
					if !strings.Contains(log.String(), word) {
						t.Errorf("the log has no %q: %s", word, log.String())
					}
				}
			})
		}
	}
}

// mending is a log whose first message mends what is broken.
type mending struct {
	slog.Handler
	mend func()
}

func (m *mending) Handle(ctx context.Context, r slog.Record) error {
	if m.mend != nil {
		m.mend()
		m.mend = nil
	}
	return m.Handler.Handle(ctx, r)
}

// TestPanicInCarrier: a carrier has lost what it points to, which it notices in its own code. It has it again when the
// panic is logged, so that the client can be ended.
func TestPanicInCarrier(t *testing.T) {
	for name, v := range wires {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			m := &mending{Handler: slog.NewTextHandler(&log, nil)}
			x, others := v.begin(t, m)
			m.mend = breakCarrier(x.a.Q.Carrier())
			x.send()
			x.a.Client.Host.World.Pass(time.Millisecond)
			others()
			x.ends(t, x.a, log.String(), others)
			if !strings.Contains(log.String(), "nil pointer dereference") {
				t.Errorf("the log has another panic: %s", log.String())
			}
		})
	}
}

// TestPanicOfAll: a panic that does not concern one client alone is passed on, and so ends the process.
func TestPanicOfAll(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 5})
	w.Pair(false, nil)
	defer func() {
		if r := recover(); r != errBug { //nolint:errorlint // the very value
			t.Errorf("recovered %v", r)
		}
		if n := w.A.Engine.Stats.Panics; n != 0 {
			t.Errorf("%d panics were contained", n)
		}
	}()
	w.A.Engine.Do(func() { panic(errBug) })
	w.Turn()
	t.Error("the turn went on")
}
