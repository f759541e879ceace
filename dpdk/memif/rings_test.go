package memif

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"urdma/dpdk/port"
)

// ringOf chooses a test frame's ring by its first byte.
func ringOf(frame []byte, rings int) int { return int(frame[0]) % rings }

// numbered builds a test frame with its receiver, its sender, and the sender's sequence number.
func numbered(b []byte, to, from byte, number uint32) []byte {
	b = b[:60+number%1000]
	b[0], b[1] = to, from
	binary.BigEndian.PutUint32(b[2:], number)
	for i := 6; i < len(b); i++ {
		b[i] = to + from + byte(number)
	}
	return b
}

// isNumbered reports whether a frame has arrived unchanged.
func isNumbered(b []byte) (to, from byte, number uint32, ok bool) {
	to, from, number = b[0], b[1], binary.BigEndian.Uint32(b[2:])
	ok = len(b) == int(60+number%1000)
	for i := 6; ok && i < len(b); i++ {
		ok = b[i] == to+from+byte(number)
	}
	return to, from, number, ok
}

// openQueues opens a connected pair with the given numbers of queues.
func openQueues(t *testing.T, server, client int) (s, c tested) {
	return openPair(t, func(so, co *Options) {
		so.Queues, co.Queues = server, client
		so.Ring, co.Ring = ringOf, ringOf
		co.RingSize = 64
	})
}

// everyone makes each queue of both ports send frames to each of eight readers at the same time. It checks
// that they arrive unchanged, in their sender's order and on the right queue, except those dropped because a
// ring was full for long.
func everyone(t *testing.T, a, b tested, each uint32) {
	t.Helper()
	const readers = 8
	var got atomic.Uint64
	var all sync.WaitGroup
	dropped := func() uint64 { return a.Stats().TxDropped + b.Stats().TxDropped }
	before := dropped()
	total := uint64(len(a.queues)+len(b.queues)) * readers * uint64(each)
	end := time.Now().Add(time.Minute)
	for side, p := range []tested{a, b} {
		other := b
		if side == 1 {
			other = a
		}
		from, rings := len(other.queues), len(p.queues)
		for w, q := range p.queues {
			all.Go(func() {
				last := make([][readers]uint32, from)
				var tx, rx [16]port.Packet
				have, sent := 0, uint32(0)
				for sent < readers*each || have > 0 || got.Load()+dropped()-before < total {
					if time.Now().After(end) {
						t.Errorf("queue %d of %s: %d frames of %d sent, of %d in all %d arrived and %d were dropped in a minute",
							w, p.opt.Name, sent, readers*each, total, got.Load(), dropped()-before)
						return
					}
					n := have + q.Alloc(tx[have:min(len(tx), have+int(readers*each-sent))])
					for ; have < n; have++ {
						tx[have].Data = numbered(tx[have].Data, byte(sent%readers), byte(w), sent/readers+1)
						sent++
					}
					took := q.Tx(tx[:have])
					q.Flush()
					have = copy(tx[:], tx[took:have])
					n = q.Rx(rx[:])
					for i := range rx[:n] {
						to, from, number, ok := isNumbered(rx[i].Data)
						if !ok || int(to)%rings != w || number <= last[from][to] {
							t.Errorf("queue %d of %s: frame %d of queue %d for %d, after %d; whole: %v", w, p.opt.Name, number, from, to,
								last[from][to], ok)
							return
						}
						last[from][to] = number
					}
					q.Free(rx[:n])
					got.Add(uint64(n))
					runtime.Gosched()
				}
			})
		}
	}
	all.Wait()
	t.Logf("%d frames arrived, %d were dropped", got.Load(), dropped()-before)
}

// TestSeveralRings: with equal and with different numbers of queues.
func TestSeveralRings(t *testing.T) {
	for _, n := range [][2]int{{2, 2}, {1, 2}, {2, 1}, {3, 2}, {8, 8}} {
		t.Run(fmt.Sprintf("server %d, client %d", n[0], n[1]), func(t *testing.T) {
			s, c := openQueues(t, n[0], n[1])
			everyone(t, s, c, uint32(4000/(n[0]+n[1])))
			for _, p := range []tested{s, c} {
				if st := p.Stats(); st.RxErrors > 0 || !p.Link() {
					t.Errorf("%s: link up %v, %+v", p.opt.Name, p.Link(), st)
				}
			}
		})
	}
}

