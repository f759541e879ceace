package mpa

import (
	"encoding/binary"

	"urdma/urdmad/core/rdmap"
	"urdma/wire"

	"golang.org/x/sys/unix"
)

const (
	// bufferLen is the length of the receive buffer: two FPDUs of the greatest length.
	bufferLen = 128 << 10
	// inPieces is the length of an FPDU from which on its remaining payload is read directly to its
	// destination.
	inPieces = 4096
	// longFPDU is the length of an FPDU from which on the kernel is asked for little more than its payload,
	// so that no payload of the next one is read into the buffer, from which it would be copied again. For
	// shorter FPDUs a copy costs less than a system call each.
	longFPDU = 32 << 10
	// alongLong is how much more is read: short FPDUs between long ones, and the header of the next.
	alongLong = 512
	// fewShort is the number of short FPDUs after which the next one is not expected to be long.
	fewShort = 4
	// headRoom is free space in the buffer before the unread data, for the header of a piece.
	headRoom = wire.UntaggedLen
	// receiveBudget bounds the bytes that one connection receives in a turn.
	receiveBudget = 512 << 10
)

// inbound is the data that have arrived but are not placed.
type inbound struct {
	buf  []byte // bufferLen bytes from the stack's pool; nil while it is empty
	r, w int    // buf[r:w] is unread

	// State of an FPDU that is placed in pieces while the rest still arrives.
	pieces  bool
	head    [wire.UntaggedLen]byte // the DDP header of the next piece
	headLen int
	d       wire.DDP // that header, parsed
	left    int      // bytes of payload still to arrive
	padding int
	crc     uint32 // of the bytes that have arrived

	short     int    // short FPDUs since the last long one
	delivered uint64 // DDP segments

	vec [][]byte // scratch
}

func (in *inbound) waiting() []byte { return in.buf[in.r:in.w] }

// advance moves the header of the next piece n bytes further.
func (in *inbound) advance(n int) {
	if in.left -= n; in.d.Tagged {
		in.d.TO += uint64(n)
	} else {
		in.d.MO += uint32(n)
	}
	in.d.Put(in.head[:])
}

// receive reads what the kernel has, within a budget, and returns the number of bytes.
func (c *Conn) receive() (total int) {
	for total < receiveBudget && c.receives() {
		in := &c.in
		if in.buf == nil {
			in.buf = c.s.buffers.take()
			in.r, in.w = headRoom, headRoom
		}
		if in.r > headRoom && bufferLen-in.w < bufferLen/2 {
			in.w = headRoom + copy(in.buf[headRoom:], in.waiting())
			in.r = headRoom
		}
		vec, direct := in.vec[:0], 0
		if in.pieces && in.r == in.w && in.left > 0 {
			vec = c.stream.Room(vec, &in.d, in.left)
			for _, b := range vec {
				direct += len(b)
			}
		}
		room := in.buf[in.w:]
		if in.short < fewShort && in.w-in.r < alongLong && (!in.pieces || direct == in.left) {
			room = room[:min(len(room), alongLong)]
		}
		vec = append(vec, room)
		in.vec = vec
		n, errno := c.s.vector.receive(c.fd, vec)
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.EAGAIN:
			c.idle()
			return total
		case errno == unix.EFAULT:
			c.faulted()
			return total
		case errno != 0:
			c.lost(errno)
			return total
		case n == 0:
			c.ended()
			return total
		}
		total += n
		c.s.table.Spend(n)
		if straight := min(n, direct); straight > 0 {
			in.filled(c, vec, straight)
			n -= straight
		}
		in.w += n
		c.answered() // before those data complete: perftest then posts a second send to a queue of length one
		c.consume()
		if n < len(room) { // the socket is empty
			c.idle()
			return total
		}
	}
	return total
}

// filled records that the kernel has filled the first n bytes of vec.
func (in *inbound) filled(c *Conn, vec [][]byte, n int) {
	if c.terms.CRC {
		c.placing = true
		for left, i := n, 0; left > 0; i++ {
			b := vec[i][:min(left, len(vec[i]))]
			in.crc = wire.FPDUCRC(in.crc, b)
			left -= len(b)
		}
		c.placing = false
	}
	c.stream.Filled(&in.d, n)
	in.advance(n)
}

// idle returns the buffer to the pool while it is empty.
func (c *Conn) idle() {
	if in := &c.in; in.buf != nil && in.r == in.w {
		c.s.buffers.put(in.buf)
		in.buf, in.r, in.w = nil, 0, 0
	}
}

