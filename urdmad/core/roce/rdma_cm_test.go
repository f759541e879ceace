package roce_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/connect"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/wire"
	"urdma/wire/ibcm"
	"urdma/wire/roce"
)

// TestConnections: rdma_cm connects over every kind of port, and messages of all kinds pass in both directions.
func TestConnections(t *testing.T) {
	for name, o := range ports {
		t.Run(name, func(t *testing.T) {
			o.RNRRetry = 7
			w := enginetest.New(t, o)
			a, b := w.Pair(false, nil)
			w.NewTraffic(a, b, enginetest.Load{Ops: 100, MaxSize: 20_000, NotReady: true}).Run(60 * time.Second)
		})
	}
}

// TestPrivateData: the programs' private data arrive, padded to the length of the field, and so do the
// numbers of Reads.
func TestPrivateData(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 1, RoCE: true})
	ca, cb := w.A.NewClient(), w.B.NewClient()
	a, b := ca.NewQP(nil), cb.NewQP(nil)
	cb.Listen(7000, 4)
	id := ca.Resolve(w.B.Addr, 7000)
	long := strings.Repeat("x", ibcm.MaxPrivate)
	p := enginetest.Param(5, long)
	p.InitiatorDepth = 3
	ca.Connect(id, a, p)
	ev := cb.Event(cm.EventConnectRequest, time.Second)
	if string(ev.Param.PrivateData) != long || ev.Param.ResponderResources != 3 || ev.Param.InitiatorDepth != 5 ||
		ev.Param.QPN != a.Q.QPN {
		t.Errorf("request: %+v", ev.Param)
	}
	if ev.Local.Port() != 7000 || ev.Peer.Addr() != w.A.Addr {
		t.Errorf("request: local %v, peer %v", ev.Local, ev.Peer)
	}
	cb.Accept(ev.Child, b, enginetest.Param(2, "ok"))
	ev = ca.Event(cm.EventEstablished, time.Second)
	if got := strings.TrimRight(string(ev.Param.PrivateData), "\x00"); got != "ok" || ev.Param.QPN != b.Q.QPN {
		t.Errorf("established: %+v", ev.Param)
	}
	cb.Event(cm.EventEstablished, time.Second)
	if c, d := a.Q.Connection(), b.Q.Connection(); c.ORD != 2 || c.IRD != 5 || d.IRD != 2 {
		t.Errorf("in force: a serves %d, opens %d; b serves %d, opens %d", c.IRD, c.ORD, d.IRD, d.ORD)
	}
}

// TestTooMuchPrivateData: a call whose message has no room for its private data is refused with EINVAL, names the
// maximum, and may be repeated with less.
func TestTooMuchPrivateData(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 1, RoCE: true})
	ca, cb := w.A.NewClient(), w.B.NewClient()
	a, b := ca.NewQP(nil), cb.NewQP(nil)
	cb.Listen(7000, 4)
	try := func(c *enginetest.Client, most int, call func(private []byte) error) {
		t.Helper()
		c.Host.Do(func() {
			if err := call(make([]byte, most+1)); !errors.Is(err, syscall.EINVAL) ||
				!strings.Contains(err.Error(), fmt.Sprint("at most ", most)) {
				t.Errorf("%d bytes: %v", most+1, err)
			}
			if err := call(make([]byte, most)); err != nil {
				t.Errorf("%d bytes: %v", most, err)
			}
		})
	}
	ask := func() {
		id := ca.Resolve(w.B.Addr, 7000)
		try(ca, ibcm.MaxPrivate, func(private []byte) error {
			return w.A.CM.Connect(id, connect.QueuePair(a.Q), &cm.Param{PrivateData: private})
		})
	}
	ask()
	child := cb.Event(cm.EventConnectRequest, time.Second).Child
	try(cb, ibcm.MaxReject, func(private []byte) error { return w.B.CM.Reject(child, private) })
	ca.Event(cm.EventRejected, time.Second)
	ask()
	child = cb.Event(cm.EventConnectRequest, time.Second).Child
	try(cb, ibcm.MaxReply, func(private []byte) error {
		return w.B.CM.Accept(child, connect.QueuePair(b.Q), &cm.Param{PrivateData: private})
	})
	ca.Event(cm.EventEstablished, time.Second)
	cb.Event(cm.EventEstablished, time.Second)

	cb.Listen(7001, 4).Datagrams = true
	for accept, answer := range map[bool]cm.EventKind{true: cm.EventEstablished, false: cm.EventUnreachable} {
		id := ca.Resolve(w.B.Addr, 7001)
		id.Datagrams = true
		try(ca, ibcm.MaxServicePrivate, func(private []byte) error {
			return w.A.CM.Connect(id, nil,
				&cm.Param{PrivateData: private})
		})
		child := cb.Event(cm.EventConnectRequest, time.Second).Child
		try(cb, ibcm.MaxServiceReply, func(private []byte) error {
			if accept {
				return w.B.CM.Accept(child, nil, &cm.Param{PrivateData: private, QPN: 5})
			}
			return w.B.CM.Reject(child, private)
		})
		ca.Event(answer, time.Second)
	}
}

