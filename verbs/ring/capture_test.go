package ring_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

func captureRing(t testing.TB) (w ring.CaptureWriter, r ring.CaptureReader, mem []byte) {
	l := ring.CaptureLayout(1)
	mem = make([]byte, int(l.DataOffset)+int(l.DataBytes))
	w.Init(mem, &l)
	if err := r.Init(mem, &l); err != nil {
		t.Fatal(err)
	}
	return w, r, mem
}

// frameOf returns a frame whose bytes depend on its number.
func frameOf(n, length int) []byte {
	b := make([]byte, length)
	for i := range b {
		b[i] = byte(n*31 + i)
	}
	return b
}

// take reads one record and compares it with the frame written.
func take(t *testing.T, r *ring.CaptureReader, n, length, kept int, note string) {
	t.Helper()
	head, frame, said, ok, err := r.Next()
	if err != nil || !ok {
		t.Fatalf("record %d: there %v, %v", n, ok, err)
	}
	if head.TimeNs != uint64(n) || int(head.FrameBytes) != length || !bytes.Equal(frame, frameOf(n, length)[:kept]) ||
		string(said) != note {
		t.Fatalf("record %d: %+v, %d bytes, note %q; expected %d of %d bytes, note %q", n, head, len(frame), said, kept,
			length, note)
	}
	r.Release(uint64(head.Bytes))
}

// TestCaptureIsWhatWasWritten fills the ring again and again with frames of all lengths, some truncated, some
// with notes, some begun before another has ended.
func TestCaptureIsWhatWasWritten(t *testing.T) {
	random := seeded(t)
	w, r, _ := captureRing(t)
	type written struct {
		n, length, kept int
		note            string
	}
	var have []written
	n, wrapped := 0, 0
	begin := func() (ring.Begun, string, bool) {
		v := written{n: n, length: random.IntN(9100)}
		v.kept = random.IntN(v.length + 1)
		if random.IntN(3) == 0 {
			v.note = strings.Repeat("x", random.IntN(97))
		}
		n++
		b, ok := w.Begin(abi.CaptureRecord{Kind: abi.CaptureFrame, TimeNs: uint64(v.n), FrameBytes: uint32(v.length)},
			frameOf(v.n, v.length)[:v.kept])
		if ok {
			have = append(have, v)
		}
		return b, v.note, ok
	}
	lost := uint64(0)
	for wrapped < 20 {
		outer, note, ok := begin()
		if !ok {
			lost++
			wrapped++
			for _, v := range have {
				take(t, &r, v.n, v.length, v.kept, v.note)
			}
			have = have[:0]
			continue
		}
		if random.IntN(4) == 0 {
			if inner, note, ok := begin(); ok {
				w.End(inner, note)
			} else {
				lost++
			}
		}
		w.End(outer, note)
	}
	if _, _, _, ok, err := r.Next(); ok || err != nil {
		t.Fatalf("a record that was not written: %v", err)
	}
	if r.Lost() != lost {
		t.Errorf("%d frames are said to be lost, %d were", r.Lost(), lost)
	}
}

// TestCaptureHidesWhatHasNotEnded: of two nested records, neither is visible before the outer one has ended.
func TestCaptureHidesWhatHasNotEnded(t *testing.T) {
	w, r, _ := captureRing(t)
	outer, _ := w.Begin(abi.CaptureRecord{Kind: abi.CaptureFrame, TimeNs: 1, FrameBytes: 10}, frameOf(1, 10))
	inner, _ := w.Begin(abi.CaptureRecord{Kind: abi.CaptureFrame, TimeNs: 2, FrameBytes: 20}, frameOf(2, 20))
	w.End(inner, "inner")
	if _, _, _, ok, _ := r.Next(); ok {
		t.Fatal("a record is there before the one in front of it has ended")
	}
	w.End(outer, "outer")
	take(t, &r, 1, 10, 10, "outer")
	take(t, &r, 2, 20, 20, "inner")
}

// TestCaptureBothAtOnce runs writer and reader in separate goroutines, so that -race checks all accesses.
func TestCaptureBothAtOnce(t *testing.T) {
	w, r, _ := captureRing(t)
	const total = 20000
	go func() {
		for n := 0; n < total; {
			b, ok := w.Begin(abi.CaptureRecord{Kind: abi.CaptureFrame, TimeNs: uint64(n), FrameBytes: 1000}, frameOf(n, 1000))
			if !ok {
				runtime.Gosched()
				continue
			}
			w.End(b, fmt.Sprint(n))
			n++
		}
	}()
	for n := 0; n < total; {
		head, frame, note, ok, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			runtime.Gosched()
			continue
		}
		if head.TimeNs != uint64(n) || string(note) != fmt.Sprint(n) || !bytes.Equal(frame, frameOf(n, 1000)) {
			t.Fatalf("record %d: %+v %q", n, head, note)
		}
		r.Release(uint64(head.Bytes))
		n++
	}
}

// TestCaptureWithAHostileReader: whatever a reader writes into the ring, urdmad only writes inside the ring,
// or loses the frame.
func TestCaptureWithAHostileReader(t *testing.T) {
	random := seeded(t)
	w, _, mem := captureRing(t)
	l := ring.CaptureLayout(1)
	guard := append([]byte(nil), frameOf(7, 64)...)
	mem = append(mem, guard...)
	w.Init(mem, &l)
	for range 20000 {
		for range random.IntN(3) {
			*abi.At[uint64](mem, 8*random.IntN(4096/8)) = random.Uint64() >> random.IntN(64)
		}
		if random.IntN(2) == 0 { // a tail near the head is accepted more often
			*abi.At[uint64](mem, 64) = *abi.At[uint64](mem, 0) - uint64(random.IntN(1<<18))
		}
		length := random.IntN(9100)
		b, ok := w.Begin(abi.CaptureRecord{Kind: abi.CaptureFrame, FrameBytes: uint32(length)}, frameOf(1, length))
		*abi.At[uint64](mem, 4096+8*random.IntN(1<<15)) = random.Uint64()
		if ok {
			w.End(b, "note")
		}
	}
	if !bytes.Equal(mem[len(mem)-len(guard):], guard) {
		t.Fatal("urdmad wrote behind the ring")
	}
}

// TestCaptureReaderRefusesNonsense: an invalid ring leads to an error, not a panic.
func TestCaptureReaderRefusesNonsense(t *testing.T) {
	random := seeded(t)
	for range 2000 {
		_, r, mem := captureRing(t)
		for i := range 64 {
			*abi.At[uint64](mem, 4096+8*i) = random.Uint64() >> random.IntN(64)
		}
		*abi.At[uint64](mem, 0) = random.Uint64() >> random.IntN(64)
		for range 100 {
			head, _, _, ok, err := r.Next()
			if err != nil || !ok {
				break
			}
			r.Release(uint64(head.Bytes))
		}
	}
	for _, l := range []abi.CaptureResponse{{}, {DataOffset: 4096}, {DataOffset: 4096, DataBytes: 1<<18 + 8},
		{DataOffset: 4, DataBytes: 1 << 18},
		{DataOffset: 4096, DataBytes: 1 << 20}, {DataOffset: 0xfffffff8, DataBytes: 1 << 18}} {
		var r ring.CaptureReader
		if r.Init(make([]byte, 4096+1<<18), &l) == nil {
			t.Errorf("%+v was taken for a ring", l)
		}
	}
}
