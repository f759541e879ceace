package enginetest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"urdma/urdmad/core/clock"
	"urdma/verbs/abi"
)

// Load describes a workload in both directions of a connection.
type Load struct {
	Ops      int // work requests per side
	MaxSize  int // bytes of the longest message
	Fallback bool
	Direct   bool // Fallback, but the workers access the memory themselves
	Mixed    bool // each region at random: on the fallback path, in a file of the program, or shared
	NoReads  bool
	SigAll   bool
	// NotReady sends messages before their receives are posted. It needs Options.RNRRetry 7.
	NotReady bool
	// Lag is the pause between two receives of a side, with NotReady.
	Lag time.Duration
}

// Traffic is a running workload. It checks that every work request completes exactly once,
// successfully and in order; that every receive has the bytes that were sent; that everything
// written before a Send is in memory when the Send's receive completes; that a Write is in memory
// when it completes (not with Options.TCP); and that every Read returned the right bytes.
type Traffic struct {
	w     *World
	sides [2]*side
}

// op is one planned work request.
type op struct {
	code     uint32
	signaled bool
	inline   bool
	fence    bool
	sge      []abi.SGE
	content  [][]byte // what the peer, or for a Read we, must have afterwards
	length   int
	imm      uint32
	add      uint64 // atomic: added or compared
	swap     uint64
	found    uint64 // atomic: what was there before
	remote   int    // Write: offset in the peer's sink; Read: in the peer's source
	sends    int    // of this side that take a receive, up to and including this one
}

// receipt is one planned receive: its buffer in pieces.
type receipt struct {
	sge    []abi.SGE
	pieces [][]byte
}

type side struct {
	w     *World
	q     *QP
	peer  *side
	src   *Region              // random bytes; never change
	sink  *Region              // the peer's Writes, each its own range
	inbox *Region              // receives and the results of our Reads and atomics
	words *Region              // the peer's atomics
	model [trafficWords]uint64 // what the peer's words hold once all planned so far is done
	sinkN int
	boxN  int

	plan              []op
	posted, completed int
	recvs             []receipt // one for each Send of the peer
	recvPosted        int
	recvDone          int
	writesChecked     int // plan index of the peer up to which its Writes were checked
	notReady          bool
	lag               clock.Time
	receivedAt        clock.Time // a receive was posted last

	ending               bool // its own end, or its peer's, may fail its work (early.go)
	sendError, recvError *abi.CQE
}

// NewTraffic plans a workload between two connected queue pairs.
func (w *World) NewTraffic(a, b *QP, l Load) *Traffic {
	t := &Traffic{w: w, sides: [2]*side{w.newSide(a, l), w.newSide(b, l)}}
	x, y := t.sides[0], t.sides[1]
	x.peer, y.peer = y, x
	x.makePlan(l)
	y.makePlan(l)
	x.planReceives()
	y.planReceives()
	return t
}

func (w *World) newSide(q *QP, l Load) *side {
	register := func(n int, access uint32) *Region {
		kind := 2
		if l.Mixed {
			kind = w.Rand.IntN(3)
		}
		switch {
		case l.Direct:
			return q.Client.RegisterDirect(n, access)
		case l.Fallback, kind == 0:
			return q.Client.RegisterFallback(n, access)
		case kind == 1:
			return q.Client.RegisterFile(n, access)
		}
		return q.Client.Register(n, access)
	}
	room := min(l.Ops*l.MaxSize/3+4*l.MaxSize, memBytes/5)
	s := &side{w: w, q: q, notReady: l.NotReady, lag: clock.Time(l.Lag), words: register(8*trafficWords,
		abi.AccessLocalWrite|abi.AccessRemoteAtomic), src: register(2*l.MaxSize+1, abi.AccessRemoteRead),
		sink:  register(room, abi.AccessLocalWrite|abi.AccessRemoteWrite),
		inbox: register(2*room, abi.AccessLocalWrite)}
	for i := range s.src.Bytes {
		s.src.Bytes[i] = byte(w.Rand.Uint32())
	}
	return s
}

// trafficWords is how many words a side has for the peer's atomics.
const trafficWords = 3

