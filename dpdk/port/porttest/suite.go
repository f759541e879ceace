package porttest

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/dpdk/port"
)

// Run runs the suite. open makes a new pair with links up, and closes it by t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) *Pair) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, *Pair)
	}{
		{"info", info},
		{"both ways", bothWays},
		{"burst of one", burstOfOne},
		{"empty slices", emptySlices},
		{"kept across calls", keptAcrossCalls},
		{"unsent freed", unsentFreed},
		{"receiver stalls", receiverStalls},
		{"interrupt", interrupt},
		{"no garbage", noGarbage},
		{"stats", stats},
		{"close twice", closeTwice},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Logf("seed %#x", uint64(Seed))
			c.run(t, open(t))
		})
	}
}

func info(t *testing.T, p *Pair) {
	for _, end := range []port.Port{p.A, p.B} {
		i := end.Info()
		if i.Name == "" || i.Driver == "" {
			t.Errorf("port without a name or driver: %+v", i)
		}
		if i.MTU < 576 || i.MTU > 65535 {
			t.Errorf("%s: MTU %d", i.Name, i.MTU)
		}
		if i.MAC[0]&1 != 0 || i.MAC == [6]byte{} {
			t.Errorf("%s: MAC % x is no unicast address", i.Name, i.MAC)
		}
		if !end.Link() {
			t.Errorf("%s: link is down", i.Name)
		}
		if end.Queues() < 1 {
			t.Errorf("%s: %d queues", i.Name, end.Queues())
		}
		for q := range end.Queues() {
			if one, two := end.Queue(q), end.Queue(q); one == nil || one != two {
				t.Errorf("%s: queue %d is not the same at each call", i.Name, q)
			}
		}
	}
}

func bothWays(t *testing.T, p *Pair) {
	ab, ba := newFlow(t, p, p.A, p.B), newFlow(t, p, p.B, p.A)
	for range 300 {
		ab.send(1 + ab.rng.IntN(32))
		ab.settle()
		ba.send(1 + ba.rng.IntN(32))
		ba.settle()
	}
	if ab.sent < 1000 || ba.sent < 1000 {
		t.Fatalf("only %d and %d frames could be sent", ab.sent, ba.sent)
	}
}

func burstOfOne(t *testing.T, p *Pair) {
	f := newFlow(t, p, p.A, p.B)
	for range 3000 {
		f.send(1)
		f.drain()
		if f.sent-f.next > 16 {
			f.settle()
		}
	}
	f.settle()
}

func emptySlices(t *testing.T, p *Pair) {
	if n := p.A.Queue(0).Rx(nil); n != 0 {
		t.Errorf("Rx(nil) = %d", n)
	}
	if n := p.A.Queue(0).Alloc(nil); n != 0 {
		t.Errorf("Alloc(nil) = %d", n)
	}
	if n := p.A.Queue(0).Tx(nil); n != 0 {
		t.Errorf("Tx(nil) = %d", n)
	}
	p.A.Queue(0).Free(nil)
	p.A.Queue(0).Flush()
	f := newFlow(t, p, p.A, p.B)
	f.send(4)
	f.settle()
}

func keptAcrossCalls(t *testing.T, p *Pair) {
	f := newFlow(t, p, p.A, p.B)
	for range 200 {
		pk := make([]port.Packet, 24)
		n := p.A.Queue(0).Alloc(pk[:8])
		n += p.A.Queue(0).Alloc(pk[n:])
		room := p.room(p.A)
		for i := range pk[:n] {
			if len(pk[i].Data) != room {
				t.Fatalf("Alloc gave %d bytes, the frame room is %d", len(pk[i].Data), room)
			}
		}
		cut := f.rng.IntN(n + 1)
		f.transmit(pk[:cut])
		f.drain()
		f.transmit(pk[cut:n])
		f.settle()
	}
}

// unsentFreed frees the newest, oldest and middle allocated buffers without sending them.
func unsentFreed(t *testing.T, p *Pair) {
	f := newFlow(t, p, p.A, p.B)
	pk := make([]port.Packet, 12)
	for round := range 300 {
		n := p.A.Queue(0).Alloc(pk)
		for deadline := time.Now().Add(patience); n < len(pk); n += p.A.Queue(0).Alloc(pk[n:]) {
			if round == 0 {
				pk = pk[:n/2] // a very small ring, not always refilled at once
				p.A.Queue(0).Free(pk[len(pk):n])
				n = len(pk)
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("round %d: Alloc gave %d of %d buffers: some leaked", round, n, len(pk))
			}
			p.Step()
			f.drain()
		}
		from := f.rng.IntN(n)
		to := from + f.rng.IntN(n-from) + 1
		p.A.Queue(0).Free(pk[from:to])
		f.transmit(slices.Concat(pk[:from], pk[to:n]))
		f.settle()
	}
}

