package memfd

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// counted is a pool that may have so many bytes.
func counted(most int) (p *Pool, taken *int) {
	taken = new(int)
	p = &Pool{
		Take: func(bytes int) error {
			if *taken+bytes > most {
				return errFull
			}
			*taken += bytes
			return nil
		},
		Give: func(bytes int) { *taken -= bytes },
	}
	return p, taken
}

var errFull = errors.New("full")

// queue is one that was given memory, and what it wrote there.
type queue struct {
	m            *Shared
	at           Place
	heads, slots int
	mark         byte
}

func (q *queue) parts() [2][]byte {
	return [2][]byte{q.m.Mem[q.at.Heads:][:q.heads], q.m.Mem[q.at.Slots:][:q.slots]}
}

func (q *queue) fill() {
	for _, part := range q.parts() {
		for i := range part {
			part[i] = q.mark
		}
	}
}

func (q *queue) intact(t *testing.T) {
	t.Helper()
	for _, part := range q.parts() {
		for i := range part {
			if part[i] != q.mark {
				t.Fatalf("%+v: byte %d is another queue's", q.at, i)
			}
		}
	}
}

// TestPoolParts: whatever is made and closed in whatever order, no two queues have a
// byte in common, heads begin as zeros, a file's descriptor comes once, and with the
// last queue all is given back.
func TestPoolParts(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		p, taken := counted(16 << 20)
		var live []*queue
		given := map[uint32]bool{}
		for n := range 600 {
			if len(live) > 0 && r.IntN(5) < 2 {
				i := r.IntN(len(live))
				live[i].intact(t)
				live[i].m.Close()
				live = append(live[:i], live[i+1:]...)
				continue
			}
			q := &queue{heads: 64 * r.IntN(5), slots: r.IntN(1 << r.IntN(17)), mark: byte(n)}
			var err error
			if q.m, q.at, err = p.New(q.heads, q.slots); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if fresh := q.m.FD >= 0; fresh == given[q.at.File] {
				t.Fatalf("seed %d: file %d was given before: %v, and has its descriptor: %v", seed, q.at.File, given[q.at.File],
					fresh)
			}
			given[q.at.File] = true
			q.m.CloseFD()
			for _, b := range q.parts()[0] {
				if b != 0 {
					t.Fatalf("seed %d: a new head is not zero", seed)
				}
			}
			q.fill()
			live = append(live, q)
		}
		for _, q := range live {
			q.intact(t)
			q.m.Close()
		}
		if len(p.files) != 0 || *taken != 0 {
			t.Fatalf("seed %d: %d files with %d bytes are left", seed, len(p.files), *taken)
		}
	}
}

// TestPoolIsFilled: queues of a common size share few files, and heads few pages.
func TestPoolIsFilled(t *testing.T) {
	p, taken := counted(1 << 30)
	const n, heads, slots = 1000, 256, 24 << 10
	pages := map[[2]uint32]bool{}
	var all []*Shared
	for range n {
		m, at, err := p.New(heads, slots)
		if err != nil {
			t.Fatal(err)
		}
		m.CloseFD()
		all = append(all, m)
		pages[[2]uint32{at.File, at.Heads / 4096}] = true
	}
	if used := n * (heads + slots); len(p.files) > 32 || *taken > used*5/4 || len(pages) > 4*len(p.files) {
		t.Errorf("%d files of together %d bytes for %d bytes; heads on %d pages", len(p.files), *taken, used, len(pages))
	}
	for _, m := range all {
		m.Close()
	}
}

// TestPoolAtTheLimit: what there is room for is given, also where a file of the usual
// size would be too large, and what is refused takes nothing.
func TestPoolAtTheLimit(t *testing.T) {
	p, taken := counted(8 << 10)
	m, _, err := p.New(128, 7000)
	if err != nil {
		t.Fatal(err)
	}
	if *taken != 8<<10 {
		t.Errorf("%d bytes are taken", *taken)
	}
	if _, _, err := p.New(128, 7000); !errors.Is(err, errFull) {
		t.Errorf("beyond the limit: %v", err)
	}
	m.Close()
	if *taken != 0 || len(p.files) != 0 {
		t.Errorf("%d bytes, %d files are left", *taken, len(p.files))
	}
}
