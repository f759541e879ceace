package engine_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// mutationStride is of how many mutations a test tries one: prime numbers, so that each kind of them
// has its turn.
func mutationStride() int {
	if os.Getenv("URDMA_LONG") != "" {
		return 5
	}
	return 211
}

// wires are those that the two queue pairs may be connected by.
var wires = []struct {
	name  string
	local bool
	opt   enginetest.Options
}{
	{"TRP", false, enginetest.Options{Seed: 79, NoCapture: true}},
	{"RoCEv2", false, enginetest.Options{Seed: 79, NoCapture: true, RoCE: true}},
	{"one urdmad", true, enginetest.Options{Seed: 79, NoCapture: true}},
	{"two workers", false, enginetest.Options{Seed: 79, NoCapture: true, Workers: true}},
}

// keyStride is mutationStride for an address with its key, of which there are few.
const keyStride = 5

// Where numbers lie in SGEs and SQEs (verbs/abi/urdma_abi.h).
const keyOffset, rkeyOffset, remoteAddrOffset = 12, 28, 32

// shared is a number in memory that a program shares with urdmad.
type shared struct {
	name string
	send int // the work request that it belongs to, or -1
	mem  []byte
	size int
	key  []byte // of an address that changes with its key, to memory that the key is for
}

// withKey is an address, and the key that changes with it.
func withKey(name string, send int, address, key []byte) shared {
	return shared{name, send, address, 8, key}
}

// fieldsOf are the numbers of a structure of urdma_abi.h at the start of memory.
func fieldsOf(name string, send int, t reflect.Type, mem []byte) (list []shared) {
	for i := range t.NumField() {
		f := t.Field(i)
		if size := int(f.Type.Size()); size <= 8 {
			list = append(list, shared{name + "." + f.Name, send, mem[f.Offset:], size, nil})
		} else if f.Name == "Bits" {
			list = append(list, shared{name + ".Bits[0]", send, mem[f.Offset:], 8, nil},
				shared{name + ".Bits[63]", send, mem[int(f.Offset)+size-8:], 8, nil})
		}
	}
	return list
}

// scribbled is a program that changes one number of what it shares with urdmad.
type scribbled struct {
	*enginetest.Mutated
	foreign *enginetest.Region // of another program of the same host
}

func newScribbled(t *testing.T, wire int) *scribbled {
	w := enginetest.New(t, wires[wire].opt)
	s := &scribbled{Mutated: enginetest.MutatedIn(w, wires[wire].local), foreign: w.A.NewClient().Register(1<<12,
		enginetest.ReadWrite)}
	for i := range s.foreign.Bytes {
		s.foreign.Bytes[i] = 0x5e
	}
	s.QA.Hostile = true
	return s
}

// numbers are all that A's program shares with urdmad.
func (s *scribbled) numbers() (list []shared) {
	q := s.QA
	for i := range 7 {
		slot := q.Mem[int(q.Layout.SQ.SlotsOffset)+i*int(q.Layout.SQ.Stride):]
		list = append(list, fieldsOf("SQE", i, reflect.TypeFor[abi.SQE](), slot)...)
		list = append(list, withKey("SQE.RemoteAddr and RKey", i, slot[remoteAddrOffset:],
			slot[rkeyOffset:]))
		sge := slot[abi.Size[abi.SQE]():]
		list = append(list, fieldsOf("SGE", i, reflect.TypeFor[abi.SGE](), sge)...)
		list = append(list, withKey("SGE.Addr and LKey", i, sge, sge[keyOffset:]))
	}
	for i := range 2 {
		slot := q.Mem[int(q.Layout.RQ.SlotsOffset)+i*int(q.Layout.RQ.Stride):]
		list = append(list, fieldsOf("RQE", -1, reflect.TypeFor[abi.RQE](), slot)...)
		sge := slot[abi.Size[abi.RQE]():]
		list = append(list, fieldsOf("received SGE", -1, reflect.TypeFor[abi.SGE](), sge)...)
		list = append(list, withKey("received SGE.Addr and LKey", -1, sge, sge[keyOffset:]))
	}
	list = append(list, fieldsOf("SQ", -1, reflect.TypeFor[abi.SQRing](), q.Mem[q.Layout.SQ.HeadOffset:])...)
	list = append(list, fieldsOf("RQ", -1, reflect.TypeFor[abi.RQRing](), q.Mem[q.Layout.RQ.HeadOffset:])...)
	list = append(list, fieldsOf("send CQ", -1, reflect.TypeFor[abi.CQRing](), q.Send.Mem)...)
	list = append(list, fieldsOf("receive CQ", -1, reflect.TypeFor[abi.CQRing](), q.Recv.Mem)...)
	return append(list, fieldsOf("bells", -1, reflect.TypeFor[abi.Doorbells](), q.Client.Section)...)
}

