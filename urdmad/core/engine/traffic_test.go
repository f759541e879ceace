package engine_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
)

// connections are the ways in which traffic is carried.
var connections = []struct {
	name    string
	local   bool
	path    linked.Path
	connect func(w *enginetest.World, local bool) (a, b *enginetest.QP)
	lag     time.Duration // less than a message waits for a receive
	workers bool
}{
	{"rdma_cm", false, linked.Path{}, byCM, 30 * time.Millisecond, false},
	{"rdma_cm workers", false, linked.Path{}, byCM, 30 * time.Millisecond, true},
	{"number workers", false, linked.Path{}, byNumber, 2 * time.Millisecond, true},
	{"rdma_cm lossy", false, enginetest.Lossy, byCM, 30 * time.Millisecond, false},
	{"rdma_cm local", true, linked.Path{}, byCM, 30 * time.Millisecond, false},
	{"number", false, linked.Path{}, byNumber, 2 * time.Millisecond, false},
	{"number lossy", false, enginetest.Lossy, byNumber, 2 * time.Millisecond, false},
	{"number local", true, linked.Path{}, byNumber, 2 * time.Millisecond, false},
}

func byCM(w *enginetest.World, local bool) (a, b *enginetest.QP) { return w.Pair(local, nil) }

// byNumber connects with rnr_retry 6, which is 3.84 ms with min_rnr_timer 12.
func byNumber(w *enginetest.World, local bool) (a, b *enginetest.QP) {
	n := enginetest.ConnectedPairIn(w, local, 6)
	return n.QA, n.QB
}

// TestEarlyEnds is traffic whose receiver lags behind, whose receiver destroys its queue
// pair as soon as it has what it wants, and whose sender ends as soon as it has posted.
func TestEarlyEnds(t *testing.T) {
	ways := map[string]struct {
		load enginetest.Load
		run  func(*enginetest.Traffic)
	}{
		"receiver lags": {enginetest.Load{Ops: 60, MaxSize: 20000, NotReady: true},
			func(f *enginetest.Traffic) { f.Run(60 * time.Second) }},
		"receiver leaves": {enginetest.Load{Ops: 60, MaxSize: 40000},
			func(f *enginetest.Traffic) { f.ReceiverLeaves(60 * time.Second) }},
		"sender ends": {enginetest.Load{Ops: 60, MaxSize: 40000},
			func(f *enginetest.Traffic) { f.SenderEnds(60 * time.Second) }},
	}
	for name, way := range ways {
		for _, c := range connections {
			for seed := uint64(1); seed <= enginetest.Seeds(4); seed++ {
				t.Run(fmt.Sprintf("%s/%s/%d", name, c.name, seed), func(t *testing.T) {
					w := enginetest.New(t, enginetest.Options{Seed: seed, Workers: c.workers})
					a, b := c.connect(w, c.local)
					w.SetPath(c.path)
					load := way.load
					if load.NotReady {
						load.Lag = c.lag
					}
					way.run(w.NewTraffic(a, b, load))
				})
			}
		}
	}
}

