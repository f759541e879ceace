package mpa

import "golang.org/x/sys/unix"

// A peer that knows only revision 1 closes the connection on a request of revision 2 (RFC 5044 section
// 7.1), or refuses it with a reply of revision 1. Then the request is repeated with revision 1.

// askOlder repeats the request with revision 1, over a new TCP connection. It returns false if that was
// already done.
func (c *Conn) askOlder() bool {
	if c.older {
		return false
	}
	c.older = true
	// The new socket has the same addresses and port numbers, so the old one must be gone completely.
	_ = unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	paid := c.Paid
	c.Paid = nil
	c.close()
	c.Paid = paid
	c.s.number++
	c.state, c.number, c.frame, c.polled, c.events = connOpening, c.s.number, nil, false, 0
	if err := c.request(); err != nil {
		c.state = connClosed
		c.s.forget(c)
		c.s.handler.Refused(c, errnoOf(err))
	}
	return true
}
