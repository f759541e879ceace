package ring

import (
	"errors"
	"math"
	"sync/atomic"
	"time"
	"unsafe"

	"urdma/verbs/abi"
)

// This file has the ring of a capture: a ring of bytes with one writer (urdmad) and one reader.

// Sizes of a capture ring's data, in bytes; powers of two.
const (
	LeastCapture = 1 << 18 // room for several frames of the largest MTU
	MostCapture  = 1 << 28

	recordHead = 40 // struct urdma_abi_capture_record
	maxNote    = 96
)

var _ [recordHead]byte = [unsafe.Sizeof(abi.CaptureRecord{})]byte{}

// ErrRecord says that a capture ring contains data that urdmad does not write.
var ErrRecord = errors.New("ring: capture record is broken")

// CaptureLayout returns the layout of a capture ring of about the size wanted.
func CaptureLayout(wanted uint32) abi.CaptureResponse {
	bytes := uint32(LeastCapture)
	for bytes < wanted && bytes < MostCapture {
		bytes <<= 1
	}
	return abi.CaptureResponse{DataOffset: 4096, DataBytes: bytes}
}

// CaptureWriter is urdmad's side. Begin and End write one record; others may be written in between. The
// reader sees none of them before the last End.
type CaptureWriter struct {
	head  *abi.CaptureRing
	data  []byte
	next  uint64 // position after the last record begun
	lost  uint64
	spent uint64 // ns of the worker's time
	open  int    // records begun and not ended
}

// Begun is a record that was begun and not ended.
type Begun struct {
	at, bytes uint64
	kept      int
}

// Init attaches to the memory that CaptureLayout described.
func (w *CaptureWriter) Init(mem []byte, r *abi.CaptureResponse) {
	*w = CaptureWriter{head: abi.At[abi.CaptureRing](mem, 0), data: mem[r.DataOffset:][:r.DataBytes]}
}

// Begin starts a record and copies the first bytes of a frame, or an event, into it; it uses kind, time,
// direction, device and the whole frame's length from r. False means that there was no room, and the frame is
// counted as lost.
func (w *CaptureWriter) Begin(r abi.CaptureRecord, kept []byte) (Begun, bool) {
	b := Begun{kept: len(kept), bytes: roundUp(recordHead + uint64(len(kept)) + maxNote)}
	at, ok := w.reserve(b.bytes)
	if !ok {
		w.lost++
		atomic.StoreUint64(&w.head.Lost, w.lost)
		return b, false
	}
	b.at, w.next = at, at+b.bytes
	w.open++
	r.KeptBytes, r.NoteBytes, r.Bytes = uint32(len(kept)), 0, uint32(b.bytes)
	*w.record(b) = r
	copy(w.data[w.place(at)+recordHead:], kept)
	return b, true
}

// End completes a record with a note, of which 96 bytes are kept, and shows it to the reader when no other
// record is open. It does not read data that the reader may have changed.
func (w *CaptureWriter) End(b Begun, note string) {
	n := copy(w.data[w.place(b.at)+recordHead+b.kept:][:maxNote], note)
	r := w.record(b)
	r.NoteBytes = uint32(n)
	if w.next == b.at+b.bytes { // the last record gives back the room that its note did not need
		used := roundUp(recordHead + uint64(b.kept) + uint64(n))
		r.Bytes = uint32(used)
		w.next = b.at + used
	}
	if w.open--; w.open == 0 {
		atomic.StoreUint64(&w.head.Head, w.next) // release: partner is the reader's load before it reads the record
	}
}

func (w *CaptureWriter) place(at uint64) int { return int(at % uint64(len(w.data))) }

func (w *CaptureWriter) record(b Begun) *abi.CaptureRecord {
	return abi.At[abi.CaptureRecord](w.data, w.place(b.at))
}

