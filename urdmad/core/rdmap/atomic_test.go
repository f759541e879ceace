package rdmap_test

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

const atomicRights = abi.AccessLocalWrite | abi.AccessRemoteAtomic

func word(b []byte) uint64 { return binary.NativeEndian.Uint64(b) }

// TestAtomics: results and effects of both operations, in the machine's byte order.
func TestAtomics(t *testing.T) {
	enginetest.Memories(t, func(t *testing.T, local bool,
		register func(*enginetest.Client, int, uint32) *enginetest.Region) {
		w := enginetest.New(t, enginetest.Options{Seed: 80})
		a, b := w.Pair(local, nil)
		found, words := register(a.Client, 64, abi.AccessLocalWrite), register(b.Client, 64, atomicRights)
		binary.NativeEndian.PutUint64(words.Bytes[8:], 0xfffffffffffffff0)
		a.Post(enginetest.FetchAdd(1, words, 8, 0x20), found.SGE(0, 8))
		a.Post(enginetest.CmpSwap(2, words, 8, 0x10, 0x0102030405060708), found.SGE(8, 3), found.SGE(11, 9))
		a.Post(enginetest.CmpSwap(3, words, 8, 0x10, 7), found.SGE(16, 8))
		for i, e := range a.Send.Completions(3) {
			opcode := uint32(abi.WCCompSwap)
			if i == 0 {
				opcode = abi.WCFetchAdd
			}
			if e.WRID != uint64(i+1) || e.Status != 0 || e.Opcode != opcode || e.ByteLen != 8 {
				t.Errorf("completion %+v", e)
			}
		}
		for i, want := range []uint64{0xfffffffffffffff0, 0x10, 0x0102030405060708} {
			if got := word(found.Bytes[8*i:]); got != want {
				t.Errorf("operation %d found %#x, expected %#x", i, got, want)
			}
		}
		if got := word(words.Bytes[8:]); got != 0x0102030405060708 || word(words.Bytes) != 0 || word(words.Bytes[16:]) != 0 {
			t.Errorf("left %x", words.Bytes[:24])
		}
	})
}

// TestAtomicsOfManyPeers: sums are exact for concurrent additions: by peers over a lossy network, by peers
// in the same engine, and, if memory is shared, by the program itself.
func TestAtomicsOfManyPeers(t *testing.T) {
	const peers, adds = 4, 200
	for name, fallback := range map[string]bool{"shared": false, "fallback": true} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New(t, enginetest.Options{Seed: 81})
			target := w.B.NewClient()
			words := target.Register(64, atomicRights)
			if fallback {
				words = target.RegisterFallback(64, atomicRights)
			}
			var senders []*enginetest.QP
			for i := range peers {
				host := w.A
				if i%2 == 1 {
					host = w.B
				}
				q := host.NewClient().NewQP(nil)
				enginetest.Join(q, target.NewQP(nil), 4)
				senders = append(senders, q)
			}
			w.SetPath(enginetest.Lossy)
			var own sync.WaitGroup
			if !fallback {
				own.Go(func() {
					for range 5000 {
						atomic.AddUint64(enginetest.Word(words.Bytes), 1<<32)
					}
				})
			}
			addFromAll(w, senders, words, adds)
			own.Wait()
			want := uint64(peers * adds)
			if !fallback {
				want += 5000 << 32
			}
			if got := word(words.Bytes); got != want {
				t.Errorf("sum %#x, expected %#x", got, want)
			}
		})
	}
}

// addFromAll adds 1 equally often from each queue pair; no two may get the same value.
func addFromAll(w *enginetest.World, senders []*enginetest.QP, words *enginetest.Region, adds int) {
	w.T.Helper()
	results := make([]*enginetest.Region, len(senders))
	for i, q := range senders {
		results[i] = q.Client.Register(8, abi.AccessLocalWrite)
	}
	done, asked, seen := make([]int, len(senders)), make([]int, len(senders)), map[uint64]bool{}
	w.Until("all adds", 60*time.Second, func() bool {
		for i, q := range senders {
			for _, e := range q.Send.Poll() {
				found := word(results[i].Bytes) & 0xffffffff
				if e.Status != 0 || seen[found] {
					w.T.Fatalf("completion %+v found %d, seen before: %v", e, found, seen[found])
				}
				seen[found] = true
				done[i]++
			}
			if asked[i] == done[i] && done[i] < adds {
				asked[i]++
				q.Post(enginetest.FetchAdd(1, words, 0, 1), results[i].SGE(0, 8))
			}
		}
		return len(seen) == adds*len(senders)
	})
}

// TestAtomicAccess: both the region and the queue pair must grant the right.
func TestAtomicAccess(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 82})
		a, b := w.Pair(local, nil)
		found, words := a.Client.Register(8, enginetest.ReadWrite), b.Client.Register(8, atomicRights)
		b.Client.Host.Do(func() {
			if err := b.Q.Modify(abi.QPMaskAccessFlags,
				&abi.QPAttr{QPAccessFlags: abi.AccessRemoteWrite | abi.AccessRemoteRead}); err != nil {
				t.Error(err)
			}
		})
		a.Post(enginetest.FetchAdd(1, words, 0, 1), found.SGE(0, 8))
		got := a.Send.Completions(1)
		if got[0].Status != abi.StatusRemAccessErr || got[0].VendorErr != uint32(wire.TermProtectionAccess) ||
			word(words.Bytes) != 0 {
			t.Errorf("%+v, word %d", got[0], word(words.Bytes))
		}
	})
}

// TestAtomicSegments: requests and responses byte by byte, except the STag and the request identifier.
func TestAtomicSegments(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 84})
	a, b := w.Pair(false, nil)
	found, words := a.Client.Register(8, enginetest.ReadWrite), b.Client.Register(4096, atomicRights)
	at := words.Base() + 16
	var got [][]byte
	w.Net.Trace(func(ev linked.Event) {
		d, _, ok := segmentOf(ev.Frame)
		if !ok || ev.What != linked.Sent {
			return
		}
		segment := append([]byte(nil), ev.Frame[wire.UDPHeaderLen+wire.TRPExtLen:]...)
		if d.Op == wire.OpAtomicRequest {
			clear(segment[22:30])
			if to := binary.BigEndian.Uint64(segment[30:]); to != at {
				t.Errorf("TO %#x, expected %#x", to, at)
			}
			clear(segment[30:38])
		} else {
			clear(segment[18:22])
		}
		got = append(got, segment)
	})
	a.Post(enginetest.FetchAdd(1, words, 16, 0x0102030405060708), found.SGE(0, 8))
	a.Send.Completions(1)
	a.Post(enginetest.CmpSwap(2, words, 16, 0x0102030405060708, 5), found.SGE(0, 8))
	a.Send.Completions(1)
	zeros, ones := " 0000000000000000", " ffffffffffffffff"
	expectSegments(t, got, [][]byte{
		unhex("41 4a 00000000 00000001 00000001 00000000 00000000 00000000 00000000" + zeros + " 0102030405060708" +
			zeros + zeros + zeros),
		unhex("41 4b 00000000 00000003 00000001 00000000 00000000" + zeros),
		unhex("41 4a 00000000 00000001 00000002 00000000 00000002 00000000 00000000" + zeros + " 0000000000000005" + ones +
			" 0102030405060708" + ones),
		unhex("41 4b 00000000 00000003 00000002 00000000 00000000 0102030405060708"),
	})
}