// TestRejected: by the program, with private data, and by a host without a listener.
func TestRejected(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 2, RoCE: true})
	ca, cb := w.A.NewClient(), w.B.NewClient()
	a := ca.NewQP(nil)
	ca.Connect(ca.Resolve(w.B.Addr, 7001), a, enginetest.Param(1, ""))
	ca.Event(cm.EventRejected, time.Second)
	cb.Listen(7000, 4)
	ca.Connect(ca.Resolve(w.B.Addr, 7000), a, enginetest.Param(1, "hi"))
	child := cb.Event(cm.EventConnectRequest, time.Second).Child
	w.B.Do(func() {
		if err := w.B.CM.Reject(child, []byte("no thanks")); err != nil {
			t.Error(err)
		}
	})
	ev := ca.Event(cm.EventRejected, time.Second)
	if got := strings.TrimRight(string(ev.Param.PrivateData), "\x00"); got != "no thanks" {
		t.Errorf("private data %q", got)
	}
	if !a.Q.Connectable() {
		t.Error("a rejected queue pair can't be connected again")
	}
}

// TestGivenUp: a program that gives up its connection request before the connection is established informs
// its peer, which then does not wait until its retries are used up. Linux sends nothing else.
func TestGivenUp(t *testing.T) {
	for name, late := range map[string]bool{"before it is accepted": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New(t, enginetest.Options{Seed: 5, RoCE: true})
			ca, cb := w.A.NewClient(), w.B.NewClient()
			a, b := ca.NewQP(nil), cb.NewQP(nil)
			cb.Listen(7000, 4)
			id := ca.Resolve(w.B.Addr, 7000)
			ca.Connect(id, a, enginetest.Param(1, ""))
			child := cb.Event(cm.EventConnectRequest, time.Second).Child
			w.SetPath(lose(ibcm.REP, 100))
			if late {
				cb.Accept(child, b, enginetest.Param(1, ""))
				w.Pass(time.Millisecond)
			}
			ca.Destroy(id)
			w.Pass(time.Millisecond)
			if !late {
				cb.Accept(child, b, enginetest.Param(1, ""))
			}
			cb.Event(cm.EventConnectError, 100*time.Millisecond)
			if n := w.A.Engine.RoCE.Len() + w.B.Engine.RoCE.Len(); n != 0 {
				t.Errorf("%d connections are left", n)
			}
		})
	}
}

// TestAcceptedTooLate: a reply to an unknown request is rejected as a reply, because Linux ignores other rejects.
func TestAcceptedTooLate(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 5, RoCE: true})
	ca, cb := w.A.NewClient(), w.B.NewClient()
	a, b := ca.NewQP(nil), cb.NewQP(nil)
	cb.Listen(7000, 4)
	id := ca.Resolve(w.B.Addr, 7000)
	ca.Connect(id, a, enginetest.Param(1, ""))
	child := cb.Event(cm.EventConnectRequest, time.Second).Child
	var rejects []ibcm.Message
	w.SetPath(linked.Path{Drop: func(_ uint64, frame []byte) bool {
		m, ok := managed(frame)
		if ok && m.Kind == ibcm.REJ {
			rejects = append(rejects, m)
		}
		return ok && m.Kind == ibcm.REJ && m.Reason == ibcm.TimedOut
	}})
	ca.Destroy(id)
	w.Pass(time.Millisecond)
	cb.Accept(child, b, enginetest.Param(1, ""))
	cb.Event(cm.EventConnectError, 100*time.Millisecond)
	if len(rejects) != 2 || rejects[1].Refused != ibcm.RefusedREP || rejects[1].Reason != ibcm.InvalidCommID ||
		rejects[1].Remote == 0 {
		t.Errorf("%+v", rejects)
	}
}

