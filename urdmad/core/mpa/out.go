package mpa

import (
	"encoding/binary"

	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rdmap"
	"urdma/verbs/abi"
	"urdma/wire"

	"golang.org/x/sys/unix"
)

const (
	// burst is the most FPDUs that leave in one system call, and sendBudget the most bytes that a
	// connection passes to the kernel in a turn. It is less than receiveBudget, so that the queue at a
	// receiver with as many turns gets shorter: bytes that have waited in a long queue are no longer in the
	// processor's cache when they are read.
	burst      = 64
	sendBudget = 256 << 10
	burstBytes = 256 << 10
	copiesLen  = burstBytes + maxSegment
	// around is the greatest length of an FPDU without its payload: length field, header with the body of an
	// atomic request, padding, CRC.
	around = wire.FPDUHeaderLen + wire.UntaggedLen + wire.AtomicRequestLen + 3 + wire.FPDUCRCLen
	// shortPayload is the greatest length of a payload that is copied behind its header: another part costs
	// the kernel more.
	shortPayload = 512
	arenaLen     = burst * (around + shortPayload)
)

// outbound is the composed data that the kernel has not taken yet.
type outbound struct {
	arena  []byte // headers, short payloads, padding and CRCs; from the stack's pool, nil while it is empty
	used   int
	vec    [][]byte // the first and the last part of a burst are in the arena
	first  int      // index in vec: earlier parts were taken
	copies []byte   // copied payloads, for FPDUs with a CRC; from the stack's pool
	copied int
	fpdus  []sent
	taken  uint64 // bytes that the kernel took
	whole  uint64 // end of the last FPDU that the kernel took completely
	total  uint64 // bytes composed
	mark   uint64 // of the last segment
	full   bool   // the socket's send buffer is full
}

// sent is a composed FPDU.
type sent struct {
	end   uint64 // outbound.total after it
	mark  uint64
	token uint64
}

func (o *outbound) empty() bool { return o.first == len(o.vec) }

// Transmit implements qp.Carrier.
func (c *Conn) Transmit() (n int) {
	if c.now() < c.headStart {
		return 0
	}
	for left := sendBudget; left > 0 && c.live(); {
		if c.out.empty() && !c.compose() {
			break
		}
		moved, ok := c.flush()
		n++
		left -= moved
		c.s.table.Spend(moved)
		if !ok {
			break
		}
		if left <= 0 {
			c.s.table.Ready(c.QP)
		}
	}
	return n
}

// compose composes FPDUs from what the stream has to send; it returns false if there is nothing.
func (c *Conn) compose() bool {
	o := &c.out
	begun := o.total
	for len(o.fpdus) < burst && o.total-begun < burstBytes && c.stream.Ready() {
		if o.arena == nil {
			o.arena = c.s.arenas.take()
		}
		if !c.composeNext() {
			break
		}
	}
	return c.live() && !o.empty()
}

// composeNext appends an FPDU. What is adjacent in the arena, also of two FPDUs, is one part.
func (c *Conn) composeNext() bool {
	o := &c.out
	token := c.stream.Next()
	head, vec := o.used, o.vec
	if len(vec) == 0 {
		vec = append(vec, o.arena[:0])
	}
	parts := len(vec)
	n, vec, ok := c.stream.Compose(o.arena[head+wire.FPDUHeaderLen:], vec, token)
	if !ok {
		c.revoked(token)
		return false
	}
	inArena, payload := wire.FPDUHeaderLen+n, length(vec[parts:])
	if n += payload; payload <= shortPayload {
		inArena += c.copyParts(o.arena[head+inArena:], vec[parts:])
		vec = vec[:parts]
	} else if c.terms.CRC {
		vec = append(vec[:parts], c.copyPayload(vec[parts:]))
	}
	o.vec = vec // not before: copying may end in a fault
	o.extend(parts-1, inArena)
	binary.BigEndian.PutUint16(o.arena[head:], uint16(n))
	o.trailer(c.terms.CRC, head, o.vec[parts:], n)
	o.total += uint64(wire.FPDULen(n))
	o.mark++
	c.stream.Sent(token, o.mark)
	o.fpdus = append(o.fpdus, sent{o.total, o.mark, token})
	return true
}

// extend adds the next n bytes of the arena to a part that ends there.
func (o *outbound) extend(part, n int) {
	o.vec[part] = o.vec[part][:len(o.vec[part])+n]
	o.used += n
}

func length(parts [][]byte) (n int) {
	for _, b := range parts {
		n += len(b)
	}
	return n
}

// copyPayload copies a payload: the program may change its memory before the kernel has taken it, and the CRC
// would be wrong.
func (c *Conn) copyPayload(parts [][]byte) []byte {
	o := &c.out
	if o.copies == nil {
		o.copies = c.s.copies.take()
	}
	begin := o.copied
	o.copied += c.copyParts(o.copies[begin:], parts)
	return o.copies[begin:o.copied]
}

func (c *Conn) copyParts(to []byte, parts [][]byte) (n int) {
	c.placing = true
	for _, b := range parts {
		n += copy(to[n:], b)
	}
	c.placing = false
	return n
}

