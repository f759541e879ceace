package connect_test

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/connect"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

func both(t *testing.T, fn func(t *testing.T, local bool)) {
	t.Run("wire", func(t *testing.T) { fn(t, false) })
	t.Run("local", func(t *testing.T) { fn(t, true) })
}

// ends makes a client on host A and one on host B; with local, both are on A.
func ends(w *enginetest.World, local bool) (a, b *enginetest.Client) {
	if local {
		return w.A.NewClient(), w.A.NewClient()
	}
	return w.A.NewClient(), w.B.NewClient()
}

// dropFirst loses the first n packets of a TRP opcode from a port.
func dropFirst(op wire.TRPOp, n int) linked.Path {
	return linked.Path{Drop: func(_ uint64, frame []byte) bool {
		var f wire.Frame
		if f.Parse(frame, len(frame)) != nil || f.Proto != wire.ProtoUDP || f.Type != wire.EtherTypeIPv4 {
			return false
		}
		if wire.TRPOp(frame[f.PayloadOff+8]>>4) != op || n == 0 {
			return false
		}
		n--
		return true
	}}
}

func TestPrivateDataAndDepths(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 1})
		ca, cb := ends(w, local)
		a, b := ca.NewQP(nil), cb.NewQP(nil)
		cb.Listen(7000, 4)
		id := ca.Resolve(cb.Host.Addr, 7000)
		long := strings.Repeat("x", abi.MaxPrivate)
		p := enginetest.Param(5, long)
		p.InitiatorDepth = 3
		ca.Connect(id, a, p)
		ev := cb.Event(cm.EventConnectRequest, time.Second)
		if string(ev.Param.PrivateData) != long || ev.Param.ResponderResources != 3 || ev.Param.InitiatorDepth != 5 {
			t.Errorf("request: %d bytes, responder %d, initiator %d", len(ev.Param.PrivateData), ev.Param.ResponderResources,
				ev.Param.InitiatorDepth)
		}
		if ev.Param.QPN != a.Q.QPN || ev.Local.Port() != 7000 || ev.Peer.Addr() != ca.Host.Addr {
			t.Errorf("request: QPN %d, local %v, peer %v", ev.Param.QPN, ev.Local, ev.Peer)
		}
		answer := enginetest.Param(2, "ok")
		answer.InitiatorDepth = 200
		cb.Accept(ev.Child, b, answer)
		ev = ca.Event(cm.EventEstablished, time.Second)
		if string(ev.Param.PrivateData) != "ok" || ev.Param.QPN != b.Q.QPN {
			t.Errorf("established: %q, QPN %d, expected %d", ev.Param.PrivateData, ev.Param.QPN, b.Q.QPN)
		}
		cb.Event(cm.EventEstablished, time.Second)
		if c, d := a.Q.Connection(), b.Q.Connection(); c.ORD != 2 || c.IRD != 5 || d.IRD != 2 || d.ORD != 5 {
			t.Errorf("in force: a serves %d, opens %d; b serves %d, opens %d", c.IRD, c.ORD, d.IRD, d.ORD)
		}
		w.NewTraffic(a, b, enginetest.Load{Ops: 30, MaxSize: 5000}).Run(time.Second)
	})
}

func TestReject(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 2})
		ca, cb := ends(w, local)
		a := ca.NewQP(nil)
		cb.Listen(7000, 4)
		for _, how := range []string{"reject", "destroy"} {
			id := ca.Resolve(cb.Host.Addr, 7000)
			ca.Connect(id, a, enginetest.Param(1, "hi"))
			ev := cb.Event(cm.EventConnectRequest, time.Second)
			child := ev.Child
			if how == "destroy" {
				cb.Destroy(child)
			} else {
				cb.Host.Do(func() {
					if err := cb.Host.CM.Reject(child, []byte("no thanks")); err != nil {
						t.Error(err)
					}
				})
			}
			ev = ca.Event(cm.EventRejected, time.Second)
			if got := string(ev.Param.PrivateData); how == "reject" && got != "no thanks" || ev.Err != syscall.ECONNREFUSED {
				t.Errorf("%s: private data %q, %v", how, got, ev.Err)
			}
			ca.Destroy(id)
		}
		if !a.Q.Connectable() {
			t.Error("a rejected queue pair can't be connected again")
		}
	})
}