// reserve finds room for a contiguous record, after a SKIP if necessary.
func (w *CaptureWriter) reserve(bytes uint64) (at uint64, ok bool) {
	size := uint64(len(w.data))
	skip := uint64(0)
	if rest := size - w.next%size; rest < bytes {
		skip = rest
	}
	used := w.next - atomic.LoadUint64(&w.head.Tail) // partner: the reader's store after it has read
	if used > size || size-used < skip+bytes {
		return 0, false // full, or the tail is invalid
	}
	if skip > 0 {
		at := w.place(w.next) // the head of a record may be too long for the rest of the ring
		*abi.At[uint32](w.data, at), *abi.At[uint16](w.data, at+4) = uint32(skip), abi.CaptureSkip
	}
	return w.next + skip, true
}

// Spend adds to the time that the writer spent on the capture.
func (w *CaptureWriter) Spend(d time.Duration) {
	w.spent += uint64(d)
	atomic.StoreUint64(&w.head.SpentNs, w.spent)
}

// CaptureReader is the reader's side.
type CaptureReader struct {
	head *abi.CaptureRing
	data []byte
	next uint64
}

// Init attaches to the memory that a CaptureResponse describes; ErrRecord if that is not valid.
func (r *CaptureReader) Init(mem []byte, l *abi.CaptureResponse) error {
	size := uint64(l.DataBytes)
	if l.DataOffset < uint32(abi.Size[abi.CaptureRing]()) || l.DataOffset%8 != 0 || size < LeastCapture ||
		size&(size-1) != 0 ||
		uint64(l.DataOffset)+size > uint64(len(mem)) {
		return ErrRecord
	}
	*r = CaptureReader{head: abi.At[abi.CaptureRing](mem, 0), data: mem[l.DataOffset:][:size]}
	return nil
}

// Lost returns how many frames were lost because there was no room.
func (r *CaptureReader) Lost() uint64 { return atomic.LoadUint64(&r.head.Lost) }

// Spent returns how much time urdmad's worker has spent on the capture.
func (r *CaptureReader) Spent() time.Duration {
	return time.Duration(min(atomic.LoadUint64(&r.head.SpentNs), math.MaxInt64))
}

// Next returns the oldest record that was not released, its frame or event, and its note. They are in the
// ring and valid until Release. ok is false if there is none.
func (r *CaptureReader) Next() (head abi.CaptureRecord, frame, note []byte, ok bool, err error) {
	for {
		have := atomic.LoadUint64(&r.head.Head) - r.next // partner: urdmad's store after the record
		if have == 0 {
			return head, nil, nil, false, nil
		}
		rest := r.data[r.next%uint64(len(r.data)):]
		rest = rest[:min(uint64(len(rest)), have)]
		if len(rest) < 8 {
			return head, nil, nil, false, ErrRecord
		}
		bytes := uint64(*abi.At[uint32](rest, 0))
		if bytes%8 != 0 || bytes < 8 || bytes > uint64(len(rest)) {
			return head, nil, nil, false, ErrRecord
		}
		if *abi.At[uint16](rest, 4) == abi.CaptureSkip {
			r.Release(bytes)
			continue
		}
		return r.record(rest[:bytes])
	}
}

func (r *CaptureReader) record(b []byte) (head abi.CaptureRecord, frame, note []byte, ok bool, err error) {
	if len(b) < recordHead {
		return head, nil, nil, false, ErrRecord
	}
	head = *(*abi.CaptureRecord)(unsafe.Pointer(&b[0]))
	end := recordHead + uint64(head.KeptBytes)
	if head.Kind != abi.CaptureFrame && head.Kind != abi.CaptureEvent || head.KeptBytes > head.FrameBytes ||
		end+uint64(head.NoteBytes) > uint64(len(b)) {
		return head, nil, nil, false, ErrRecord
	}
	return head, b[recordHead:end], b[end : end+uint64(head.NoteBytes)], true, nil
}

// Release returns the bytes of a record from Next to urdmad.
func (r *CaptureReader) Release(bytes uint64) {
	r.next += bytes
	atomic.StoreUint64(&r.head.Tail, r.next) // release: partner is urdmad's load before it writes there
}

func roundUp(n uint64) uint64 { return (n + 7) &^ 7 }