// trailer ends the FPDU of n bytes that begins at head in the arena and has the payload apart, if any, elsewhere:
// with padding and the CRC, or zeros in place of the CRC.
func (o *outbound) trailer(crc bool, head int, apart [][]byte, n int) {
	t := o.arena[o.used : o.used+wire.FPDUPadding(n)+wire.FPDUCRCLen]
	clear(t)
	if crc {
		sum := wire.FPDUCRC(0, o.arena[head:o.used])
		for _, b := range apart {
			sum = wire.FPDUCRC(sum, b)
		}
		padding := len(t) - wire.FPDUCRCLen
		sum = wire.FPDUCRC(sum, t[:padding])
		binary.LittleEndian.PutUint32(t[padding:], sum)
	}
	if len(apart) > 0 {
		o.vec = append(o.vec, o.arena[o.used:o.used])
	}
	o.extend(len(o.vec)-1, len(t))
}

// flush passes the composed data to the kernel. ok is false if the kernel takes no more now, or if the
// connection has ended.
func (c *Conn) flush() (moved int, ok bool) {
	o := &c.out
	for !o.empty() {
		if c.live() && c.deadSource() {
			return moved, false
		}
		n, errno := c.s.vector.send(c.fd, o.vec[o.first:])
		switch errno {
		case 0:
		case unix.EINTR:
			continue
		case unix.EAGAIN, unix.ENOBUFS:
			o.full = true
			c.watch()
			return moved, false
		case unix.EFAULT:
			c.faulted()
			return moved, false
		default:
			c.lost(errno)
			return moved, false
		}
		moved += n
		c.took(n)
		c.startSilence()
	}
	if o.full {
		o.full = false
		if c.state == connTerminating {
			c.shut()
		} else {
			c.watch()
		}
	}
	return moved, true
}

// took records that the kernel took n bytes: work requests whose FPDUs it has taken completely are done.
func (c *Conn) took(n int) {
	o := &c.out
	o.taken += uint64(n)
	for n > 0 {
		b := o.vec[o.first]
		if n < len(b) {
			o.vec[o.first] = b[n:]
			break
		}
		n -= len(b)
		o.first++
	}
	var mark uint64
	done := 0
	for ; done < len(o.fpdus) && o.fpdus[done].end <= o.taken; done++ {
		mark, o.whole = o.fpdus[done].mark, o.fpdus[done].end
	}
	o.fpdus = append(o.fpdus[:0], o.fpdus[done:]...)
	if o.empty() {
		o.reset(c.s)
	}
	if mark != 0 && c.live() {
		c.carried(mark)
	}
}

// reset makes room for the next burst.
func (o *outbound) reset(s *Stack) {
	clear(o.vec)
	o.vec, o.first, o.fpdus, o.used, o.copied = o.vec[:0], 0, o.fpdus[:0], 0, 0
	if o.copies != nil {
		s.copies.put(o.copies)
		o.copies = nil
	}
	if o.arena != nil {
		s.arenas.put(o.arena)
		o.arena = nil
	}
}

// keepBegun drops the composed data, except for the rest of an FPDU that the kernel has taken partly. That
// is copied, because its memory soon belongs to the program again. It returns false if the memory already
// does, so that nothing can follow on the stream.
func (c *Conn) keepBegun() bool {
	o := &c.out
	if o.empty() {
		return true
	}
	vec, rest, f := o.vec[o.first:], 0, o.fpdus[0]
	if o.taken > o.whole || f.mark == 0 { // or bytes that are not an FPDU, at the start of a connection
		rest = int(f.end - o.taken)
	}
	kept := rest == 0 || f.mark == 0 || c.reason != qp.CloseTerminated && c.QP.State() == abi.QPSRTS &&
		!c.stream.Dead(f.token)
	o.total, o.vec, o.full = o.taken, nil, false
	o.reset(c.s)
	if !kept || rest == 0 {
		return kept
	}
	b := make([]byte, 0, rest)
	for ; len(b) < rest; vec = vec[1:] {
		b = append(b, vec[0][:min(len(vec[0]), rest-len(b))]...)
	}
	o.put(b)
	o.full = true
	return true
}

// deadSource ends the connection if memory was deregistered before the kernel took it: the FPDU that was
// begun can't be finished.
func (c *Conn) deadSource() bool {
	for i := range c.out.fpdus {
		if f := &c.out.fpdus[i]; f.mark != 0 && c.stream.Dead(f.token) {
			c.stream.Revoked(f.token)
			c.abort()
			return true
		}
	}
	return false
}

// put appends bytes other than a segment's FPDU: a request, a reply, a Terminate.
func (o *outbound) put(b []byte) {
	o.vec = append(o.vec, b)
	o.total += uint64(len(b))
	o.fpdus = append(o.fpdus, sent{end: o.total})
}

// fpdu returns the FPDU of a segment.
func fpdu(segment []byte, crc bool) []byte {
	b := make([]byte, wire.FPDULen(len(segment)))
	binary.BigEndian.PutUint16(b, uint16(len(segment)))
	copy(b[wire.FPDUHeaderLen:], segment)
	if end := len(b) - wire.FPDUCRCLen; crc {
		binary.LittleEndian.PutUint32(b[end:], wire.FPDUCRC(0, b[:end]))
	}
	return b
}

// terminate refuses received data with a Terminate, sent after the composed FPDUs. seg is nil if the error
// is in no particular segment.
func (c *Conn) terminate(code wire.TermCode, seg *rdmap.Segment, v rdmap.Verdict) {
	c.s.log.Info("segment refused", "qpn", c.QP.QPN, "client", c.QP.Client.Name, "peer", c.Peer.String(), "cause",
		code.String())
	var message []byte
	if seg != nil {
		message = c.stream.Refusal(seg, v)
	} else {
		message = c.stream.RefuseStream(code)
	}
	c.endWith(fpdu(message, c.terms.CRC), code)
}
