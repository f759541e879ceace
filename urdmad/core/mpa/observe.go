package mpa

// Observer is shown the streams of connections, as the kernel takes and gives them,
// without the blocks by which urdmads know each other: no dissector does.
type Observer interface {
	// Stream shows n bytes, valid during the call. seq is where they stand in their
	// direction of the stream, ack where the other direction is.
	Stream(c *Conn, out bool, seq, ack uint32, parts [][]byte, n int)
	// StreamEnd shows the end of a direction.
	StreamEnd(c *Conn, out bool, seq, ack uint32)
}

// SetObserver has o shown everything from now on; nil ends that.
func (s *Stack) SetObserver(o Observer) { s.observer = o }

// shown is what an observer was shown of a connection's directions.
type shown struct {
	in, out uint32
	skip    int // bytes of ours that are not shown
}

func (c *Conn) show(out bool, parts [][]byte, n int) {
	at, other := &c.shown.in, c.shown.out
	if out {
		at, other = &c.shown.out, c.shown.in
		if skip := min(c.shown.skip, n); skip > 0 {
			c.shown.skip -= skip
			n -= skip
			parts = behind(parts, skip)
		}
	}
	if c.s.observer == nil || n == 0 {
		return
	}
	c.s.observer.Stream(c, out, *at, other, parts, n)
	*at += uint32(n)
}

// behind is parts without their first bytes.
func behind(parts [][]byte, skip int) (rest [][]byte) {
	for _, b := range parts {
		n := min(skip, len(b))
		skip -= n
		rest = append(rest, b[n:])
	}
	return rest
}

func (c *Conn) showEnd(out bool) {
	at, other := &c.shown.in, c.shown.out
	if out {
		at, other = &c.shown.out, c.shown.in
	}
	if c.s.observer != nil {
		c.s.observer.StreamEnd(c, out, *at, other)
		*at++
	}
}
