package roce_test

import (
	"fmt"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
)

// ports are the kinds of ports that RoCEv2 can use: frames and UDP sockets, with both address families.
var ports = map[string]enginetest.Options{
	"frames":      {RoCE: true},
	"frames IPv6": {RoCE: true, IPv6: true},
	"UDP":         {RoCE: true, Datagrams: true},
	"UDP IPv6":    {RoCE: true, Datagrams: true, IPv6: true},
}

// TestExchange: a Send, a Write and a Read of every length around the path MTU.
func TestExchange(t *testing.T) {
	for name, o := range ports {
		t.Run(name, func(t *testing.T) {
			n := enginetest.ConnectedPairIn(enginetest.New(t, o), false, 7)
			for _, size := range []int{1, 17, 1023, 1024, 1025, 4096, 100_000} {
				n.Exchange(size)
			}
		})
	}
}

// TestSpoiledBatches: if only the first packet of a batch arrives, as with a kernel or device that numbers
// packets unlike Linux, packets are sent singly.
func TestSpoiledBatches(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 3, RoCE: true, Datagrams: true})
	w.PipeA.FirstOnly, w.PipeB.FirstOnly = true, true
	n := enginetest.ConnectedPairIn(w, false, 7)
	w.NewTraffic(n.QA, n.QB, enginetest.Load{Ops: 200, MaxSize: 40_000}).Run(120 * time.Second)
	for _, h := range []*enginetest.Host{w.A, w.B} {
		if n := h.Engine.Interface(0).Batches.Alone(w.Now()); n != 1 {
			t.Errorf("one by one to %d peers", n)
		}
	}
}

// TestLongWay: if a round trip takes longer than the first time-out, packets are sent twice only until the round trip
// has been measured.
func TestLongWay(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 6, RoCE: true, Path: linked.Path{Delay: 40 * time.Millisecond}})
	n := enginetest.ConnectedPairIn(w, false, 7)
	w.NewTraffic(n.QA, n.QB, enginetest.Load{Ops: 200, MaxSize: 40_000}).Run(120 * time.Second)
	for _, h := range []*enginetest.Host{w.A, w.B} {
		if s := h.Engine.RoCE.Stats.RC; s.SentAgain > s.Sent/10 {
			t.Errorf("%d of %d requests were sent again", s.SentAgain, s.Sent)
		}
	}
}

// TestTraffic: messages of all kinds, in both directions, over networks that lose, duplicate and reorder packets.
func TestTraffic(t *testing.T) {
	for i, path := range []linked.Path{{}, {Loss: 0.01}, {Loss: 0.05, Duplicate: 0.02, Reorder: 0.02}} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			w := enginetest.New(t, enginetest.Options{Seed: uint64(20 + i), RoCE: true, Path: path})
			n := enginetest.ConnectedPairIn(w, false, 7)
			w.NewTraffic(n.QA, n.QB, enginetest.Load{Ops: 300, MaxSize: 20_000}).Run(60 * time.Second)
		})
	}
}