// consume places the data in the buffer as far as possible.
func (c *Conn) consume() {
	for c.live() && !c.rnr.Waiting() && c.next() {
	}
	if c.live() && c.stream.More() {
		c.s.table.Ready(c.QP) // a Read may have to be answered, or a fence may have ended
	}
	if in := &c.in; in.buf != nil && in.r == in.w {
		in.r, in.w = headRoom, headRoom
	}
}

// next places the next FPDU, or a piece of it. It returns false if more data must arrive first, if it waits
// for a receive, or if the connection has ended.
func (c *Conn) next() bool {
	in := &c.in
	if in.pieces {
		return c.nextPiece()
	}
	b := in.waiting()
	if len(b) < wire.FPDUHeaderLen {
		return false
	}
	n := int(binary.BigEndian.Uint16(b))
	total := wire.FPDULen(n)
	if len(b) < total {
		return c.beginPieces(b, n)
	}
	end := total - wire.FPDUCRCLen
	if c.terms.CRC && wire.FPDUCRC(0, b[:end]) != binary.LittleEndian.Uint32(b[end:]) {
		c.terminate(wire.TermMPACRC, nil, rdmap.Verdict{})
		return false
	}
	segment := b[wire.FPDUHeaderLen : wire.FPDUHeaderLen+n]
	if !c.deliver(&rdmap.Segment{Head: segment, Data: segment}) {
		return false
	}
	in.r += total
	in.short++
	in.delivered++
	return true
}

// beginPieces places the beginning of a long FPDU whose end has not arrived.
func (c *Conn) beginPieces(b []byte, n int) bool {
	in := &c.in
	if n < inPieces || len(b) < wire.FPDUHeaderLen+wire.UntaggedLen {
		return false
	}
	b = b[wire.FPDUHeaderLen:]
	at, err := in.d.Parse(b)
	if err != nil || !rdmap.InPieces(&in.d) {
		return false // Deliver reports the error once the whole FPDU is there
	}
	size := min(len(b), n) - at
	if size == n-at { // everything except the end of the FPDU has arrived
		return false
	}
	if !c.deliver(&rdmap.Segment{Head: b[:at+size], Data: b[:at+size], More: n - at - size}) {
		return false
	}
	in.pieces, in.headLen, in.left, in.padding = true, at, n-at, wire.FPDUPadding(n)
	if in.short++; n >= longFPDU {
		in.short = 0
	}
	if c.terms.CRC {
		in.crc = wire.FPDUCRC(0, in.buf[in.r:in.r+wire.FPDUHeaderLen+at+size])
	}
	in.advance(size)
	in.r += wire.FPDUHeaderLen + at + size
	return true
}

// nextPiece places the bytes that have arrived of an FPDU that is placed in pieces. The last piece, which
// may be empty, completes the segment, so it waits for the CRC.
func (c *Conn) nextPiece() bool {
	in := &c.in
	b := in.waiting()
	trailer := in.padding + wire.FPDUCRCLen
	n := min(len(b), in.left)
	last := len(b) >= in.left+trailer
	if !last && n == in.left { // keep the last piece for the end
		return false
	}
	if last {
		end := in.left + in.padding
		if c.terms.CRC && wire.FPDUCRC(in.crc, b[:end]) != binary.LittleEndian.Uint32(b[end:]) {
			c.terminate(wire.TermMPACRC, nil, rdmap.Verdict{})
			return false
		}
	}
	if n == 0 && !last {
		return false
	}
	piece := rdmap.Segment{Head: in.head[:in.headLen], Data: in.buf[in.r-in.headLen : in.r+n], More: in.left - n}
	if !c.deliver(&piece) {
		return false
	}
	if c.terms.CRC {
		in.crc = wire.FPDUCRC(in.crc, b[:n])
	}
	in.advance(n)
	in.r += n
	if last {
		in.pieces = false
		in.delivered++
		in.r += trailer
	}
	return true
}

// deliver passes a segment, or a piece of one, to the stream. It returns false if it can't be placed now,
// or if the connection has ended.
func (c *Conn) deliver(seg *rdmap.Segment) bool {
	c.endHeadStart()
	if c.terms.emptyRTR {
		c.terms.emptyRTR = false
		if len(seg.Data) == 0 {
			return true
		}
	}
	if wire.IsTerminate(seg.Head) {
		c.terminated(seg)
		return false
	}
	c.placing = true
	v := c.stream.Deliver(seg)
	c.placing = false
	switch {
	case !c.live():
		return false
	case v.Result == rdmap.Placed:
		c.placed++
		c.rnr.End()
		return true
	case v.Result == rdmap.Busy:
		c.pause()
		return false
	case v.Result == rdmap.NoReceive && c.mayWait():
		return false
	}
	c.terminate(v.Code, seg, v)
	return false
}
