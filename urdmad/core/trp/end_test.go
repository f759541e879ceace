package trp_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// TestDeath: a peer that falls silent is given up after the death time-out. The oldest work request fails with "retry
// exceeded", the rest is flushed, and rdma_cm reports the end.
func TestDeath(t *testing.T) {
	for _, busy := range []bool{true, false} {
		t.Run(fmt.Sprintf("busy %v", busy), func(t *testing.T) {
			w := enginetest.New(t, enginetest.Options{Seed: 9, DeathTimeout: 4 * time.Second})
			a, b := w.Pair(false, nil)
			mine, peer := a.Client.Register(1<<16, enginetest.ReadWrite), b.Client.Register(1<<16, enginetest.ReadWrite)
			a.PostRecv(50)
			w.Pass(time.Millisecond)
			w.B.Stop()
			start := w.Now()
			want := []uint64{}
			if busy {
				want = []uint64{1, 2, 3}
				a.Post(enginetest.Write(1, peer, 0), mine.SGE(0, 1<<16))
				a.Post(enginetest.Read(2, peer, 0), mine.SGE(0, 1<<16))
				a.Post(enginetest.Send(3), mine.SGE(0, 10))
			}
			a.Client.Event(abi.CMDisconnected, 10*time.Second)
			if took := time.Duration(w.Now() - start); took < 3900*time.Millisecond || took > 5*time.Second {
				t.Errorf("given up after %v, expected about 4s", took)
			}
			enginetest.Expect(t, "sender", a.Send.Completions(len(want)), want, abi.StatusRetryExcErr, abi.StatusWRFlushErr,
				abi.StatusWRFlushErr)
			enginetest.Expect(t, "receive", a.Recv.Completions(1), []uint64{50}, abi.StatusWRFlushErr)
			w.Pass(3 * time.Second)
			if n := w.A.Engine.TRP.Port(0).Conn(a.Q.Connection().Local.Port()); n != nil {
				t.Error("the port number is still in use")
			}
		})
	}
}

// TestIdleConnectionsLive: connections without work outlast the death time-out, and need only a few packets.
func TestIdleConnectionsLive(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 10})
	a, b := w.Pair(false, nil)
	before := w.A.Port.Stats().TxPackets
	w.Pass(60 * time.Second)
	if sent := w.A.Port.Stats().TxPackets - before; sent > 100 {
		t.Errorf("%d packets in an idle minute", sent)
	}
	w.NewTraffic(a, b, enginetest.Load{Ops: 20, MaxSize: 10000}).Run(time.Second)
}

// TestCutAndMended: a link that is down for less than the death time-out only delays messages.
func TestCutAndMended(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 11})
	a, b := w.Pair(false, nil)
	tr := w.NewTraffic(a, b, enginetest.Load{Ops: 200, MaxSize: 20000})
	for range 50 {
		tr.Step()
		w.Step()
	}
	w.A.Port.SetLink(false)
	w.Pass(2 * time.Second)
	w.A.Port.SetLink(true)
	tr.Run(20 * time.Second)
}