// receiverStalls sends without receiving: the sender must see a full ring or lose frames, and never hang;
// afterwards traffic continues.
func receiverStalls(t *testing.T, p *Pair) {
	f := newFlow(t, p, p.A, p.B)
	var left []port.Packet
	for range 400 {
		pk := make([]port.Packet, 32)
		n := p.A.Queue(0).Alloc(pk)
		for i := range pk[:n] {
			pk[i].Data, pk[i].Peer = pk[i].Data[:100], p.PeerB
			build(pk[i].Data, p.A.Info().MAC, p.B.Info().MAC, f.sent)
			f.sent++
		}
		took := p.A.Queue(0).Tx(pk[:n])
		p.A.Queue(0).Flush()
		if took < n {
			left = append(left, pk[took:n]...)
			break
		}
	}
	deadline := time.Now().Add(patience)
	for quiet := 0; quiet < 50 && time.Now().Before(deadline); {
		got := p.takeAny(t)
		if len(left) > 0 {
			left = left[p.A.Queue(0).Tx(left):]
			p.A.Queue(0).Flush()
		}
		if quiet++; got > 0 {
			quiet = 0
		}
		p.Step()
	}
	if len(left) > 0 {
		t.Fatalf("%d frames could not be sent after the receiver came back", len(left))
	}
	f.next = f.sent
	f.send(8)
	f.settle()
}

// takeAny receives and frees without checking the order.
func (p *Pair) takeAny(t *testing.T) (n int) {
	pk := make([]port.Packet, 32)
	for {
		k := p.B.Queue(0).Rx(pk)
		if k == 0 {
			return n
		}
		for i := range pk[:k] {
			parse(t, pk[i].Data)
		}
		p.B.Queue(0).Free(pk[:k])
		n += k
	}
}

func interrupt(t *testing.T, p *Pair) {
	f := newFlow(t, p, p.A, p.B)
	f.arm() // consumes the wake-up from the link coming up
	p.B.Queue(0).DisarmRx()
	for round := range 20 {
		fd := f.arm()
		if fd < 0 {
			if p.Interrupts {
				t.Fatal("ArmRx gave no fd")
			}
			p.B.Queue(0).DisarmRx()
			return
		}
		if !p.Foreign && readable(t, fd, 5*time.Millisecond) {
			t.Fatalf("round %d: fd readable though nothing was sent", round)
		}
		f.send(1)
		if !readable(t, fd, patience) {
			t.Fatalf("round %d: a frame came, fd never became readable", round)
		}
		p.B.Queue(0).DisarmRx()
		f.settle()
	}
	if fd := f.arm(); readable(t, fd, 5*time.Millisecond) && !p.Foreign {
		t.Fatal("fd still readable after DisarmRx and Rx")
	}
	p.B.Queue(0).DisarmRx()
	f.send(1)
	for range 5 {
		p.Step()
	}
	if _, armed := p.B.Queue(0).ArmRx(); armed && !p.Foreign {
		p.B.Queue(0).DisarmRx()
		if k := len(f.receive(1)); k == 1 {
			t.Fatal("ArmRx armed though a frame was there")
		}
	}
	f.settle()
}

// arm calls ArmRx until it returns armed.
func (f *flow) arm() int {
	f.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		fd, armed := f.rx.ArmRx()
		if armed {
			return fd
		}
		f.drain()
		if time.Now().After(deadline) {
			f.t.Fatal("ArmRx says frames are pending, but none are")
		}
	}
}

func readable(t *testing.T, fd int, wait time.Duration) bool {
	t.Helper()
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(p, int(wait.Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			t.Fatalf("poll: %v", err)
		}
		return n > 0
	}
}

// noGarbage: the data methods allocate nothing.
func noGarbage(t *testing.T, p *Pair) {
	tx, rx := make([]port.Packet, 8), make([]port.Packet, 32)
	turn := func() {
		a, b := p.A.Queue(0), p.B.Queue(0)
		n := a.Alloc(tx)
		for i := range tx[:n] {
			tx[i].Data, tx[i].Peer = tx[i].Data[:64], p.PeerB
			build(tx[i].Data[:frameHeader], p.A.Info().MAC, p.B.Info().MAC, 0)
		}
		k := a.Tx(tx[:n])
		a.Free(tx[k:n])
		a.Flush()
		b.Free(rx[:b.Rx(rx)])
	}
	for range 3000 {
		turn()
	}
	driver := p.A.Info().Driver
	if a := testing.AllocsPerRun(2000, turn); a > 0.1 && driver != "linked" {
		t.Errorf("%s: %.2f allocations a turn", driver, a)
	}
}

func stats(t *testing.T, p *Pair) {
	a0, b0 := p.A.Stats(), p.B.Stats()
	f := newFlow(t, p, p.A, p.B)
	for f.sent < 500 {
		f.send(16)
		f.settle()
	}
	a, b := p.A.Stats(), p.B.Stats()
	tx, rx := a.TxPackets-a0.TxPackets, b.RxPackets-b0.RxPackets
	if tx != f.sent && !p.Foreign || tx < f.sent {
		t.Errorf("sender counts %d frames, sent %d", tx, f.sent)
	}
	if rx < f.sent {
		t.Errorf("receiver counts %d frames, %d arrived", rx, f.sent)
	}
	if a.TxBytes-a0.TxBytes < 60*f.sent || b.RxBytes-b0.RxBytes < 60*f.sent {
		t.Errorf("bytes: sent %d, received %d", a.TxBytes-a0.TxBytes, b.RxBytes-b0.RxBytes)
	}
}

func closeTwice(t *testing.T, p *Pair) {
	for range 2 {
		if err := p.A.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := p.B.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}
