package qp

import (
	"os"
	"testing"

	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// unreadable is a list of memory that is never read: its client's pages block for ever.
func unreadable(t *testing.T, n uint32) []element {
	self, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	space, ended := mem.NewSpace(self), make(chan struct{})
	t.Cleanup(func() { close(ended); space.Close() })
	if err := space.Fallback(); err != nil {
		t.Fatal(err)
	}
	space.Submit(mem.Job{Write: true, Done: func(error) { <-ended }})
	r := mem.NewRegion(space, testPD, mem.LocalWrite, 4096, uint64(n), 4096, mem.Mapping{})
	return []element{{region: r, va: 4096, n: n}}
}

// TestWaitingReadAheadsAreBounded: a source that finds its client's budget used up waits for
// it once, however often it is asked, in the line of queue pairs once the budget is
// there, and not at all once its work request has gone.
func TestWaitingReadAheadsAreBounded(t *testing.T) {
	r := newRig(t, 8)
	c := r.qp.Client
	never := unreadable(t, 1)
	full := newReadAhead(r.qp, c, request{}, 1, never)
	full.Fill()
	c.bytesAhead = MaxReadAhead
	var waiting []*ReadAhead
	for range 3 {
		s := newReadAhead(r.qp, c, request{}, 1, never)
		waiting = append(waiting, s)
		for range 100 {
			s.Fill()
		}
	}
	if n := len(c.wantReadAhead); n != 3 {
		t.Fatalf("%d entries for three sources that wait", n)
	}
	waiting[0].Drop()
	waiting[0].Drop()
	if n := len(c.wantReadAhead); n != 2 {
		t.Errorf("%d entries when one of three sources is gone", n)
	}
	r.table.Transmit()
	c.unreserve(r.table, 2*(smallChunk+perWait)-perWait)
	if n := len(c.wantReadAhead); n != 0 || r.table.Waiting() != 1 {
		t.Errorf("%d sources wait, %d queue pairs are in line, when there is room again", n, r.table.Waiting())
	}
	for _, s := range waiting {
		s.Fill()
	}
	if len(waiting[0].chunks) != 0 || len(waiting[1].chunks) != 1 || len(waiting[2].chunks) != 1 {
		t.Error("the two waiting sources were not read ahead, or the removed one was")
	}
}

// TestRemovalCounts: removing a queue pair counts for what is outstanding there, so that
// whoever removes many knows when a turn has had enough.
func TestRemovalCounts(t *testing.T) {
	r := newRig(t, 8)
	r.carrier.budget = 0
	for id := range uint64(8) {
		r.ring.SQ.WriteInline(&abi.SQE{WRID: id, Opcode: abi.WRSend}, nil)
		r.ring.SQ.Publish()
	}
	r.qp.Post()
	r.table.Transmit()
	before := r.table.Spent()
	r.table.Remove(r.qp)
	if n := r.table.Spent() - before; n < 8*dropCost {
		t.Errorf("removing 8 work requests counts %d", n)
	}
}
