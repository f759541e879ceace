package mpa

// Observer sees the byte streams of connections as they pass to and from the kernel, without the extension
// blocks by which urdmads recognise each other: no dissector knows them.
type Observer interface {
	// Stream reports n bytes, valid during the call. seq is their position in their direction of the
	// stream, ack the position of the other direction.
	Stream(c *Conn, out bool, seq, ack uint32, parts [][]byte, n int)
	// StreamEnd reports the end of a direction.
	StreamEnd(c *Conn, out bool, seq, ack uint32)
}

// shown is how much of each direction an observer has seen.
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
	if c.s.Observer == nil || n == 0 {
		return
	}
	c.s.Observer.Stream(c, out, *at, other, parts, n)
	*at += uint32(n)
}

// behind returns parts without their first bytes.
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
	if c.s.Observer != nil {
		c.s.Observer.StreamEnd(c, out, *at, other)
		*at++
	}
}