// TestWithdrawnWhileWaiting: a program does not see a request that was withdrawn while it waited for room in the
// listener's backlog.
func TestWithdrawnWhileWaiting(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 6, RoCE: true})
	ca, cb := w.A.NewClient(), w.B.NewClient()
	cb.Listen(7000, 1)
	var asked [3]*cm.ID
	for i := range asked {
		asked[i] = ca.Resolve(w.B.Addr, 7000)
		ca.Connect(asked[i], ca.NewQP(nil), enginetest.Param(byte(i), ""))
		w.Pass(time.Millisecond)
	}
	first := cb.Event(cm.EventConnectRequest, time.Second).Child
	ca.Destroy(asked[1])
	w.Pass(time.Second)
	cb.Destroy(first)
	ca.Event(cm.EventRejected, time.Second)
	last := cb.Event(cm.EventConnectRequest, time.Second)
	if last.Param.ResponderResources != 2 {
		t.Errorf("the request with %d Reads is heard, expected the last", last.Param.ResponderResources)
	}
}

// TestXRCTransport: packets of XRC have their own transport, and a queue pair of type XRC_RECV is no peer for one of
// type RC.
func TestXRCTransport(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 7, RoCE: true})
	seen := map[roce.Opcode]int{}
	w.SetPath(linked.Path{Drop: func(_ uint64, frame []byte) bool {
		var f wire.Frame
		if f.Parse(frame, len(frame)) == nil && f.Proto == wire.ProtoUDP {
			seen[roce.Opcode(frame[f.PayloadOff]).Transport()]++
		}
		return false
	}})
	d := qp.NewDomain()
	ca, cb := w.A.NewClient(), w.B.NewClient()
	cq := cb.NewCQ(16)
	queue, target := cb.NewNamed(d, 4, cq), cb.NewTarget(d)
	a := ca.NewInitiator()
	enginetest.Join(a, target, 4)
	in, out := cb.Register(4096, enginetest.ReadWrite), ca.Register(4096, enginetest.ReadWrite)
	queue.Post(1, in.SGE(0, 4096))
	a.Post(enginetest.SendTo(1, queue), out.SGE(0, 3000))
	if e := cq.Completions(1)[0]; e.QPNum != target.Q.QPN || e.ByteLen != 3000 {
		t.Errorf("%+v", e)
	}
	a.Send.Completions(1)
	if seen[roce.RC] != 0 || seen[roce.XRC] == 0 {
		t.Errorf("packets by transport: %v", seen)
	}
	cb.Listen(7000, 4)
	for _, q := range [][2]*enginetest.QP{{ca.NewQP(nil), cb.NewTarget(d)}, {ca.NewInitiator(), cb.NewQP(nil)}} {
		ca.Connect(ca.Resolve(w.B.Addr, 7000), q[0], enginetest.Param(4, ""))
		child := cb.Event(cm.EventConnectRequest, time.Second).Child
		w.B.Do(func() { _ = w.B.CM.Accept(child, connect.QueuePair(q[1].Q), enginetest.Param(4, "")) })
		ca.Event(cm.EventRejected, time.Second)
		cb.Event(cm.EventConnectError, time.Second)
		w.Pass(time.Second)
		cb.NoEvent()
	}
}

// lose loses the first n messages of a kind.
func lose(kind ibcm.Kind, n int) linked.Path {
	return linked.Path{Drop: func(_ uint64, frame []byte) bool {
		if m, ok := managed(frame); !ok || m.Kind != kind || n == 0 {
			return false
		}
		n--
		return true
	}}
}

