package reliable_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"urdma/urdmad/core/reliable"
	"urdma/wire"
)

// driver feeds a Conn with operations read from bytes, as a malicious peer and a hasty engine would, and checks it
// after each.
type driver struct {
	t    *testing.T
	in   []byte
	now  reliable.Time
	c    reliable.Conn
	next wire.PSN // first PSN never delivered
	held map[wire.PSN]bool
	ops  int

	wide   bool
	edge   wire.PSN // one past the last PSN that the peer was ever allowed to send
	shrunk bool     // credits were set since the last header
}

func (d *driver) byte() byte {
	if len(d.in) == 0 {
		return 0
	}
	b := d.in[0]
	d.in = d.in[1:]
	return b
}

func (d *driver) word() uint32 {
	var b [4]byte
	d.in = d.in[copy(b[:], d.in):]
	return binary.LittleEndian.Uint32(b[:])
}

// near returns a PSN near p most of the time, and any at others.
func (d *driver) near(p wire.PSN) wire.PSN {
	switch b := d.byte(); {
	case b == 255:
		return wire.PSN(d.word())
	case b == 254:
		return p.Add(1 << 31)
	case d.wide:
		return p.Add(uint32(int32(int8(b)) << (d.byte() % 8)))
	default:
		return p.Add(uint32(int32(int8(b))))
	}
}

func runDriver(t *testing.T, in []byte) {
	d := &driver{t: t, in: in, held: map[wire.PSN]bool{}}
	flags := d.byte()
	cfg := reliable.Config{
		LocalISN: wire.PSN(d.word()), PeerISN: wire.PSN(d.word()),
		Window: 1 << (d.byte() % 9), RecvWindow: 1 << (d.byte() % 9),
		PeerWindow: int(d.byte()), Batches: flags&8 != 0,
	}
	if d.wide = flags&0x31 == 0x11; d.wide {
		cfg.Window, cfg.RecvWindow = 1<<(d.byte()%14), 1<<(d.byte()%14)
	}
	if flags&2 != 0 {
		cfg.KeepAlive = reliable.Second
	}
	if flags&4 != 0 {
		cfg.Rings = new(reliable.Rings)
	}
	d.next = cfg.PeerISN
	d.c.Init(cfg)
	d.edge = cfg.PeerISN.Add(uint32(d.c.RecvWindow()))
	for len(d.in) > 0 && d.ops < 2000 {
		d.ops++
		d.step(d.byte())
		if err := d.c.Check(); err != nil {
			t.Fatalf("after %d operations: %v", d.ops, err)
		}
	}
}

func (d *driver) step(op byte) {
	switch op % 12 {
	case 0, 1:
		for n := d.c.CanSend(d.now); n > 0 && op > 0; n-- {
			d.c.Send(d.now, 100, uint64(d.c.Next()))
			d.c.WantAR(op%2 == 0)
			op -= min(op, 16)
		}
	case 2, 3:
		d.ack(d.near(d.c.Acked()), nil)
	case 4, 5:
		runs := make([]wire.SackRun, d.byte()%4)
		for i := range runs {
			runs[i].First = d.near(d.c.Acked())
			runs[i].End = runs[i].First.Add(uint32(int32(int8(d.byte()))))
		}
		d.ack(d.near(d.c.Acked()), runs)
	case 6, 7:
		d.data(d.near(d.next))
	case 8:
		d.now += reliable.Time(d.byte()) * reliable.Microsecond
		d.tick()
	case 9:
		if at := d.c.Deadline(); at != reliable.Never {
			d.now = max(d.now, at)
		}
		d.tick()
	case 10:
		n := int(int8(d.byte()))
		if d.wide {
			n <<= d.byte() % 8
		}
		d.c.SetCredits(n)
		d.shrunk = true
		d.c.OnAckRequested(d.now)
	case 11:
		d.answer()
	}
}

// ack checks that an error leaves everything unchanged.
func (d *driver) ack(ack wire.PSN, runs []wire.SackRun) {
	before := d.c.Stats()
	credits := uint32(d.byte()) % 300
	var err error
	if runs == nil {
		err = d.c.OnAck(d.now, ack, credits)
	} else {
		err = d.c.OnSack(d.now, ack, credits, runs)
	}
	if err == nil {
		return
	}
	after := d.c.Stats()
	if after.BadAcks--; after != before {
		d.t.Fatalf("%v changed\n%+v to\n%+v", err, before, after)
	}
	if !errors.Is(err, reliable.ErrAckRange) && !errors.Is(err, reliable.ErrSackRange) {
		d.t.Fatalf("unexpected error: %v", err)
	}
}