// size draws a length: often tiny, often around a segment, sometimes long.
func (s *side) size(l Load) int {
	r := s.w.Rand
	switch r.IntN(8) {
	case 0:
		return 0
	case 1, 2:
		return min(r.IntN(64), l.MaxSize)
	case 3, 4:
		return min(1300+r.IntN(300), l.MaxSize)
	case 5:
		return r.IntN(l.MaxSize + 1)
	}
	return r.IntN(min(l.MaxSize, 8000) + 1)
}

// takesReceive reports a work request that completes a receive of the peer's.
func (o *op) takesReceive() bool { return abi.OperationOf(o.code).TakesReceive }

func (o *op) writes() bool { return o.code == abi.WRRDMAWrite || o.code == abi.WRRDMAWriteWithImm }

func (s *side) makePlan(l Load) {
	sends := 0
	for i := range l.Ops {
		o := op{length: s.size(l)}
		o.signaled = l.SigAll || i == l.Ops-1 || s.w.Rand.IntN(3) > 0
		kind := s.w.Rand.IntN(3)
		if l.NoReads {
			kind = s.w.Rand.IntN(2)
		}
		withImm := s.w.Rand.IntN(3) == 0
		switch {
		case kind == 1 && s.peer.sinkN+o.length <= len(s.peer.sink.Bytes):
			o.code, o.remote = abi.WRRDMAWrite, s.peer.sinkN
			if withImm {
				o.code, o.imm = abi.WRRDMAWriteWithImm, s.w.Rand.Uint32()
				sends++
			}
			s.peer.sinkN += o.length
			s.fillSource(&o)
		case kind == 2 && s.boxN+o.length <= len(s.inbox.Bytes)/2:
			o.code = abi.WRRDMARead
			if s.w.Rand.IntN(3) == 0 {
				s.planAtomic(&o)
			}
			s.fillRead(&o)
		default:
			o.code = abi.WRSend
			if withImm {
				o.code, o.imm = abi.WRSendWithImm, s.w.Rand.Uint32()
			}
			sends++
			s.fillSource(&o)
		}
		o.fence = s.w.Rand.IntN(8) == 0
		o.sends = sends
		s.plan = append(s.plan, o)
	}
}

// planAtomic makes o an atomic operation, whose outcome is known: nobody else
// changes these words, and those of a connection are carried out in order.
func (s *side) planAtomic(o *op) {
	r, i := s.w.Rand, s.w.Rand.IntN(trafficWords)
	word := &s.model[i]
	o.length, o.remote, o.found = 8, 8*i, *word
	if r.IntN(2) == 0 {
		o.code, o.add = abi.WRAtomicFetchAndAdd, r.Uint64()
		*word += o.add
		return
	}
	o.code, o.add, o.swap = abi.WRAtomicCmpAndSwp, *word, r.Uint64()
	if r.IntN(3) == 0 {
		o.add++ // not what is there
	} else {
		*word = o.swap
	}
}

func (o *op) atomic() bool { return abi.OperationOf(o.code).Atomic }

// cut cuts n into up to most parts.
func (s *side) cut(n, most int) []int {
	parts := 1 + s.w.Rand.IntN(most)
	if s.w.Rand.IntN(2) == 0 {
		parts = 1
	}
	var out []int
	for i := 1; i < parts; i++ {
		k := s.w.Rand.IntN(n + 1)
		out, n = append(out, k), n-k
	}
	return append(out, n)
}

func (s *side) fillSource(o *op) {
	if o.length <= s.q.Ring.SQ.MaxInline() && s.w.Rand.IntN(2) == 0 {
		at := s.w.Rand.IntN(len(s.src.Bytes) - o.length)
		o.inline, o.content = true, [][]byte{s.src.Bytes[at : at+o.length]}
		return
	}
	for _, n := range s.cut(o.length, s.q.Ring.SQ.MaxSGE()) {
		at := s.w.Rand.IntN(len(s.src.Bytes) - n)
		o.sge = append(o.sge, s.src.SGE(at, n))
		o.content = append(o.content, s.src.Bytes[at:at+n])
	}
}

func (s *side) fillRead(o *op) {
	if !o.atomic() {
		o.remote = s.w.Rand.IntN(len(s.peer.src.Bytes) - o.length)
	}
	for _, n := range s.cut(o.length, s.q.Ring.SQ.MaxSGE()) {
		o.sge = append(o.sge, s.inbox.SGE(s.boxN, n))
		o.content = append(o.content, s.inbox.Bytes[s.boxN:s.boxN+n])
		s.boxN += n
	}
}

