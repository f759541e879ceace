package porttest

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"urdma/dpdk/port"
)

// allRetained retains as many packets as Retainable allows: all of these succeed and one more fails, frames
// pass in both directions meanwhile, and freeing a packet makes room for another.
func allRetained(t *testing.T, p *Pair) {
	f, back := newFlow(t, p, p.A, p.B), newFlow(t, p, p.B, p.A)
	f.most = 200
	limit := f.rx.Retainable()
	if limit < 256 {
		t.Fatalf("only %d packets may be retained", limit)
	}
	k := &keeper{f: f}
	k.fill(limit)
	k.refused()
	for range 100 {
		f.send(16)
		f.settle()
		back.send(16)
		back.settle()
	}
	half := len(k.held) / 2
	k.check(k.held)
	f.freeShuffled(k.held[half:])
	k.held, k.copies = k.held[:half], k.copies[:half]
	k.fill(limit)
	k.refused()
	k.check(k.held)
	f.freeShuffled(k.held)
	f.send(16)
	f.settle()
}

// keeper retains the packets that a flow receives.
type keeper struct {
	f      *flow
	held   []port.Packet
	copies [][]byte
}

// fill retains packets until there are limit.
func (k *keeper) fill(limit int) {
	k.f.t.Helper()
	deadline := time.Now().Add(2 * patience)
	for len(k.held) < limit {
		k.f.send(min(16, limit-len(k.held)))
		for k.f.next < k.f.sent {
			pk := k.f.receive(16)
			for i := range pk {
				k.keep(&pk[i])
			}
			if len(pk) == 0 {
				k.f.p.Step()
			}
			if time.Now().After(deadline) {
				k.f.t.Fatalf("%d of %d frames arrived while %d are retained", k.f.next, k.f.sent, len(k.held))
			}
		}
	}
}

func (k *keeper) keep(pk *port.Packet) {
	k.f.t.Helper()
	if err := k.f.rx.Retain(pk); err != nil {
		k.f.t.Fatalf("Retain with %d of %d retained: %v", len(k.held), k.f.rx.Retainable(), err)
	}
	k.held = append(k.held, *pk)
	k.copies = append(k.copies, bytes.Clone(pk.Data))
}

// refused checks that one more packet can't be retained and is not changed.
func (k *keeper) refused() {
	k.f.t.Helper()
	for k.f.send(1) == 0 {
		k.f.p.Step()
	}
	var pk []port.Packet
	for deadline := time.Now().Add(patience); len(pk) == 0; pk = k.f.receive(1) {
		k.f.p.Step()
		if time.Now().After(deadline) {
			k.f.t.Fatalf("no frame arrives while %d are retained", len(k.held))
		}
	}
	before, noBuffer := bytes.Clone(pk[0].Data), k.f.to.Stats().NoBuffer
	if err := k.f.rx.Retain(&pk[0]); !errors.Is(err, port.ErrNoBuffer) {
		k.f.t.Fatalf("Retain of one more than %d: %v, want ErrNoBuffer", len(k.held), err)
	}
	if !bytes.Equal(pk[0].Data, before) {
		k.f.t.Fatal("a packet that could not be retained changed")
	}
	if k.f.to.Stats().NoBuffer == noBuffer {
		k.f.t.Fatal("a refused Retain is not counted")
	}
	k.f.rx.Free(pk)
}

func (k *keeper) check(held []port.Packet) {
	k.f.t.Helper()
	for i := range held {
		if !bytes.Equal(held[i].Data, k.copies[i]) {
			k.f.t.Fatalf("retained frame %d changed", i)
		}
	}
}
