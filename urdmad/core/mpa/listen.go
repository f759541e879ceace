package mpa

import (
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
	"urdma/wire"

	"golang.org/x/sys/unix"
)

// listener is a listening socket, shared by all ids that listen at its address.
type listener struct {
	dev   int
	at    netip.AddrPort
	fd    int
	users int
}

// Listen accepts connections at an address of a device. The error is the kernel's: EADDRINUSE if another
// socket uses the port number.
func (s *Stack) Listen(dev int, at netip.AddrPort) error {
	if l := s.listeners[at]; l != nil {
		l.users++
		return nil
	}
	fd, err := listen(at, s.devices[dev].Scope)
	if err != nil {
		return err
	}
	if err := s.watchInput(fd); err != nil {
		_ = unix.Close(fd)
		return err
	}
	l := &listener{dev, at, fd, 1}
	s.listeners[at], s.accepting[int32(fd)] = l, l
	return nil
}

// Unlisten undoes one Listen.
func (s *Stack) Unlisten(at netip.AddrPort) {
	l := s.listeners[at]
	if l == nil {
		return
	}
	if l.users--; l.users == 0 {
		delete(s.listeners, at)
		delete(s.accepting, int32(l.fd))
		_ = unix.Close(l.fd)
	}
}

const (
	// maxSilent bounds the connections that have not sent a request yet.
	maxSilent = 1024
	// acceptBudget bounds the connections that one turn accepts.
	acceptBudget = 16
)

// accept accepts the waiting connections.
func (s *Stack) accept(l *listener) (n int) {
	for ; n < acceptBudget; n++ {
		fd, from, err := unix.Accept4(l.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			if err == unix.EMFILE || err == unix.ENFILE || err == unix.ENOBUFS || err == unix.ENOMEM {
				s.rest(l)
			}
			return n // also EAGAIN, or a connection that has ended
		}
		peer := addrPort(from)
		if !s.allowed(l.dev, peer.Addr()) {
			s.logOutsider(peer.Addr())
			s.Stats.Refused++
			_ = unix.Close(fd)
			continue
		}
		setOptions(fd, s.cfg.DeathTimeout)
		c := s.newConn(l.dev, l.at, peer)
		c.fd, c.state, c.passive = fd, connAwaiting, true
		c.silent = s.silent.Take(peer.Addr(), c.evicted)
		s.clock.Set(c.timer, s.clock.Now+s.cfg.StartTimeout)
		c.watch()
	}
	return n
}

// acceptPause is how long connections wait in the kernel after the process ran out of descriptors.
const acceptPause = 100 * clock.Millisecond

// rest stops accepting connections at a listener for acceptPause.
func (s *Stack) rest(l *listener) {
	_ = unix.EpollCtl(s.epoll, unix.EPOLL_CTL_DEL, l.fd, nil)
	s.clock.Set(clock.NewTimer(func() {
		if s.accepting[int32(l.fd)] != l {
			return
		}
		if err := s.watchInput(l.fd); err != nil {
			s.log.Error("no connections can be taken", "address", l.at.String(), "error", err)
		}
	}), s.clock.Now+acceptPause)
}

// evicted closes a connection without a request whose place was given to a newer one.
func (c *Conn) evicted() {
	c.s.Stats.Refused++
	c.close()
}

// readFrame reads a request, a reply, or the extension of a urdmad, and no byte after it.
func (c *Conn) readFrame() {
	for {
		need, err := c.frameLen()
		if err != nil {
			c.s.log.Info("connection does not begin as MPA has it", "peer", c.Peer.String(), "error", err)
			c.s.Stats.BadStarts++
			c.lostEarly(unix.EPROTO)
			return
		}
		if len(c.frame) == need {
			c.frameArrived()
			return
		}
		at := len(c.frame)
		c.frame = append(c.frame, make([]byte, need-at)...)
		n, errno := c.s.vector.receive(c.fd, [][]byte{c.frame[at:]})
		c.frame = c.frame[:at+max(0, n)*b2i(errno == 0)]
		switch {
		case errno == unix.EINTR:
		case errno == unix.EAGAIN:
			return
		case errno != 0:
			c.lostEarly(errno)
			return
		case n == 0:
			c.lostEarly(unix.ECONNRESET)
			return
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// frameLen returns the length of the expected frame, as far as it is known.
func (c *Conn) frameLen() (int, error) {
	switch {
	case c.state == connStarting:
		return extensionLen, nil
	case len(c.frame) < wire.MPALen:
		return wire.MPALen, nil
	}
	return wire.MPAFrameLen(c.frame, c.state == connRequesting)
}

// frameArrived handles a complete frame.
func (c *Conn) frameArrived() {
	frame := c.frame
	c.frame = nil
	switch c.state {
	case connStarting:
		_, e, ok := cutExtension(frame)
		if !ok {
			c.fail(qp.CloseTerminated)
			return
		}
		c.terms.Extended, c.terms.Extension, c.terms.Long = true, e, true
		c.established()
	case connRequesting:
		c.replyArrived(frame)
	case connAwaiting:
		c.requestArrived(frame)
	}
}

func (c *Conn) replyArrived(frame []byte) {
	var m wire.MPA
	if _, err := m.Parse(frame, true); err != nil || m.Markers && !m.Reject { // we send no markers
		c.s.Stats.BadStarts++
		c.lostEarly(unix.EPROTO)
		return
	}
	if knowsOlder(&m) && c.askOlder() {
		return
	}
	c.terms = c.offer.agree(&m)
	c.state = connReplied
	c.s.clock.Set(c.timer, clock.Never)
	c.watch()
	if m.Reject {
		c.close()
	}
	c.s.handler.Replied(&c.Connection, c.messageOf(&m))
}

func (c *Conn) requestArrived(frame []byte) {
	if _, err := c.asked.Parse(frame, false); err != nil {
		c.s.Stats.BadStarts++
		c.close()
		return
	}
	c.state = connRequested
	c.s.clock.Set(c.timer, clock.Never)
	if err := acceptable(&c.asked); err != nil {
		c.s.log.Info("connection refused", "peer", c.Peer.String(), "error", err)
		c.s.Stats.BadStarts++
		c.reject(nil)
		return
	}
	c.watch()
	c.s.handler.Requested(c, c.messageOf(&c.asked))
	if c.state == connRequested || c.state == connStarting { // not while a reject is being sent
		c.silent.Leave()
	}
}