func TestNobodyListens(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 3})
		ca, cb := ends(w, local)
		id := ca.Resolve(cb.Host.Addr, 7000)
		ca.Connect(id, ca.NewQP(nil), enginetest.Param(1, ""))
		ca.Event(cm.EventRejected, time.Second)
	})
}

// TestLostHandshake: each message of the handshake may be lost several times and is repeated; one request causes one
// event.
func TestLostHandshake(t *testing.T) {
	cases := []struct {
		name      string
		op        wire.TRPOp
		fromA     bool
		reject    bool
		destroyed bool
	}{
		{"request", wire.OpRequest, true, false, false}, {"accept", wire.OpAccept, false, false, false},
		{"acknowledgement", wire.OpData, true, false, false}, {"reject", wire.OpReject, false, true, false},
		{"reject of a destroyed id", wire.OpReject, false, true, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := enginetest.New(t, enginetest.Options{Seed: 4})
			ca, cb := ends(w, false)
			a, b := ca.NewQP(nil), cb.NewQP(nil)
			cb.Listen(7000, 4)
			id := ca.Resolve(cb.Host.Addr, 7000)
			port := w.B.Port
			if c.fromA {
				port = w.A.Port
			}
			port.SetPath(dropFirst(c.op, 3))
			ca.Connect(id, a, enginetest.Param(1, ""))
			ev := cb.Event(cm.EventConnectRequest, 5*time.Second)
			if c.reject {
				cb.Host.Do(func() { _ = cb.Host.CM.Reject(ev.Child, []byte("no")) })
				if c.destroyed {
					cb.Destroy(ev.Child)
				}
				ev := ca.Event(cm.EventRejected, 5*time.Second)
				if string(ev.Param.PrivateData) != "no" {
					t.Errorf("private data %q", ev.Param.PrivateData)
				}
			} else {
				cb.Accept(ev.Child, b, enginetest.Param(1, ""))
				ca.Event(cm.EventEstablished, 5*time.Second)
				cb.Event(cm.EventEstablished, 5*time.Second)
				w.SetPath(linked.Path{})
				w.NewTraffic(a, b, enginetest.Load{Ops: 30, MaxSize: 5000}).Run(time.Second)
			}
			w.Pass(100 * time.Millisecond)
			ca.NoEvent()
			cb.NoEvent()
		})
	}
}

// TestSilence: unanswered handshakes end with UNREACHABLE, on both sides, after their time-outs.
func TestSilence(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 5, ConnectTimeout: 3 * time.Second})
	ca, cb := ends(w, false)
	a := ca.NewQP(nil)
	id := ca.Resolve(cb.Host.Addr, 7000)
	w.B.Stop()
	start := w.Now()
	ca.Connect(id, a, enginetest.Param(1, ""))
	ev := ca.Event(cm.EventUnreachable, 10*time.Second)
	if ev.Err != syscall.ETIMEDOUT {
		t.Errorf("%v", ev.Err)
	}
	if took := time.Duration(w.Now() - start); took < 2*time.Second || took > 5*time.Second {
		t.Errorf("given up after %v", took)
	}
	if !a.Q.Connectable() {
		t.Error("the queue pair can't be connected again")
	}
}