// managed returns the message of communication management in a frame.
func managed(frame []byte) (m ibcm.Message, ok bool) {
	var f wire.Frame
	const heads = 20 // of the transport
	ok = f.Parse(frame, len(frame)) == nil && f.Proto == wire.ProtoUDP && f.PayloadLen >= heads &&
		m.Parse(frame[f.PayloadOff+heads:]) == nil
	return m, ok
}

// TestStartingPSN: the starting PSN in a request or reply is the first PSN that its receiver uses
// (InfiniBand vol. 1), as in Linux.
func TestStartingPSN(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 6, RoCE: true})
	told, first := map[ibcm.Kind]roce.PSN{}, map[wire.QPN]roce.PSN{}
	w.SetPath(linked.Path{Drop: func(_ uint64, frame []byte) bool {
		var f wire.Frame
		var h roce.Header
		var m ibcm.Message
		if f.Parse(frame, len(frame)) != nil || f.Proto != wire.ProtoUDP {
			return false
		}
		switch n, err := h.Parse(frame[f.PayloadOff:]); {
		case err != nil:
		case h.Opcode.Transport() == roce.UD:
			if m.Parse(frame[f.PayloadOff+n:]) == nil {
				told[m.Kind] = m.PSN
			}
		case h.Opcode.Traits().Is(roce.Send):
			if _, ok := first[h.Dst]; !ok {
				first[h.Dst] = h.PSN
			}
		}
		return false
	}})
	a, b := w.Pair(false, nil)
	w.NewTraffic(a, b, enginetest.Load{Ops: 50, MaxSize: 100}).Run(10 * time.Second)
	for to, kind := range map[*enginetest.QP]ibcm.Kind{b: ibcm.REP, a: ibcm.REQ} {
		if got, want := first[wire.QPN(to.Q.QPN)], told[kind]; got != want {
			t.Errorf("the first Send has PSN %d, the %v said %d", got, kind, want)
		}
	}
}

// TestLostMessages: each message of the handshake may be lost, several times.
func TestLostMessages(t *testing.T) {
	for name, kind := range map[string]ibcm.Kind{"REQ": ibcm.REQ, "REP": ibcm.REP, "RTU": ibcm.RTU, "DREQ": ibcm.DREQ,
		"DREP": ibcm.DREP} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New(t, enginetest.Options{Seed: 3, RoCE: true})
			w.SetPath(lose(kind, 3))
			ca, cb := w.A.NewClient(), w.B.NewClient()
			a, b := ca.NewQP(nil), cb.NewQP(nil)
			cb.Listen(7000, 4)
			id := ca.Resolve(w.B.Addr, 7000)
			ca.Connect(id, a, enginetest.Param(4, ""))
			cb.Accept(cb.Event(cm.EventConnectRequest, 5*time.Second).Child, b, enginetest.Param(4, ""))
			ca.Event(cm.EventEstablished, 5*time.Second)
			cb.Event(cm.EventEstablished, 5*time.Second)
			w.NewTraffic(a, b, enginetest.Load{Ops: 30, MaxSize: 5000}).Run(10 * time.Second)
			ca.Disconnect(id)
			ca.Event(cm.EventDisconnected, 5*time.Second)
			cb.Event(cm.EventDisconnected, 5*time.Second)
		})
	}
}

// TestPeerGone: a connection whose peer is silent ends when its tries are used up.
func TestPeerGone(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 4, RoCE: true})
	a, b := w.Pair(false, nil)
	mr := a.Client.Register(4096, enginetest.ReadWrite)
	w.Pass(10 * time.Millisecond)
	w.B.Stop()
	_ = b
	a.Post(enginetest.Send(1), mr.SGE(0, 100))
	if ev := a.Client.Event(cm.EventDisconnected, 60*time.Second); ev.Err == 0 {
		t.Errorf("%+v", ev)
	}
}