// TestDisconnect: work posted before the disconnect is carried out first. Then both sides get the end, once, and
// everything else is flushed.
func TestDisconnect(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		for seed := range uint64(20) {
			w := enginetest.New(t, enginetest.Options{Seed: seed + 1})
			other := w.B
			if local {
				other = w.A
			}
			a, b := w.A.NewClient().NewQP(nil), other.NewClient().NewQP(nil)
			ida, idb := enginetest.Join(a, b, 16)
			w.SetPath(linked.Path{Loss: 0.1, Reorder: 0.2, Delay: 20 * time.Microsecond})
			mine, peer := a.Client.Register(1<<16, enginetest.ReadWrite), b.Client.Register(1<<20, enginetest.ReadWrite)
			for i := range uint64(10) {
				b.PostRecv(i, peer.SGE(int(i)<<16, 1<<16))
			}
			for i := range uint64(8) {
				a.Post(enginetest.Send(i), mine.SGE(0, 1<<16))
			}
			a.PostRecv(60)
			w.Pass(time.Duration(w.Rand.IntN(2000)) * time.Microsecond)
			a.Client.Disconnect(ida)
			bothSides := w.Rand.IntN(2) == 0
			if bothSides {
				w.Pass(time.Duration(w.Rand.IntN(200)) * time.Microsecond)
				b.Client.Disconnect(idb)
			}
			a.Client.Event(abi.CMDisconnected, 10*time.Second)
			b.Client.Event(abi.CMDisconnected, 10*time.Second)
			sent := a.Send.Completions(8)
			for i, e := range sent {
				if e.WRID != uint64(i) || !bothSides && e.Status != abi.StatusSuccess {
					t.Fatalf("seed %d: sender: %+v", seed+1, sent)
				}
			}
			got := b.Recv.Completions(10)
			for i, e := range got {
				if e.WRID != uint64(i) || i < 8 && sent[i].Status == 0 && e.Status != 0 || i >= 8 &&
					e.Status != abi.StatusWRFlushErr {
					t.Fatalf("seed %d: receiver: %+v", seed+1, got)
				}
			}
			enginetest.Expect(t, "sender's receive", a.Recv.Completions(1), []uint64{60}, abi.StatusWRFlushErr)
			a.PostRecv(61) // on a queue pair in error: flushed at once
			a.Post(enginetest.Send(62))
			enginetest.Expect(t, "late receive", a.Recv.Completions(1), []uint64{61}, abi.StatusWRFlushErr)
			enginetest.Expect(t, "late send", a.Send.Completions(1), []uint64{62}, abi.StatusWRFlushErr)
			w.Pass(3 * time.Second)
			a.Client.Event(cm.EventTimewaitExit, time.Second)
			if bothSides {
				b.Client.Event(cm.EventTimewaitExit, time.Second)
			}
			a.Client.NoEvent()
			b.Client.NoEvent()
			w.CheckQuiet()
		}
	})
}

// TestDisconnectWhileServing: a side that disconnects first answers the Reads that it has accepted.
func TestDisconnectWhileServing(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 12, Path: linked.Path{Delay: 100 * time.Microsecond, Rate: 1e9}})
	a, b := w.A.NewClient().NewQP(nil), w.B.NewClient().NewQP(nil)
	ida, _ := enginetest.Join(a, b, 16)
	src, dst := a.Client.Register(1<<20, enginetest.ReadWrite), b.Client.Register(1<<20, enginetest.ReadWrite)
	b.Post(enginetest.Read(1, src, 0), dst.SGE(0, 1<<20))
	w.Pass(500 * time.Microsecond)
	a.Client.Disconnect(ida)
	enginetest.Expect(t, "reader", b.Send.Completions(1), []uint64{1}, abi.StatusSuccess)
	b.Client.Event(abi.CMDisconnected, time.Second)
}

// TestManyPairsComeAndGo: after hundreds of short connections, some of them at the same time, no port number is in
// use; each connection works fully.
func TestManyPairsComeAndGo(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 13})
		other := w.B
		if local {
			other = w.A
		}
		ca, cb := w.A.NewClient(), other.NewClient()
		mine, peer := ca.Register(4096, enginetest.ReadWrite), cb.Register(4096, enginetest.ReadWrite)
		small := abi.QPCap{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1}
		for range 60 {
			var as, bs []*enginetest.QP
			var ids []*cm.ID
			for range 5 {
				a, b := ca.NewQP(&small), cb.NewQP(&small)
				ida, idb := enginetest.Join(a, b, 4)
				as, bs, ids = append(as, a), append(bs, b), append(ids, ida, idb)
				a.Post(enginetest.Write(1, peer, 0), mine.SGE(0, 4096))
			}
			for i := range as {
				enginetest.Expect(t, "write", as[i].Send.Completions(1), []uint64{1}, abi.StatusSuccess)
			}
			for i, id := range ids {
				[]*enginetest.Client{ca, cb}[i%2].Destroy(id)
			}
			for i := range as {
				as[i].Destroy()
				bs[i].Destroy()
			}
			ca.DrainEvents()
			cb.DrainEvents()
		}
		w.Pass(3 * time.Second)
		w.CheckQuiet()
	})
}