// TestAckTimeout: RDMA_OPTION_ID_ACK_TIMEOUT and retry_count determine when a silent peer's connection ends, and are
// attributes of the queue pair.
func TestAckTimeout(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 5, DeathTimeout: time.Minute})
	ca, cb := ends(w, false)
	a, b := ca.NewQP(nil), cb.NewQP(nil)
	cb.Listen(7000, 4)
	id := ca.Resolve(cb.Host.Addr, 7000)
	if err := w.A.CM.SetOption(id, cm.OptionAckTimeout, 14); err != nil {
		t.Fatal(err)
	}
	p := enginetest.Param(1, "")
	p.RetryCount = 3
	ca.Connect(id, a, p)
	cb.Accept(cb.Event(cm.EventConnectRequest, time.Second).Child, b, enginetest.Param(1, ""))
	ca.Event(cm.EventEstablished, time.Second)
	if a.Q.Attr.Timeout != 14 || a.Q.Attr.RetryCnt != 3 {
		t.Errorf("the queue pair has timeout %d, retry_cnt %d", a.Q.Attr.Timeout, a.Q.Attr.RetryCnt)
	}
	w.Pass(time.Second)
	w.B.Stop()
	start := w.Now()
	if ev := ca.Event(cm.EventDisconnected, 30*time.Second); ev.Err != syscall.ETIMEDOUT {
		t.Errorf("disconnected: %v", ev.Err)
	}
	if took := time.Duration(w.Now() - start); took < 500*time.Millisecond || took > 4*time.Second { // 4 × 67 ms × 4
		t.Errorf("after %v", took)
	}
}

func TestSilenceAfterAccept(t *testing.T) {
	for _, giveUp := range []time.Duration{2 * time.Second, 20 * time.Second} { // before and after the death time-out
		w := enginetest.New(t, enginetest.Options{Seed: 6, ConnectTimeout: giveUp, DeathTimeout: 4 * time.Second})
		ca, cb := ends(w, false)
		a, b := ca.NewQP(nil), cb.NewQP(nil)
		cb.Listen(7000, 4)
		id := ca.Resolve(cb.Host.Addr, 7000)
		ca.Connect(id, a, enginetest.Param(1, ""))
		ev := cb.Event(cm.EventConnectRequest, time.Second)
		w.A.Stop()
		b.PostRecv(5)
		cb.Accept(ev.Child, b, enginetest.Param(1, ""))
		got := cb.Event(cm.EventUnreachable, 30*time.Second)
		if got.Err != syscall.ETIMEDOUT {
			t.Errorf("%v", got.Err)
		}
		w.Pass(3 * time.Second)
		if got := b.Recv.Poll(); len(got) != 1 || got[0].Status != abi.StatusWRFlushErr {
			t.Errorf("receive %+v", got)
		}
		cb.NoEvent()
		for p := range 1 << 16 {
			if w.B.Engine.TRP.Port(0).Conn(uint16(p)) != nil {
				t.Errorf("port number %d is still in use", p)
			}
		}
	}
}

// TestBacklog: requests beyond the backlog wait, and reach the program when there is room.
func TestBacklog(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 7})
		ca, cb := ends(w, local)
		cb.Listen(7000, 2)
		for range 5 {
			ca.Connect(ca.Resolve(cb.Host.Addr, 7000), ca.NewQP(nil), enginetest.Param(1, ""))
		}
		w.Pass(500 * time.Millisecond)
		first, second := cb.Event(cm.EventConnectRequest, time.Second), cb.Event(cm.EventConnectRequest, time.Second)
		cb.NoEvent()
		cb.Accept(first.Child, cb.NewQP(nil), enginetest.Param(1, ""))
		cb.Destroy(second.Child)
		cb.Event(cm.EventEstablished, time.Second)
		for range 2 {
			ev := cb.Event(cm.EventConnectRequest, 2*time.Second)
			cb.Accept(ev.Child, cb.NewQP(nil), enginetest.Param(1, ""))
		}
	})
}

// TestBacklogForEver: if a listener never answers, the caller gives up.
func TestBacklogForEver(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 8, ConnectTimeout: 2 * time.Second})
		ca, cb := ends(w, local)
		cb.Listen(7000, 1)
		ca.Connect(ca.Resolve(cb.Host.Addr, 7000), ca.NewQP(nil), enginetest.Param(1, ""))
		cb.Event(cm.EventConnectRequest, time.Second)
		ca2 := w.A.NewClient()
		ca2.Connect(ca2.Resolve(cb.Host.Addr, 7000), ca2.NewQP(nil), enginetest.Param(1, ""))
		ca2.Event(cm.EventUnreachable, 10*time.Second)
	})
}