// TestReconnectWithOtherQueues: the peer reconnects with another number of queues, and nothing of the old
// link is left.
func TestReconnectWithOtherQueues(t *testing.T) {
	for _, victim := range []string{"client", "server"} {
		t.Run(victim, func(t *testing.T) {
			server, client := openQueues(t, 2, 2)
			stays, goes := &server, &client
			if victim == "server" {
				stays, goes = goes, stays
			}
			var maps int
			for _, queues := range []int{3, 1, 2, 8, 1, 2} {
				goes.Close()
				waitLink(t, false, stays)
				o := goes.opt
				o.Queues = queues
				*goes = mustOpen(t, o)
				waitLink(t, true, stays, goes)
				everyone(t, server, client, 50)
				maps = mapCount(t)
				for _, q := range stays.queues {
					if len(q.retired) > 0 {
						t.Errorf("%d queues: %d dead links keep their memory", queues, len(q.retired))
					}
				}
			}
			if maps != 2 {
				t.Errorf("%d regions are mapped, expected one by each side", maps)
			}
		})
	}
}

// TestRingsOfForeignServers: a server that accepts one ring in each direction, and one that states 256 and
// refuses the second.
func TestRingsOfForeignServers(t *testing.T) {
	for _, c := range []struct {
		name   string
		server rawServer
		want   [][2]int // rings offered and accepted in each attempt: from the server, to the server
	}{
		{"takes one", rawServer{}, [][2]int{{1, 1}}},
		{"takes two", rawServer{says: 1}, [][2]int{{2, 2}}},
		{"takes eight", rawServer{says: 7}, [][2]int{{3, 8}}},
		{"takes all", rawServer{says: 255}, [][2]int{{3, 3}}},
		{"takes fewer than it says", rawServer{says: 255, refuses: 1}, [][2]int{{0, 1}, {1, 1}, {1, 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "m.sock")
			ln := serveRaw(t, path)
			p := mustOpen(t, Options{Name: "client", SocketPath: path, Queues: 3, Ring: ringOf})
			for i, want := range c.want {
				r, rings := c.server.accept(t, ln)
				defer r.close()
				if rings != want {
					t.Errorf("try %d: rings %v, expected %v", i, rings, want)
				}
			}
			waitLink(t, true, p)
			var one [1]port.Packet
			q := p.queues[2]
			q.Alloc(one[:])
			one[0].Data = numbered(one[0].Data, 7, 2, 1)
			if q.Tx(one[:]) != 1 || p.Stats().TxDropped != 0 {
				t.Errorf("a frame of the third queue was not sent: %+v", p.Stats())
			}
		})
	}
}

// TestSleepersOfSeveralRings: a frame wakes the worker that reads its ring, and no other.
func TestSleepersOfSeveralRings(t *testing.T) {
	server, client := openQueues(t, 2, 2)
	for _, p := range []struct{ from, to tested }{{server, client}, {client, server}} {
		for _, q := range p.to.queues {
			q.ArmRx() // consumes the wake-up from the link coming up
			q.DisarmRx()
		}
		for _, from := range p.from.queues {
			for w, q := range p.to.queues {
				other := p.to.queues[1-w]
				fd, armed := q.ArmRx()
				otherFD, otherArmed := other.ArmRx()
				if !armed || !otherArmed {
					t.Fatal("not at rest")
				}
				var one [1]port.Packet
				from.Alloc(one[:])
				one[0].Data = numbered(one[0].Data, byte(w), 0, 1)
				from.Tx(one[:])
				from.Flush()
				if !pollIn(fd, time.Minute) || pollIn(otherFD, 0) {
					t.Errorf("a frame for queue %d of %s wakes another, or nobody", w, p.to.opt.Name)
				}
				q.DisarmRx()
				other.DisarmRx()
				if q.Rx(one[:]) != 1 {
					t.Error("the frame is not there")
				}
				q.Free(one[:])
			}
		}
	}
}