func TestTraffic(t *testing.T) {
	slow := linked.Path{Delay: 100 * time.Microsecond, Rate: 1e9}
	awful := linked.Path{Loss: 0.2, Duplicate: 0.1, Reorder: 0.3, Corrupt: 0.05, Delay: 50 * time.Microsecond}
	cases := []struct {
		name  string
		opt   enginetest.Options
		load  enginetest.Load
		local bool
		seeds int
	}{
		{"clean", enginetest.Options{}, enginetest.Load{Ops: 200, MaxSize: 100000}, false, 10},
		{"jumbo", enginetest.Options{MTU: 9000}, enginetest.Load{Ops: 200, MaxSize: 100000}, false, 10},
		{"long", enginetest.Options{MTU: 9000, Path: enginetest.Lossy}, enginetest.Load{Ops: 20, MaxSize: 3 << 20}, false, 2},
		{"lossy", enginetest.Options{Path: enginetest.Lossy}, enginetest.Load{Ops: 200, MaxSize: 40000}, false, 30},
		{"awful", enginetest.Options{Path: awful}, enginetest.Load{Ops: 60, MaxSize: 20000}, false, 20},
		{"slow", enginetest.Options{Path: slow}, enginetest.Load{Ops: 100, MaxSize: 40000}, false, 5},
		{"wrap", enginetest.Options{NearWrap: true, Path: enginetest.Lossy}, enginetest.Load{Ops: 200, MaxSize: 40000}, false,
			20},
		{"small window", enginetest.Options{Window: 4, Path: enginetest.Lossy}, enginetest.Load{Ops: 60, MaxSize: 10000},
			false, 10},
		{"full port", enginetest.Options{TxRing: 3, Path: linked.Path{Rate: 1e9, Loss: 0.01}},
			enginetest.Load{Ops: 100, MaxSize: 30000}, false, 10},
		{"checksum offload", enginetest.Options{Checksum: true, Path: enginetest.Lossy},
			enginetest.Load{Ops: 100, MaxSize: 30000}, false, 5},
		{"local", enginetest.Options{}, enginetest.Load{Ops: 300, MaxSize: 100000}, true, 10},
		{"local long", enginetest.Options{}, enginetest.Load{Ops: 20, MaxSize: 3 << 20}, true, 2},
		{"fallback", enginetest.Options{}, enginetest.Load{Ops: 100, MaxSize: 20000, Fallback: true}, false, 5},
		{"direct", enginetest.Options{}, enginetest.Load{Ops: 100, MaxSize: 20000, Direct: true}, false, 5},
		{"fallback lossy", enginetest.Options{Path: enginetest.Lossy},
			enginetest.Load{Ops: 60, MaxSize: 20000, Fallback: true}, false, 5},
		{"direct lossy", enginetest.Options{Path: enginetest.Lossy}, enginetest.Load{Ops: 60, MaxSize: 20000, Direct: true},
			false, 5},
		{"fallback local", enginetest.Options{}, enginetest.Load{Ops: 100, MaxSize: 20000, Fallback: true}, true, 5},
		{"direct local", enginetest.Options{}, enginetest.Load{Ops: 100, MaxSize: 20000, Direct: true}, true, 5},
		{"mixed memory", enginetest.Options{}, enginetest.Load{Ops: 100, MaxSize: 20000, Mixed: true}, false, 5},
		{"mixed memory lossy", enginetest.Options{Path: enginetest.Lossy},
			enginetest.Load{Ops: 60, MaxSize: 20000, Mixed: true}, false, 10},
		{"mixed memory local", enginetest.Options{}, enginetest.Load{Ops: 100, MaxSize: 20000, Mixed: true}, true, 5},
		{"mixed memory not ready", enginetest.Options{RNRRetry: 7, Path: enginetest.Lossy},
			enginetest.Load{Ops: 60, MaxSize: 20000, NotReady: true, Mixed: true}, false, 5},
		{"mixed memory not ready local", enginetest.Options{RNRRetry: 7},
			enginetest.Load{Ops: 60, MaxSize: 20000, NotReady: true, Mixed: true}, true, 5},
		{"one read", enginetest.Options{MaxReads: 1, Path: enginetest.Lossy}, enginetest.Load{Ops: 60, MaxSize: 20000}, false,
			5},
		{"immediate", enginetest.Options{Immediate: true, Path: enginetest.Lossy}, enginetest.Load{Ops: 200, MaxSize: 40000},
			false, 20},
		{"immediate fallback", enginetest.Options{Immediate: true, Path: enginetest.Lossy},
			enginetest.Load{Ops: 60, MaxSize: 20000, Fallback: true}, false, 5},
		{"immediate direct", enginetest.Options{Immediate: true, Path: enginetest.Lossy},
			enginetest.Load{Ops: 60, MaxSize: 20000, Direct: true}, false, 5},
		{"not ready", enginetest.Options{RNRRetry: 7}, enginetest.Load{Ops: 100, MaxSize: 20000, NotReady: true}, false, 10},
		{"not ready lossy", enginetest.Options{RNRRetry: 7, Path: enginetest.Lossy},
			enginetest.Load{Ops: 100, MaxSize: 20000, NotReady: true}, false, 20},
		{"not ready small window", enginetest.Options{RNRRetry: 7, Path: enginetest.Lossy, Window: 8},
			enginetest.Load{Ops: 60, MaxSize: 20000, NotReady: true}, false, 10},
		{"not ready local", enginetest.Options{RNRRetry: 7}, enginetest.Load{Ops: 100, MaxSize: 20000, NotReady: true}, true,
			10},
		{"not ready fallback", enginetest.Options{RNRRetry: 7, Path: enginetest.Lossy},
			enginetest.Load{Ops: 60, MaxSize: 20000, NotReady: true, Fallback: true}, false, 5},
		{"not ready direct", enginetest.Options{RNRRetry: 7, Path: enginetest.Lossy},
			enginetest.Load{Ops: 60, MaxSize: 20000, NotReady: true, Direct: true}, false, 5},
		{"IPv6", enginetest.Options{IPv6: true, Path: enginetest.Lossy}, enginetest.Load{Ops: 100, MaxSize: 40000}, false,
			10},
		{"IPv6 jumbo", enginetest.Options{IPv6: true, MTU: 9000}, enginetest.Load{Ops: 100, MaxSize: 100000}, false, 2},
		{"IPv6 datagrams", enginetest.Options{IPv6: true, Datagrams: true}, enginetest.Load{Ops: 100, MaxSize: 40000}, false,
			5},
		{"IPv6 local", enginetest.Options{IPv6: true}, enginetest.Load{Ops: 100, MaxSize: 40000}, true, 2},
		{"datagrams", enginetest.Options{Datagrams: true}, enginetest.Load{Ops: 100, MaxSize: 40000}, false, 5},
		{"::1", enginetest.Options{Loopback: netip.IPv6Loopback()}, enginetest.Load{Ops: 100, MaxSize: 40000}, true, 2},
		{"::1 datagrams", enginetest.Options{Loopback: netip.IPv6Loopback(), Datagrams: true, MTU: 9000},
			enginetest.Load{Ops: 100, MaxSize: 40000}, true, 2},
		{"127.0.0.1 at IPv6", enginetest.Options{Loopback: netip.AddrFrom4([4]byte{127, 0, 0, 1}), IPv6: true},
			enginetest.Load{Ops: 100, MaxSize: 40000}, true, 2},
		{"workers", enginetest.Options{Workers: true}, enginetest.Load{Ops: 200, MaxSize: 100000}, false, 10},
		{"workers long", enginetest.Options{Workers: true}, enginetest.Load{Ops: 20, MaxSize: 3 << 20}, false, 2},
		{"workers small window", enginetest.Options{Workers: true, Window: 4}, enginetest.Load{Ops: 60, MaxSize: 100000},
			false, 5},
		{"workers not ready", enginetest.Options{Workers: true, RNRRetry: 7},
			enginetest.Load{Ops: 100, MaxSize: 100000, NotReady: true}, false, 10},
		{"workers mixed memory", enginetest.Options{Workers: true}, enginetest.Load{Ops: 100, MaxSize: 100000, Mixed: true},
			false, 5},
		{"workers fallback", enginetest.Options{Workers: true}, enginetest.Load{Ops: 60, MaxSize: 100000, Fallback: true},
			false, 5},
		{"workers direct", enginetest.Options{Workers: true}, enginetest.Load{Ops: 60, MaxSize: 100000, Direct: true}, false,
			5},
		{"workers IPv6", enginetest.Options{Workers: true, IPv6: true, MTU: 9000}, enginetest.Load{Ops: 100, MaxSize: 100000},
			false, 5},
		{"no reads", enginetest.Options{Path: enginetest.Lossy},
			enginetest.Load{Ops: 100, MaxSize: 20000, NoReads: true, SigAll: true}, false, 5},
	}
	for _, c := range cases {
		for seed := uint64(1); seed <= enginetest.Seeds(c.seeds); seed++ {
			t.Run(fmt.Sprintf("%s/%d", c.name, seed), func(t *testing.T) {
				opt := c.opt
				opt.Seed, opt.Path = seed, linked.Path{}
				w := enginetest.New(t, opt)
				a, b := w.Pair(c.local, nil)
				w.SetPath(c.opt.Path)
				w.NewTraffic(a, b, c.load).Run(120 * time.Second)
				w.Pass(5 * time.Millisecond)
				if n := w.A.Port.Outstanding() + w.B.Port.Outstanding(); n > 64 { // what a port allocates ahead
					t.Errorf("%d packets are still held", n)
				}
			})
		}
	}
}