// TestQueuePairGone: a queue pair destroyed during its request ends the handshake with an error on both sides.
func TestQueuePairGone(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 9})
		ca, cb := ends(w, local)
		a, b := ca.NewQP(nil), cb.NewQP(nil)
		cb.Listen(7000, 2)
		ca.Connect(ca.Resolve(cb.Host.Addr, 7000), a, enginetest.Param(1, ""))
		ev := cb.Event(cm.EventConnectRequest, time.Second)
		a.Destroy()
		cb.Accept(ev.Child, b, enginetest.Param(1, ""))
		ca.Event(cm.EventConnectError, time.Second)
		w.Pass(10 * time.Second)
		cb.Host.Do(func() {})
		if !cbEnded(cb) {
			t.Error("the accepting side heard nothing")
		}
		if b.Q.State() == abi.QPSRTS {
			t.Error("the accepting queue pair is still connected")
		}
	})
}

// cbEnded takes one event and reports whether it is about the connection's end.
func cbEnded(c *enginetest.Client) bool {
	ev := c.Any(time.Second)
	return ev.Kind == cm.EventUnreachable || ev.Kind == cm.EventConnectError || ev.Kind == cm.EventDisconnected
}

// TestAnswersToNobody: the source address of a request that is followed by nothing else gets at most three
// bytes for each received byte, whatever happens to the connection. A peer that sends more later learns of
// the connection's end.
func TestAnswersToNobody(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 14})
	ca, cb := ends(w, false)
	cb.Listen(7000, 2)
	in, out, fins := 0, 0, 0
	count := func(total *int, frame []byte) bool {
		var f wire.Frame
		if f.Parse(frame, len(frame)) != nil || f.Proto != wire.ProtoUDP {
			return false
		}
		*total += 28 + f.PayloadLen
		if wire.TRPOp(frame[f.PayloadOff+8]>>4) == wire.OpFin {
			fins++
		}
		return true
	}
	w.B.Port.SetPath(linked.Path{Drop: func(_ uint64, frame []byte) bool { return count(&out, frame) }})
	w.A.Port.SetPath(linked.Path{Drop: func(_ uint64, frame []byte) bool { count(&in, frame); return false }})
	id := ca.Resolve(cb.Host.Addr, 7000)
	ca.Connect(id, ca.NewQP(nil), enginetest.Param(1, ""))
	ev := cb.Event(cm.EventConnectRequest, time.Second)
	w.A.Port.SetPath(linked.Path{Drop: func(uint64, []byte) bool { return true }})
	cb.Accept(ev.Child, cb.NewQP(nil), enginetest.Param(1, ""))
	w.Pass(time.Second)
	cb.Destroy(ev.Child)
	w.Pass(2 * time.Second)
	if in == 0 || fins != 1 || out > 3*in {
		t.Errorf("%d bytes drew %d, %d fins", in, out, fins)
	}
}

// TestRequesterGone: an id is destroyed during its request. An accept that arrives all the same is refused at once,
// not after a time-out.
func TestRequesterGone(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 10})
		ca, cb := ends(w, local)
		a, b := ca.NewQP(nil), cb.NewQP(nil)
		cb.Listen(7000, 2)
		id := ca.Resolve(cb.Host.Addr, 7000)
		ca.Connect(id, a, enginetest.Param(1, ""))
		ev := cb.Event(cm.EventConnectRequest, time.Second)
		ca.Destroy(id)
		cb.Accept(ev.Child, b, enginetest.Param(1, ""))
		start := w.Now()
		if !cbEnded(cb) {
			t.Error("the accepting side heard nothing of an end")
		}
		if took := time.Duration(w.Now() - start); took > time.Second {
			t.Errorf("heard after %v", took)
		}
		ca.NoEvent()
		ca.Connect(ca.Resolve(cb.Host.Addr, 7000), a, enginetest.Param(1, "")) // the queue pair can be used again
		cb.Event(cm.EventConnectRequest, time.Second)
	})
}