// TestIdlePeerGone: nothing is sent to a silent peer while no work is posted. When the connection ends, the peer is
// informed a few times, and then the connection is forgotten.
func TestIdlePeerGone(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 4, RoCE: true})
	ca, cb := w.A.NewClient(), w.B.NewClient()
	a, b := ca.NewQP(nil), cb.NewQP(nil)
	cb.Listen(7000, 4)
	id := ca.Resolve(w.B.Addr, 7000)
	ca.Connect(id, a, enginetest.Param(4, ""))
	cb.Accept(cb.Event(cm.EventConnectRequest, time.Second).Child, b, enginetest.Param(4, ""))
	ca.Event(cm.EventEstablished, time.Second)
	cb.Event(cm.EventEstablished, time.Second)
	w.Pass(time.Second)
	w.B.Stop()
	sent := 0
	w.SetPath(linked.Path{Drop: func(_ uint64, frame []byte) bool {
		var f wire.Frame
		if f.Parse(frame, len(frame)) == nil && f.Proto == wire.ProtoUDP {
			sent++
		}
		return false
	}})
	w.Pass(time.Hour)
	if sent != 0 {
		t.Errorf("%d packets were sent to an idle peer", sent)
	}
	ca.Disconnect(id)
	ca.Event(cm.EventDisconnected, 5*time.Second)
	w.Pass(time.Hour)
	if most := 6; sent == 0 || sent > most {
		t.Errorf("%d packets told the peer of the end, expected at most %d", sent, most)
	}
	if n := w.A.Engine.RoCE.Len(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
}

// TestStaleConnection: a peer that has forgotten a connection, as after a power failure, connects again with a queue
// pair of the same number. The program at the other end learns that the old connection has ended.
func TestStaleConnection(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 4, RoCE: true})
	ca, cb := w.A.NewClient(), w.B.NewClient()
	cb.Listen(7000, 4)
	connect := func() (a, b *enginetest.QP, id *cm.ID) {
		a, b = ca.NewQP(nil), cb.NewQP(nil)
		id = ca.Resolve(w.B.Addr, 7000)
		ca.Connect(id, a, enginetest.Param(4, ""))
		cb.Accept(cb.Event(cm.EventConnectRequest, time.Second).Child, b, enginetest.Param(4, ""))
		ca.Event(cm.EventEstablished, time.Second)
		return a, b, id
	}
	a, old, id := connect()
	cb.Event(cm.EventEstablished, time.Second)
	w.SetPath(linked.Path{Loss: 1})
	ca.Disconnect(id)
	ca.Event(cm.EventDisconnected, 5*time.Second)
	ca.Event(cm.EventTimewaitExit, 5*time.Second)
	w.Pass(10 * time.Second) // it has stopped informing the peer
	w.SetPath(linked.Path{})
	ca.NextQPN = a.Q.QPN
	a.Destroy()
	a, b, _ := connect()
	if a.Q.QPN != old.Q.Attr.DestQPNum || old.Q.Connection() == nil {
		t.Fatal("the old connection does not stand, or is of another queue pair")
	}
	for _, want := range []cm.EventKind{cm.EventEstablished, cm.EventDisconnected} {
		cb.Event(want, time.Second)
	}
	if old.Q.State() != abi.QPSErr {
		t.Errorf("the stale queue pair is in state %d", old.Q.State())
	}
	w.NewTraffic(a, b, enginetest.Load{Ops: 30, MaxSize: 5000}).Run(10 * time.Second)
}

// TestPortNumbers: all packets go to port 4791, including answers, whatever port the others' packets come from.
func TestPortNumbers(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 4, RoCE: true})
	answers := 0
	w.SetPath(linked.Path{Drop: func(_ uint64, frame []byte) bool {
		var f wire.Frame
		var h roce.Header
		if f.Parse(frame, len(frame)) != nil || f.Proto != wire.ProtoUDP {
			return false
		}
		if _, err := h.Parse(frame[f.PayloadOff:]); err != nil || f.DstPort != roce.Port {
			t.Errorf("%v, from port %d to %d", err, f.SrcPort, f.DstPort)
		}
		if h.Opcode.Traits().Is(roce.Response) && f.SrcPort != roce.Port {
			answers++
		}
		return false
	}})
	a, b := w.Pair(false, nil)
	w.NewTraffic(a, b, enginetest.Load{Ops: 50, MaxSize: 5000}).Run(10 * time.Second)
	if answers == 0 {
		t.Error("no answers were seen")
	}
}