// data checks the receiver's verdicts: segments are delivered in order, each once.
func (d *driver) data(psn wire.PSN) {
	switch verdict := d.c.Arrive(d.now, psn, psn&1 != 0); verdict {
	case reliable.Deliver:
		d.deliver(psn)
		for psn, ok := d.c.NextHeld(); ok; psn, ok = d.c.NextHeld() {
			if !d.held[psn] {
				d.t.Fatalf("PSN %d was never held", psn)
			}
			delete(d.held, psn)
			d.deliver(psn)
		}
	case reliable.Hold:
		if d.held[psn] || !psn.After(d.next) {
			d.t.Fatalf("PSN %d is to be held, next is %d", psn, d.next)
		}
		d.held[psn] = true
	case reliable.Duplicate:
		if !d.held[psn] && !psn.Before(d.next) {
			d.t.Fatalf("PSN %d is new, not a duplicate; next is %d", psn, d.next)
		}
	}
}

func (d *driver) deliver(psn wire.PSN) {
	if psn != d.next {
		d.t.Fatalf("PSN %d delivered, next is %d", psn, d.next)
	}
	d.next = psn.Add(1)
}

func (d *driver) tick() {
	err := d.c.Tick(d.now)
	if err != nil && !errors.Is(err, reliable.ErrPeerDead) {
		d.t.Fatalf("unexpected error: %v", err)
	}
	d.c.ProbeDue(d.now)
	resent := 0
	for psn, token, ok := d.c.Retransmit(d.now); ok; psn, token, ok = d.c.Retransmit(d.now) {
		if token != uint64(psn) || psn.Before(d.c.Acked()) || !psn.Before(d.c.Next()) {
			d.t.Fatalf("PSN %d resent with token %d, outstanding are %d to %d", psn, token, d.c.Acked(), d.c.Next())
		}
		if resent++; resent > 1000 {
			d.t.Fatal("retransmission without end")
		}
	}
}

// answer sends the packets that are due; the runs must match the held segments.
func (d *driver) answer() {
	kind := d.c.AckDue(d.now)
	if kind == reliable.AckNone {
		return
	}
	d.header()
	if kind != reliable.AckSack {
		return
	}
	runs := d.c.SackRuns(nil)
	n := 0
	for _, r := range runs {
		for p := r.First; p != r.End; p = p.Add(1) {
			if n++; !d.held[p] {
				d.t.Fatalf("SACK %v reports PSN %d, which is not held", runs, p)
			}
		}
	}
	if len(runs) == 0 || len(runs) < wire.MaxSackRuns && n != len(d.held) && len(runs) != 1 {
		d.t.Fatalf("SACK %v reports %d of %d held", runs, n, len(d.held))
	}
}

// header reads credits: segments within them are accepted, credits are never less than before unless that
// was requested, and never more than a window.
func (d *driver) header() {
	ack, credits := d.c.Header()
	if ack != d.next {
		d.t.Fatalf("acknowledged %d, next is %d", ack, d.next)
	}
	edge := ack.Add(credits)
	if int(credits) > d.c.RecvWindow() || edge.Before(d.edge) && !d.shrunk {
		d.t.Fatalf("%d credits at %d, with a window of %d and %d allowed before", credits, ack, d.c.RecvWindow(), d.edge)
	}
	if credits > 0 && d.c.Judge(edge.Add(^uint32(0))) == reliable.Outside {
		d.t.Fatalf("PSN %d is allowed and would not be taken", edge.Add(^uint32(0)))
	}
	d.edge, d.shrunk = edge, false
}

// FuzzConn never panics and keeps every invariant, whatever arrives.
func FuzzConn(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 6, 6, 64, 240, 2, 1, 10, 9, 9, 6, 1, 6, 0, 11})
	f.Add([]byte{0, 255, 255, 255, 255, 255, 255, 255, 255, 3, 3, 0, 240, 4, 1, 2, 2, 1, 5, 9, 11})
	f.Add([]byte{0x11, 255, 255, 255, 255, 255, 255, 255, 255, 3, 3, 0, 13, 13, 6, 127, 7, 11, 6, 100, 5, 11, 6, 0, 0, 9,
		11})
	f.Fuzz(runDriver)
}

// TestRandomOperations is the fuzz target on bytes from seeds.
func TestRandomOperations(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 7))
		in := make([]byte, 200+rng.IntN(2000))
		for i := range in {
			in[i] = byte(rng.Uint32())
		}
		if seed%4 == 0 {
			in[0] = in[0]&^0x20 | 0x11 // wide
		}
		if runDriver(t, in); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