// TestRingIsFilled: while another queue fills a ring, Tx accepts no frame for it, and the worker sleeps only
// briefly.
func TestRingIsFilled(t *testing.T) {
	server, client := openQueues(t, 2, 2)
	for _, p := range []tested{server, client} {
		q := p.queues[1]
		var two [2]port.Packet
		if q.Alloc(two[:]) != 2 {
			t.Fatal("no buffers")
		}
		two[0].Data, two[1].Data = numbered(two[0].Data, 1, 1, 1), numbered(two[1].Data, 0, 1, 1)
		q.cur.tx[0].filling.Lock()
		if n := q.Tx(two[:]); n != 1 {
			t.Fatalf("took %d frames, expected that for the other ring", n)
		}
		if fd, armed := q.ArmRx(); fd != -1 || !armed {
			t.Errorf("descriptor %d, armed %v: nobody wakes it for the frame that waits", fd, armed)
		}
		q.DisarmRx()
		q.cur.tx[0].filling.Unlock()
		if n := q.Tx(two[1:]); n != 1 {
			t.Errorf("took %d frames of the one that waited", n)
		}
		if fd, _ := q.ArmRx(); fd != q.epfd {
			t.Errorf("descriptor %d with nothing that waits", fd)
		}
		q.DisarmRx()
	}
}

// TestReaderOfOneRingStops: its frames are dropped after some time, and frames for others pass.
func TestReaderOfOneRingStops(t *testing.T) {
	server, client := openQueues(t, 2, 2)
	for _, p := range []struct{ from, to tested }{{server, client}, {client, server}} {
		q := p.from.queues[0]
		var one [1]port.Packet
		for end := time.Now().Add(time.Minute); p.from.Stats().TxDropped == 0; {
			if q.Alloc(one[:]) == 1 {
				one[0].Data = numbered(one[0].Data, 1, 0, 1)
				if q.Tx(one[:]) == 0 {
					q.Free(one[:])
				}
			}
			if time.Now().After(end) {
				t.Fatal("nothing is dropped in a minute")
			}
		}
		if q.Alloc(one[:]) != 1 {
			t.Fatal("no buffer for the reader that goes on")
		}
		one[0].Data = numbered(one[0].Data, 0, 0, 1)
		if q.Tx(one[:]) != 1 {
			t.Error("a frame for the reader that goes on is not taken")
		}
		if n := p.to.queues[0].Rx(one[:]); n != 1 {
			t.Error("a frame for the reader that goes on has not arrived")
		}
		p.to.queues[0].Free(one[:])
	}
}

// TestMemoryOfSeveralRings: rings are shorter if there are many.
func TestMemoryOfSeveralRings(t *testing.T) {
	for _, c := range []struct{ queues, c2s, ring, mtu, slots int }{
		{1, 1, 1024, 1500, 1024}, {2, 2, 1024, 1500, 1024}, {3, 1, 1024, 1500, 512}, {1, 8, 1024, 1500, 256},
		{8, 8, 1024, 9000, 256},
		{8, 8, 8, 1500, 8}, {1, 1, 16384, 9000, 16384}, {2, 2, 16384, 9600, 8192},
	} {
		o := Options{SocketPath: "x", Queues: c.queues, RingSize: c.ring, MTU: c.mtu}
		if err := o.fill(); err != nil {
			t.Fatal(err)
		}
		p := &Port{opt: o, queues: make([]*queue, c.queues)}
		l := p.layout(o.log2Ring(), c.c2s, c.queues)
		single := (&Port{opt: o, queues: make([]*queue, 1)}).layout(o.log2Ring(), 1, 1)
		if 1<<l.log2 != c.slots || c.ring > 8 && l.size > 2*single.size+maxQueues*2*ringHeader || l.size > maxRegionBytes {
			t.Errorf("%+v: %d slots, %d bytes, where one ring each way has %d", c, 1<<l.log2, l.size, single.size)
		}
	}
}
