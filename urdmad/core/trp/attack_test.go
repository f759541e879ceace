package trp_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// attackSeeds returns the seeds for hostile networks: those of URDMA_SEED if it is set, one or a range such as 1-500.
func attackSeeds(t *testing.T, short uint64) (from, to uint64) {
	if s := os.Getenv("URDMA_SEED"); s != "" {
		first, last, ok := strings.Cut(s, "-")
		if !ok {
			last = first
		}
		from, err := strconv.ParseUint(first, 0, 64)
		to, err2 := strconv.ParseUint(last, 0, 64)
		if err := errors.Join(err, err2); err != nil {
			t.Fatalf("URDMA_SEED: %v", err)
		}
		return from, to
	}
	if os.Getenv("URDMA_LONG") != "" {
		return 1, 3_000 // for each of the two tests
	}
	return 1, short
}

// attack is a world under attack, with a network derived from the seed.
func attack(t *testing.T, seed uint64) *enginetest.World {
	w := enginetest.New(t, enginetest.Options{Seed: seed, NearWrap: seed%3 == 0, Immediate: seed%5 == 0, IPv6: seed%7 < 3,
		MaxReads: 4})
	for _, h := range []*enginetest.Host{w.A, w.B} {
		h.NewClient().Listen(6000, 8) // flooded; no program answers its requests
	}
	return w
}

// calm ends an attack, which would otherwise continue on connections that get the target's port numbers,
// and checks the result: no packet is held, and new connections work.
func calm(t *testing.T, w *enginetest.World, seed uint64) {
	t.Helper()
	w.Intrude = nil
	w.Pass(10 * time.Second)
	if n := w.A.Port.Outstanding() + w.B.Port.Outstanding(); n > 64 {
		t.Errorf("%d packets are still held", n)
	}
	a, b := w.Pair(false, nil)
	// The clock of an idle world jumps to the next timer, often ARP's in a minute, whenever the workload pauses.
	w.NewTraffic(a, b, enginetest.Load{Ops: 5, MaxSize: 3000}).Run(10 * time.Minute)
}

// TestOffPathAttack: connections are made and carry every byte while attackers forge, replay, truncate and damage
// packets, and flood the hosts.
func TestOffPathAttack(t *testing.T) {
	from, to := attackSeeds(t, 60)
	sent := 0
	for seed := from; seed <= to; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := attack(t, seed)
			attacker := w.NewAttacker(300, enginetest.OffPath)
			load := enginetest.Load{Ops: 30, MaxSize: 20000}
			a, b := w.Pair(false, nil)
			if seed%2 == 0 {
				w.SetPath(linked.Path{Loss: 0.01, Reorder: 0.05, Delay: 20 * time.Microsecond})
			}
			first := w.NewTraffic(a, b, load)
			for range 50 {
				first.Step()
				w.Step()
			}
			c, d := w.Pair(false, nil)
			second := w.NewTraffic(c, d, load)
			first.Run(60 * time.Second)
			second.Run(60 * time.Second)
			calm(t, w, seed)
			sent += attacker.Sent
		})
	}
	t.Logf("seeds %d to %d (URDMA_SEED sets one), %d frames of the attacker's", from, to, sent)
}

// TestOnPathAttack: an attacker who reads a connection's packets and forges packets with their values harms
// only that connection: another one between the same hosts carries every byte, and no memory without remote
// rights is accessed.
func TestOnPathAttack(t *testing.T) {
	from, to := attackSeeds(t, 60)
	sent := 0
	for seed := from; seed <= to; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { sent += attackOnPath(t, seed) })
	}
	t.Logf("seeds %d to %d (URDMA_SEED sets one), %d frames of the attacker's", from, to, sent)
}

func attackOnPath(t *testing.T, seed uint64) (sent int) {
	w := attack(t, seed)
	attacker := w.NewAttacker(0, nil) // receives the target's handshake
	v := newVictim(victims(w, seed))
	v.post(8)
	w.Pass(200 * time.Microsecond)
	attacker.Aim()
	x, y := w.Pair(false, nil)
	attacker.Begin(300, enginetest.OnPath)
	bystander := w.NewTraffic(x, y, enginetest.Load{Ops: 30, MaxSize: 20000})
	for i := range 400 {
		if i == int(seed*37%800) { // in half of the seeds
			v.leave(seed)
		}
		v.post(1)
		bystander.Step()
		w.Step()
	}
	bystander.Run(60 * time.Second)
	v.check(t)
	v.a.Destroy()
	v.b.Destroy()
	calm(t, w, seed)
	return attacker.Sent
}

