package qp

import (
	"testing"

	"urdma/verbs/abi"
)

// misfits are Faults that note how many Reads they were told of.
type misfits struct {
	Faults
	told []int
}

func (f *misfits) Send(*QP, uint32, uint32) uint32 { return abi.StatusSuccess }

func (f *misfits) Misfit(_ *QP, reads int, _ uint32) uint32 {
	f.told = append(f.told, reads)
	return abi.StatusSuccess
}

// TestMisfitCountsNoFurther: however many Reads are posted, no more are counted for each than
// the queue pair has under way at once.
func TestMisfitCountsNoFurther(t *testing.T) {
	r := newRig(t, 128)
	f := &misfits{}
	r.qp.Client.Faults = f
	r.carrier.budget = 0
	r.qp.Attr.MaxRdAtomic = 3
	for id := range uint64(40) {
		r.post(8, read(2*id), write(2*id+1))
	}
	r.qp.faultWaiting()
	for i, n := range f.told {
		want := min(i%80/2+1, 3)
		if i%2 == 1 {
			want = 0
		}
		if n != want {
			t.Fatalf("send %d: %d Reads, expected %d", i, n, want)
		}
	}
	if len(f.told) != 160 {
		t.Errorf("asked %d times, expected 160", len(f.told))
	}
}