// TestReceivedThenDestroyed: if a receiver destroys its queue pair as soon as it has a message, the sender's send
// completes, even if another message waits for a receive after it, and if packets are lost.
func TestReceivedThenDestroyed(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		for seed := uint64(1); seed <= enginetest.Seeds(10); seed++ {
			for name, pair := range map[string]func(*enginetest.World) (a, b *enginetest.QP){
				"rdma_cm": func(w *enginetest.World) (a, b *enginetest.QP) { return w.Pair(local, nil) },
				"by number": func(w *enginetest.World) (a, b *enginetest.QP) {
					n := enginetest.ConnectedPairIn(w, local, 7)
					return n.QA, n.QB
				},
			} {
				w := enginetest.New(t, enginetest.Options{Seed: seed, RNRRetry: uint8(seed % 8)})
				a, b := pair(w)
				if seed%2 == 0 {
					w.SetPath(enginetest.Lossy)
				}
				n := 1 + w.Rand.IntN(100_000)
				src, dst := a.Client.Register(n, enginetest.ReadWrite), b.Client.Register(n, enginetest.ReadWrite)
				a.Post(enginetest.Send(1), src.SGE(0, n))
				if w.Rand.IntN(2) == 0 {
					a.Post(enginetest.Send(2), src.SGE(0, n))
				}
				w.Pass(time.Duration(w.Rand.IntN(2)) * 10 * time.Millisecond)
				b.PostRecv(1, dst.SGE(0, n))
				if e := b.Recv.Completions(1)[0]; e.Status != abi.StatusSuccess {
					t.Fatalf("seed %d, %s: received %+v", seed, name, e)
				}
				b.Destroy()
				w.Pass(3 * time.Second)
				if got := a.Send.Poll(); len(got) == 0 || got[0].Status != abi.StatusSuccess {
					t.Errorf("seed %d, %s: sent %+v", seed, name, got)
				}
			}
		}
	})
}

// TestPostedThenLeft: work posted before a queue pair is destroyed arrives completely, and its program gets
// no more events, even if the peer leaves at the same time.
func TestPostedThenLeft(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		for seed := uint64(1); seed <= enginetest.Seeds(10); seed++ {
			w := enginetest.New(t, enginetest.Options{Seed: seed, RNRRetry: 7})
			var a, b *enginetest.QP
			if seed%2 == 0 {
				a, b = w.Pair(local, nil)
			} else {
				n := enginetest.ConnectedPairIn(w, local, 7)
				a, b = n.QA, n.QB
			}
			if seed%3 == 0 {
				w.SetPath(enginetest.Lossy)
			}
			n := w.Rand.IntN(30_000)
			src, dst := a.Client.Register(n+1, enginetest.ReadWrite), b.Client.Register(3*n+1, enginetest.ReadWrite)
			for i := range src.Bytes {
				src.Bytes[i] = byte(i + 1)
			}
			for i := range 3 {
				b.PostRecv(uint64(i), dst.SGE(i*n, n))
			}
			w.Pass(time.Duration(w.Rand.IntN(2)) * 10 * time.Millisecond)
			a.Post(enginetest.Read(9, dst, 0), src.SGE(n, 1))
			for i := range 3 {
				a.Post(enginetest.Send(uint64(i)), src.SGE(0, n))
			}
			a.Leave()
			clear(src.Bytes) // the program reuses the memory now
			for i, e := range b.Recv.Completions(3) {
				if e.Status != abi.StatusSuccess || !bytes.Equal(dst.Bytes[i*n:(i+1)*n], counted(n)) {
					t.Fatalf("seed %d: receive %d: %+v", seed, i, e)
				}
			}
			for _, e := range a.Send.Poll() {
				if e.Status != abi.StatusSuccess {
					t.Errorf("seed %d: completion %+v", seed, e)
				}
			}
		}
	})
}

func counted(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i + 1)
	}
	return b
}

// TestBothLeave: two programs that destroy their queue pairs at the same time, with outstanding sends to each other,
// don't wait for each other, and get no error.
func TestBothLeave(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		n := enginetest.NewConnectedPair(t, local, linked.Path{}, 7)
		for _, q := range []*enginetest.QP{n.QA, n.QB} {
			q.Post(enginetest.Send(1), n.MA.SGE(0, 0))
			q.PostRecv(1)
			q.PostRecv(2)
		}
		left := [2]bool{true, true}
		n.Until("both have sent", time.Second, func() bool {
			for i, q := range []*enginetest.QP{n.QA, n.QB} {
				q.Client.Host.Do(func() { left[i] = q.Q.SendLast() })
			}
			return !left[0] && !left[1]
		})
		n.QA.Destroy()
		n.QB.Destroy()
		n.Pass(time.Second)
		for _, q := range []*enginetest.QP{n.QA, n.QB} {
			for _, e := range append(q.Send.Poll(), q.Recv.Poll()...) {
				if e.Status != abi.StatusSuccess {
					t.Errorf("completion %+v", e)
				}
			}
			if got := q.Client.AsyncEvents(); len(got) != 0 {
				t.Errorf("events %+v", got)
			}
		}
	})
}