// values are those that a number may come to have: small ones and bounds, those beside the right one, and
// keys and addresses of memory that is not the program's to use.
func (s *scribbled) values(n *shared) (list []uint64) {
	for _, r := range s.regions() {
		if list = append(list, r.Base()); n.key == nil {
			list = append(list, uint64(r.STag))
		}
	}
	if n.key != nil {
		return list
	}
	var b [8]byte
	copy(b[:], n.mem[:n.size])
	was, bits := binary.NativeEndian.Uint64(b[:]), uint(n.size*8)
	list = append(list, was+1, was-1, was+64, was-64, was+4096, was+1<<16, was^1<<(bits-1), 33, 63, 64, 65, 256,
		1<<(bits-1)-1, 1<<(bits-1), math.MaxUint64, math.MaxUint64-7, 1<<30, 1<<31+1)
	for v := range uint64(17) {
		list = append(list, v)
	}
	return list
}

// regions are of several programs, with and without rights.
func (s *scribbled) regions() []*enginetest.Region {
	return []*enginetest.Region{s.foreign, s.Guards[1], s.Open[1], s.Source, s.Inbox, s.Open[0], s.Fetch}
}

// statuses are those that a work request may complete with if a number of it was changed before it was
// posted. Other numbers have too many.
var statuses = map[string][]uint32{
	"SGE.LKey":                {abi.StatusSuccess, abi.StatusLocProtErr},
	"SGE.Addr":                {abi.StatusSuccess, abi.StatusLocProtErr},
	"SQE.RKey":                {abi.StatusSuccess, abi.StatusRemAccessErr},
	"SQE.RemoteAddr":          {abi.StatusSuccess, abi.StatusRemAccessErr, abi.StatusRemInvReqErr, abi.StatusRemOpErr},
	"SGE.Addr and LKey":       {abi.StatusSuccess, abi.StatusLocProtErr},
	"SQE.RemoteAddr and RKey": {abi.StatusSuccess, abi.StatusRemAccessErr},
	"SQE.ImmOrSTag":           {abi.StatusSuccess},
	"SQE.CompareAdd":          {abi.StatusSuccess},
	"SQE.Swap":                {abi.StatusSuccess},
	"SQE.RemoteSRQN":          {abi.StatusSuccess},
	"SQE.Pad":                 {abi.StatusSuccess},
}

// scribble changes number i to its value k, before urdmad has seen what was posted or after so many turns.
func scribble(t *testing.T, wire, i, k, turns int) {
	s := newScribbled(t, wire)
	others := enginetest.ConnectedPairIn(s.World, wires[wire].local, 2)
	s.Post()
	for range turns {
		s.Step()
	}
	n := s.numbers()[i]
	var b [8]byte
	v := s.values(&n)[k]
	binary.NativeEndian.PutUint64(b[:], v)
	copy(n.mem[:n.size], b[:])
	if n.key != nil {
		binary.NativeEndian.PutUint32(n.key, uint32(s.regions()[k].STag))
	}
	s.QA.Bell()
	s.Pass(time.Millisecond)
	others.Exchange(3000)
	s.Pass(time.Second)
	s.Settle(0, 0)
	allowed := statuses[n.name]
	if n.name == "SGE.Addr and LKey" && s.regions()[k].Client != s.QA.Client {
		allowed = []uint32{abi.StatusLocProtErr}
	}
	if allowed != nil && turns == 0 {
		for _, e := range s.Done[0] {
			if int(e.WRID) == n.send && !slices.Contains(allowed, e.Status) {
				t.Errorf("work request %d completes with status %d", e.WRID, e.Status)
			}
		}
	}
	_ = s.QA.Modify(abi.QPSErr) // it may be in ERR already
	s.Pass(10 * time.Second)
	s.Settle(0, 0)
	s.CheckMemory()
	for _, c := range s.foreign.Bytes {
		if c != 0x5e {
			t.Fatal("memory of another program was written")
		}
	}
	s.CompletedB()
	for _, q := range []*enginetest.QP{s.QA, s.QB, others.QA, others.QB} {
		q.Destroy()
	}
	s.Pass(10 * time.Second)
	if s.CheckQuiet(); t.Failed() {
		t.Errorf("%s of work request %d: %#x after %d turns", n.name, n.send, v, turns)
	}
}

// TestRingMutations: a program changes each number of what it shares with urdmad, in a work request, a
// ring or a doorbell, before urdmad reads it and while work is under way. That reaches no memory of
// others, its peer's messages complete, other programs' traffic goes on, and nothing is left of it.
func TestRingMutations(t *testing.T) {
	tries, stride := 0, mutationStride()
	for w, wire := range wires {
		s := newScribbled(t, w)
		s.Post()
		for i, n := range s.numbers() {
			for k := range s.values(&n) {
				for _, turns := range []int{0, 1, 4} {
					if tries++; tries%stride != 0 && (n.key == nil || tries%keyStride != 0) {
						continue
					}
					t.Run(fmt.Sprintf("%s, %s of %d, %d, after %d turns", wire.name, n.name, n.send, k, turns),
						func(t *testing.T) { scribble(t, w, i, k, turns) })
				}
			}
		}
		s.Settle(7, 3)
	}
	t.Logf("%d changes", tries)
}