// victims are two connected queue pairs; the second may have no send queue.
func victims(w *enginetest.World, seed uint64) (a, b *enginetest.QP) {
	switch seed / 2 % 4 {
	case 0:
		a, b = w.A.NewClient().NewQP(nil), w.B.NewClient().NewQP(&abi.QPCap{MaxRecvWR: 64, MaxRecvSGE: 4})
	case 1:
		a, b = w.A.NewClient().NewInitiator(), w.B.NewClient().NewTarget(qp.NewDomain())
	case 2: // by number: it stays in RTR
		a, b = w.A.NewClient().NewQP(nil), w.B.NewClient().NewQP(&abi.QPCap{MaxRecvWR: 64, MaxRecvSGE: 4})
		b.ReadyToReceive(a, enginetest.Attempt)
		a.ReadyToReceive(b, enginetest.Attempt)
		a.ReadyToSend(enginetest.Attempt)
		w.Pass(10 * time.Millisecond)
		return a, b
	default:
		return w.Pair(false, nil)
	}
	enginetest.Join(a, b, 16)
	return a, b
}

// victim is a connection that gets false packets, with traffic that is not checked.
type victim struct {
	a, b         *enginetest.QP
	srq          *enginetest.SRQ // of a target's XRC domain, or nil
	mine, theirs *enginetest.Region
	secret       [2]*enginetest.Region // without remote rights
	n            uint64
}

func newVictim(a, b *enginetest.QP) *victim {
	a.Hostile, b.Hostile = true, true // lost and failed work comes in any order
	v := &victim{a: a, b: b, mine: a.Client.Register(1<<16, enginetest.ReadWrite),
		theirs: b.Client.Register(1<<16, enginetest.ReadWrite)}
	if b.Target != nil {
		v.srq = b.Client.NewNamed(b.Q.Domain, 64, b.Client.NewCQ(256))
	}
	for i, q := range []*enginetest.QP{a, b} {
		v.secret[i] = q.Client.Register(1<<16, 0)
		for k := range v.secret[i].Bytes {
			v.secret[i].Bytes[k] = 0x5e
		}
	}
	return v
}

// post keeps both ends busy as long as there is room.
func (v *victim) post(n int) {
	for range n {
		v.n++
		for _, q := range []*enginetest.QP{v.a, v.b} {
			if q.Target != nil {
				v.srq.Post(v.n, v.theirs.SGE(0, 4000))
				continue
			}
			q.Send.Poll()
			q.Recv.Poll()
			mine, theirs := v.mine, v.theirs
			if q == v.b {
				mine, theirs = theirs, mine
			}
			if q.Ring.RQ.Free() > 0 {
				q.PostRecv(v.n, mine.SGE(0, 4000))
			}
			if q.Ring.SQ.Free() < 3 {
				continue
			}
			q.Post(enginetest.Write(v.n, theirs, 8000), mine.SGE(0, 5000))
			q.Post(enginetest.Read(v.n, theirs, 100), mine.SGE(30000, 3000))
			send := enginetest.Send(v.n)
			if v.srq != nil {
				send.RemoteSRQN = v.srq.Q.Shared().Number
			}
			q.Post(send, mine.SGE(0, 3000))
		}
	}
}

// leave moves the second queue pair to another state.
func (v *victim) leave(seed uint64) {
	states := []uint32{abi.QPSSQD, abi.QPSErr, abi.QPSReset}
	// it may be in ERR already
	v.b.Client.Host.Do(func() { _ = v.b.Q.Modify(abi.QPMaskState, &abi.QPAttr{QPState: states[seed%3]}) })
}

func (v *victim) check(t *testing.T) {
	t.Helper()
	want := bytes.Repeat([]byte{0x5e}, 1<<16)
	for i, r := range v.secret {
		if !bytes.Equal(r.Bytes, want) {
			t.Errorf("memory without remote rights of end %d was written", i)
		}
	}
}

// TestFinsAreAnsweredSeldom: two ends that both assume that the other has ended don't answer each other's fins for
// ever.
func TestFinsAreAnsweredSeldom(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 43})
	s := w.Stranger()
	q := w.A.NewClient().NewQP(nil)
	l := s.Dial(q, 4)
	isFin := func(d *enginetest.Datagram) bool { return d.Op() == wire.OpFin }
	l.Send(wire.OpFin, l.PSN, nil)
	s.Await("fin", isFin)
	for range 100 {
		l.Send(wire.OpFin, l.PSN, nil)
		w.Pass(time.Millisecond)
	}
	s.Receive()
	answers := 0
	for i := range s.Got {
		if isFin(&s.Got[i]) {
			answers++
		}
	}
	if answers == 0 || answers > 4 {
		t.Errorf("%d answers to 100 fins within 100 ms, expected one to four", answers)
	}
}