// TestImpossibleAccept: an accept with an impossible segment size or window is answered with a fin, so both sides
// learn at once that there is no connection; a request with them is rejected.
func TestImpossibleAccept(t *testing.T) {
	for _, c := range []struct {
		name        string
		op          wire.TRPOp
		from        int          // offset of the field after the extension block's beginning
		asked, side cm.EventKind // events; 0: none
	}{
		{"accept without segments", wire.OpAccept, 12, cm.EventConnectError, cm.EventDisconnected},
		{"accept without window", wire.OpAccept, 14, cm.EventConnectError, cm.EventDisconnected},
		{"request without segments", wire.OpRequest, 12, cm.EventRejected, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := enginetest.New(t, enginetest.Options{Seed: 12})
			ca, cb := ends(w, false)
			a, b := ca.NewQP(nil), cb.NewQP(nil)
			cb.Listen(7000, 2)
			spoil := linked.Path{Drop: func(_ uint64, frame []byte) bool {
				var f wire.Frame
				if f.Parse(frame, len(frame)) != nil || f.Proto != wire.ProtoUDP || wire.TRPOp(frame[f.PayloadOff+8]>>4) != c.op {
					return false
				}
				body := frame[f.PayloadOff : f.PayloadOff+f.PayloadLen]
				at := wire.TRPLen + wire.ConnectLen + int(binary.BigEndian.Uint16(body[wire.TRPLen:])) + c.from
				body[at], body[at+1] = 0, 0
				wire.SetUDPChecksum(frame[:f.PayloadOff+f.PayloadLen])
				return false
			}}
			w.A.Port.SetPath(spoil)
			w.B.Port.SetPath(spoil)
			start := w.Now()
			ca.Connect(ca.Resolve(cb.Host.Addr, 7000), a, enginetest.Param(1, ""))
			if c.op == wire.OpAccept {
				ev := cb.Event(cm.EventConnectRequest, time.Second)
				cb.Accept(ev.Child, b, enginetest.Param(1, ""))
			}
			if ev := ca.Event(c.asked, time.Second); ev.Err == 0 {
				t.Error("the event has no status")
			}
			if c.side != 0 && !cbEnded(cb) {
				t.Error("the accepting side heard nothing of an end")
			}
			if took := time.Duration(w.Now() - start); took > time.Second {
				t.Errorf("heard after %v", took)
			}
			w.Pass(2 * time.Second)
			ca.NoEvent()
		})
	}
}

// TestDisconnectRefusesRequest: disconnecting an unanswered request is a reject.
func TestDisconnectRefusesRequest(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 11})
		ca, cb := ends(w, local)
		cb.Listen(7000, 2)
		ca.Connect(ca.Resolve(cb.Host.Addr, 7000), ca.NewQP(nil), enginetest.Param(1, ""))
		ev := cb.Event(cm.EventConnectRequest, time.Second)
		cb.Disconnect(ev.Child)
		ca.Event(cm.EventRejected, time.Second)
	})
}

// TestWrongState: calls in the wrong order are EINVAL and change nothing.
func TestWrongState(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 13})
	c, b := w.A.NewClient(), w.B.NewClient()
	q := c.NewQP(nil)
	m := w.A.CM
	p := enginetest.Param(1, "")
	bad := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s: %v, expected EINVAL", what, err)
		}
	}
	id := c.NewID()
	w.A.Do(func() {
		bad("connect idle", m.Connect(id, connect.QueuePair(q.Q), p))
		bad("accept idle", m.Accept(id, connect.QueuePair(q.Q), p))
		bad("reject idle", m.Reject(id, nil))
		bad("disconnect idle", m.Disconnect(id))
		bad("route idle", m.ResolveRoute(id))
	})
	l := c.Listen(7000, 1)
	w.A.Do(func() {
		bad("listen twice", m.Listen(l, 1))
		bad("connect listening", m.Connect(l, connect.QueuePair(q.Q), p))
		bad("resolve listening", m.ResolveAddr(l, enginetest.At(netip.IPv4Unspecified(), 0), enginetest.At(b.Host.Addr, 1),
			0))
		bad("bind twice", m.Bind(l, enginetest.At(netip.IPv4Unspecified(), 0)))
	})
	r := c.Resolve(b.Host.Addr, 7000)
	w.A.Do(func() { bad("connect without a queue pair", m.Connect(r, nil, p)) })
	a, x := w.Pair(false, nil)
	w.A.Do(func() { bad("connect a connected queue pair", m.Connect(r, connect.QueuePair(a.Q), p)) })
	_ = x
}

