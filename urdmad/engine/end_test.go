package engine_test

import (
	"fmt"
	"testing"
	"time"

	"urdma/dpdk/linked"
	"urdma/urdmad/cm"
	"urdma/urdmad/engine/enginetest"
	"urdma/verbs/abi"
)

// TestDeath: a peer that falls silent is given up after the death time-out: the
// oldest work request fails with "retry exceeded", the rest is flushed, and
// rdma_cm reports the end.
func TestDeath(t *testing.T) {
	for _, busy := range []bool{true, false} {
		for _, plain := range []bool{false, true} {
			if plain && !busy {
				continue // an idle plain peer cannot be probed (docs/WIRE.md chapter 8)
			}
			t.Run(fmt.Sprintf("busy %v plain %v", busy, plain), func(t *testing.T) {
				w := enginetest.New(t, enginetest.Options{Seed: 9, Plain: plain, DeathTimeout: 4 * time.Second})
				a, b := w.Pair(false, nil)
				mine, peer := a.Client.Register(1<<16, rw), b.Client.Register(1<<16, rw)
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
				expect(t, "sender", completions(w, a.Send, len(want)), want, abi.StatusRetryExcErr, abi.StatusWRFlushErr, abi.StatusWRFlushErr)
				expect(t, "receive", completions(w, a.Recv, 1), []uint64{50}, abi.StatusWRFlushErr)
				w.Pass(3 * time.Second)
				if n := w.A.Engine.TRP.Port(0).Conn(a.Q.Connection().Local.Port()); n != nil {
					t.Error("the port number is still in use")
				}
			})
		}
	}
}

// TestIdleConnectionsLive: connections without work outlast the death time-out,
// and cost a handful of packets.
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

// TestCutAndMended: a link that is down for less than the death time-out costs
// time and nothing else.
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

// TestDisconnect: work posted before the disconnect is carried out first; then
// both sides hear of the end, once, and everything else is flushed.
func TestDisconnect(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		for seed := range uint64(20) {
			for _, plain := range []bool{false, true} {
				w := enginetest.New(t, enginetest.Options{Seed: seed + 1, Plain: plain})
				other := w.B
				if local {
					other = w.A
				}
				a, b := w.A.NewClient().NewQP(nil), other.NewClient().NewQP(nil)
				ida, idb := enginetest.Join(a, b, 16)
				w.SetPath(linked.Path{Loss: 0.1, Reorder: 0.2, Delay: 20 * time.Microsecond})
				mine, peer := a.Client.Register(1<<16, rw), b.Client.Register(1<<20, rw)
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
				sent := completions(w, a.Send, 8)
				for i, e := range sent {
					if e.WRID != uint64(i) || !bothSides && e.Status != abi.StatusSuccess {
						t.Fatalf("seed %d: sender: %+v", seed+1, sent)
					}
				}
				got := completions(w, b.Recv, 10)
				for i, e := range got {
					if e.WRID != uint64(i) || i < 8 && sent[i].Status == 0 && e.Status != 0 || i >= 8 && e.Status != abi.StatusWRFlushErr {
						t.Fatalf("seed %d: receiver: %+v", seed+1, got)
					}
				}
				expect(t, "sender's receive", completions(w, a.Recv, 1), []uint64{60}, abi.StatusWRFlushErr)
				a.PostRecv(61) // on a queue pair in error: flushed at once
				a.Post(enginetest.Send(62))
				expect(t, "late receive", completions(w, a.Recv, 1), []uint64{61}, abi.StatusWRFlushErr)
				expect(t, "late send", completions(w, a.Send, 1), []uint64{62}, abi.StatusWRFlushErr)
				w.Pass(3 * time.Second)
				a.Client.Event(cm.EventTimewaitExit, time.Second)
				if bothSides {
					b.Client.Event(cm.EventTimewaitExit, time.Second)
				}
				a.Client.NoEvent()
				b.Client.NoEvent()
				checkQuiet(t, w)
			}
		}
	})
}

// TestDisconnectWhileServing: a side that disconnects first answers the Reads it
// has taken.
func TestDisconnectWhileServing(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 12, Path: linked.Path{Delay: 100 * time.Microsecond, Rate: 1e9}})
	a, b := w.A.NewClient().NewQP(nil), w.B.NewClient().NewQP(nil)
	ida, _ := enginetest.Join(a, b, 16)
	src, dst := a.Client.Register(1<<20, rw), b.Client.Register(1<<20, rw)
	b.Post(enginetest.Read(1, src, 0), dst.SGE(0, 1<<20))
	w.Pass(500 * time.Microsecond)
	a.Client.Disconnect(ida)
	expect(t, "reader", completions(w, b.Send, 1), []uint64{1}, abi.StatusSuccess)
	b.Client.Event(abi.CMDisconnected, time.Second)
}

// TestManyPairsComeAndGo: hundreds of short connections, some at once, leave no
// port number in use and each is a full connection.
func TestManyPairsComeAndGo(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 13})
		other := w.B
		if local {
			other = w.A
		}
		ca, cb := w.A.NewClient(), other.NewClient()
		mine, peer := ca.Register(4096, rw), cb.Register(4096, rw)
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
				expect(t, "write", completions(w, as[i].Send, 1), []uint64{1}, abi.StatusSuccess)
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
		checkQuiet(t, w)
	})
}