func (s *side) planReceives() {
	for i := range s.peer.plan {
		o := &s.peer.plan[i]
		if !o.takesReceive() {
			continue
		}
		r := receipt{}
		room := o.length + s.w.Rand.IntN(3)*s.w.Rand.IntN(50)
		if s.boxN+room > len(s.inbox.Bytes) {
			s.boxN = len(s.inbox.Bytes) / 2 // use it again: those before were checked long ago
		}
		for _, n := range s.cut(room, s.q.Ring.RQ.MaxSGE()) {
			r.sge = append(r.sge, s.inbox.SGE(s.boxN, n))
			r.pieces = append(r.pieces, s.inbox.Bytes[s.boxN:s.boxN+n])
			s.boxN += n
		}
		s.recvs = append(s.recvs, r)
	}
}

// Run runs the workload to its end.
func (t *Traffic) Run(limit time.Duration) {
	t.w.T.Helper()
	t.w.Until("traffic", limit, t.Step)
	if t.w.opt.TCP {
		t.w.Pass(time.Millisecond)
	}
	for _, s := range t.sides {
		s.checkWrites(len(s.peer.plan))
		s.checkWords()
	}
}

// checkWords checks what the peer's atomics have made of our words: each was
// carried out once.
func (s *side) checkWords() {
	s.w.T.Helper()
	for i, want := range s.peer.model {
		if got := binary.NativeEndian.Uint64(s.words.Bytes[8*i:]); got != want {
			s.fail("word %d is %#x, expected %#x", i, got, want)
		}
	}
}

// Step posts and polls once; it returns true when everything is done.
func (t *Traffic) Step() bool {
	t.w.T.Helper()
	done := true
	for _, s := range t.sides {
		s.post()
		s.poll()
		done = done && s.completed == len(s.plan) && s.recvDone == len(s.recvs)
	}
	return done
}

func (s *side) post() {
	rang := false
	n := s.w.Rand.IntN(8)
	switch {
	case s.lag > 0 && s.w.Now()-s.receivedAt < s.lag, s.lag == 0 && s.notReady && s.w.Rand.IntN(40) > 0:
		n = 0
	case s.lag > 0:
		n, s.receivedAt = 1, s.w.Now()
	}
	for ; n > 0 && s.recvPosted < len(s.recvs) && s.q.Ring.RQ.Free() > 0; n-- {
		s.q.Ring.RQ.Write(uint64(s.recvPosted), s.recvs[s.recvPosted].sge)
		s.recvPosted++
	}
	s.q.Ring.RQ.Publish()
	for n := s.w.Rand.IntN(8); n > 0 && s.posted < len(s.plan) && s.q.Ring.SQ.Free() > 0; n-- {
		o := &s.plan[s.posted]
		if o.takesReceive() && o.sends > s.peer.recvPosted && !s.notReady {
			break // the peer has no receive for it yet
		}
		s.write(o)
		s.posted++
		rang = true
	}
	if rang {
		s.q.Ring.SQ.Publish()
		s.q.Bell()
	}
}

func (s *side) write(o *op) {
	w := abi.SQE{WRID: uint64(s.posted), Opcode: o.code, ImmOrSTag: o.imm}
	if o.signaled {
		w.Flags |= abi.SendSignaled
	}
	if o.fence {
		w.Flags |= abi.SendFence
	}
	switch {
	case o.writes():
		w.RKey, w.RemoteAddr = uint32(s.peer.sink.STag), s.peer.sink.Base()+uint64(o.remote)
	case o.atomic():
		w.RKey, w.RemoteAddr = uint32(s.peer.words.STag), s.peer.words.Base()+uint64(o.remote)
		w.CompareAdd, w.Swap = o.add, o.swap
	case o.code == abi.WRRDMARead:
		w.RKey, w.RemoteAddr = uint32(s.peer.src.STag), s.peer.src.Base()+uint64(o.remote)
	}
	ok := false
	if o.inline {
		ok = s.q.Ring.SQ.WriteInline(&w, o.content...)
	} else {
		ok = s.q.Ring.SQ.Write(&w, o.sge)
	}
	if !ok {
		s.w.T.Fatalf("work request %d: no room in a ring that has some", s.posted)
	}
}