// TestUnresolved: an address that does not answer is an error after the caller's time-out, or ARP's.
func TestUnresolved(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 14})
	c := w.A.NewClient()
	for _, limit := range []time.Duration{50 * time.Millisecond, 10 * time.Second} {
		id := c.NewID()
		start := w.Now()
		w.A.Do(func() {
			if err := w.A.CM.ResolveAddr(id, enginetest.At(netip.IPv4Unspecified(), 0),
				enginetest.At(netip.MustParseAddr("10.0.0.99"), 1), clock.Time(limit)); err != nil {
				t.Error(err)
			}
		})
		ev := c.Event(cm.EventAddrError, 5*time.Second)
		if took := time.Duration(w.Now() - start); took > limit+time.Millisecond || took > 1500*time.Millisecond {
			t.Errorf("limit %v: heard after %v (%v)", limit, took, ev.Err)
		}
		w.Pass(3 * time.Second)
		c.NoEvent()
	}
	id := c.NewID()
	w.A.Do(func() {
		if err := w.A.CM.ResolveAddr(id, enginetest.At(netip.IPv4Unspecified(), 0),
			enginetest.At(netip.MustParseAddr("192.0.2.1"), 1), 1e9); err != syscall.ENETUNREACH {
			t.Errorf("an address without a route: %v", err)
		}
	})
}

// TestPortNumbersNeverCollide: the port numbers of connects differ from those of accepts, in any order of the two.
func TestPortNumbersNeverCollide(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 15})
	ca, cb := ends(w, false)
	small := &abi.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}
	ca.Listen(7000, 64)
	cb.Listen(7000, 64)
	for range 100 {
		a, b, c, d := ca.NewQP(small), cb.NewQP(small), ca.NewQP(small), cb.NewQP(small)
		cb.Connect(cb.Resolve(ca.Host.Addr, 7000), b, enginetest.Param(1, "")) // takes a data port of A
		ca.Accept(ca.Event(cm.EventConnectRequest, time.Second).Child, a, enginetest.Param(1, ""))
		cb.Event(cm.EventEstablished, time.Second)
		ca.Event(cm.EventEstablished, time.Second)
		ca.Connect(ca.Resolve(cb.Host.Addr, 7000), c, enginetest.Param(1, "")) // takes a source port of A
		cb.Accept(cb.Event(cm.EventConnectRequest, time.Second).Child, d, enginetest.Param(1, ""))
		ca.Event(cm.EventEstablished, time.Second)
		cb.Event(cm.EventEstablished, time.Second)
	}
}

// TestManyIDs: the manager's tables are empty when all ids are destroyed, and ending a connection doesn't take longer
// if there are many.
func TestManyIDs(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 16})
	ca, cb := ends(w, false)
	l := cb.Listen(7000, 1000)
	for range 50 {
		id := ca.Resolve(cb.Host.Addr, 7000)
		ca.Connect(id, ca.NewQP(nil), enginetest.Param(1, ""))
		ev := cb.Event(cm.EventConnectRequest, time.Second)
		switch w.Rand.IntN(3) {
		case 0:
			cb.Destroy(ev.Child)
			ca.Event(cm.EventRejected, time.Second)
		case 1:
			cb.Accept(ev.Child, cb.NewQP(nil), enginetest.Param(1, ""))
			ca.Event(cm.EventEstablished, time.Second)
			cb.Event(cm.EventEstablished, time.Second)
			cb.Destroy(ev.Child)
			ca.Event(cm.EventDisconnected, time.Second)
		case 2:
			ca.Destroy(id)
			cb.Destroy(ev.Child)
		}
		ca.Destroy(id)
	}
	cb.Destroy(l)
	w.Pass(10 * time.Second)
	for _, h := range []*enginetest.Host{w.A, w.B} {
		if n := h.CM.Len(); n != 0 {
			t.Errorf("host %s: %d entries are left", h.Name, n)
		}
	}
}