// TestLeaveSilentPeer: a destroyed queue pair whose peer has long been silent is not kept for its
// unacknowledged data.
func TestLeaveSilentPeer(t *testing.T) {
	n := enginetest.NewConnectedPair(t, false, linked.Path{}, 7)
	n.QB.PostRecv(1)
	n.B.Stop()
	n.QA.Post(enginetest.Send(1), n.MA.SGE(0, 0))
	sendsLast := func() (left bool) {
		n.QA.Client.Host.Do(func() { left = n.QA.Q.SendLast() })
		return left
	}
	n.Pass(time.Duration(qp.LastSendTimeout) / 2)
	if !sendsLast() {
		t.Error("a peer that was silent for a short time is given up")
	}
	n.Pass(2 * time.Duration(qp.LastSendTimeout))
	if sendsLast() {
		t.Error("a silent peer is waited for")
	}
}

// TestManyLeave: the posts of a program that ends are read a part in each turn, and all arrive.
func TestManyLeave(t *testing.T) {
	const pairs = 200
	w := enginetest.New(t, enginetest.Options{Seed: 12, RNRRetry: 7})
	few := &abi.QPCap{MaxSendWR: 2, MaxRecvWR: 2, MaxSendSGE: 1, MaxRecvSGE: 1}
	c, d := w.A.NewClient(), w.B.NewClient()
	send, recv := c.NewCQ(2*pairs), d.NewCQ(2*pairs)
	src, dst := c.Register(64, enginetest.ReadWrite), d.Register(64, enginetest.ReadWrite)
	var senders []*enginetest.QP
	for range pairs {
		a, b := c.NewQPOn(few, send, send), d.NewQPOn(few, recv, recv)
		enginetest.Join(a, b, 1)
		b.PostRecv(1, dst.SGE(0, 64))
		a.Ring.SQ.Write(&abi.SQE{WRID: 1, Opcode: abi.WRSend}, []abi.SGE{src.SGE(0, 64)})
		a.Ring.SQ.Publish() // without ringing the doorbell
		senders = append(senders, a)
	}
	for left := true; left; {
		before := posted(senders)
		w.A.Do(func() { left = c.E.SendLast() })
		if n := posted(senders) - before; n > 64 {
			t.Errorf("%d posts in a turn", n)
		}
		w.Step()
	}
	c.Remove(senders...)
	for _, e := range recv.Completions(pairs) {
		if e.Status != abi.StatusSuccess {
			t.Fatalf("%+v", e)
		}
	}
}

func posted(list []*enginetest.QP) (n uint64) {
	for _, q := range list {
		n += q.Q.Stats.SendsPosted
	}
	return n
}

// TestHostVanishesBeforeAnswer: a Read of queue pairs connected by number fails when the peer's host is gone
// after it has acknowledged the request.
func TestHostVanishesBeforeAnswer(t *testing.T) {
	n := enginetest.NewConnectedPair(t, false, linked.Path{}, 7)
	n.SetPath(linked.Path{Drop: func(_ uint64, frame []byte) bool { // the answers are lost
		segment := wire.UDPHeaderLen + wire.TRPExtLen
		return len(frame) > segment+wire.TaggedLen && wire.Opcode(frame[segment+1]&0xf) == wire.OpReadResponse
	}})
	n.QA.Post(enginetest.Read(9, n.MB, 0), n.MA.SGE(0, 100))
	n.Pass(100 * time.Millisecond)
	n.B.Stop()
	for _, e := range n.QA.Send.Completions(1) {
		if e.WRID != 9 || e.Status != abi.StatusRetryExcErr {
			t.Errorf("completion %+v, expected that retries are exceeded", e)
		}
	}
}