func (s *side) poll() {
	for _, e := range s.q.Send.Poll() {
		s.sendCompleted(&e)
	}
	for _, e := range s.q.Recv.Poll() {
		s.recvCompleted(&e)
	}
}

func (s *side) fail(what string, args ...any) {
	s.w.T.Helper()
	s.w.T.Fatalf("%s at %v: %s", s.q.Client.E.Name, time.Duration(s.w.Now()), fmt.Sprintf(what, args...))
}

func (s *side) sendCompleted(e *abi.CQE) {
	s.w.T.Helper()
	if s.over(&s.sendError, e) {
		return
	}
	for s.completed < s.posted && !s.plan[s.completed].signaled {
		s.checkRead(s.completed)
		s.completed++
	}
	if e.Status != abi.StatusSuccess || s.completed >= s.posted || e.WRID != uint64(s.completed) {
		s.fail("completion %+v, expected success of %d (%d posted)", *e, s.completed, s.posted)
	}
	s.checkRead(s.completed)
	s.completed++
	if !s.w.opt.TCP { // there the kernel has it
		s.peer.checkWrites(s.completed)
	}
}

// checkRead compares what a Read brought with the peer's source.
func (s *side) checkRead(i int) {
	s.w.T.Helper()
	o := &s.plan[i]
	if o.atomic() {
		if got := binary.NativeEndian.Uint64(bytes.Join(o.content, nil)); got != o.found {
			s.fail("atomic %d found %#x, expected %#x", i, got, o.found)
		}
		return
	}
	if o.code != abi.WRRDMARead {
		return
	}
	want := s.peer.src.Bytes[o.remote : o.remote+o.length]
	if got := bytes.Join(o.content, nil); !bytes.Equal(got, want) {
		s.fail("Read %d of %d bytes differs first at %d", i, o.length, firstDifference(got, want))
	}
}

func (s *side) recvCompleted(e *abi.CQE) {
	s.w.T.Helper()
	if s.over(&s.recvError, e) {
		return
	}
	i := s.peer.indexOfSend(s.recvDone)
	o := &s.peer.plan[i]
	want := bytes.Join(o.content, nil)
	if e.Status != abi.StatusSuccess || e.WRID != uint64(s.recvDone) || !announces(e, o) {
		s.fail("completion %+v, expected receive %d of %+v", *e, s.recvDone, *o)
	}
	if o.writes() {
		s.recvDone++
		s.checkWrites(i + 1)
		return
	}
	got := bytes.Join(s.recvs[s.recvDone].pieces, nil)
	if int(e.ByteLen) != len(want) || !bytes.Equal(got[:len(want)], want) {
		s.fail("receive %d: %d bytes, expected %d; first difference at %d", s.recvDone, e.ByteLen, len(want),
			firstDifference(got, want))
	}
	s.recvDone++
	s.checkWrites(i)
}

// announces reports whether a receive's completion says what it must of o.
func announces(e *abi.CQE, o *op) bool {
	opcode, flags := uint32(abi.WCRecv), uint32(0)
	if o.writes() {
		opcode = abi.WCRecvRDMAWithImm
	}
	if abi.OperationOf(o.code).Immediate {
		flags = abi.WCWithImm
	}
	return e.Opcode == opcode && e.WCFlags == flags && e.ImmOrSTag == o.imm && int(e.ByteLen) == o.length
}

func (s *side) indexOfSend(n int) int {
	for i := range s.plan {
		if o := &s.plan[i]; o.takesReceive() && o.sends == n+1 {
			return i
		}
	}
	return -1
}

// checkWrites checks the peer's Writes up to work request i.
func (s *side) checkWrites(i int) {
	s.w.T.Helper()
	for ; s.writesChecked < i; s.writesChecked++ {
		o := &s.peer.plan[s.writesChecked]
		if !o.writes() {
			continue
		}
		want := bytes.Join(o.content, nil)
		if got := s.sink.Bytes[o.remote : o.remote+o.length]; !bytes.Equal(got, want) {
			s.fail("Write %d of %d bytes differs first at %d", s.writesChecked, o.length, firstDifference(got, want))
		}
	}
}

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}
