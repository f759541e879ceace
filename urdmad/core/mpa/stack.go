package mpa

import (
	"fmt"
	"log/slog"
	"net/netip"
	"slices"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/handshake"
	"urdma/urdmad/core/places"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rdmap"

	"golang.org/x/sys/unix"
)

// Handler is the connection manager. It is called on the worker's thread.
type Handler interface {
	qp.Manager
	// Requested: a peer requests a connection; Start and a reply, a reject, or Release answers it.
	Requested(c *Conn, m *handshake.Message)
	// Replied: the peer has answered our request; Start or Release follows, unless it
	// is a reject. Pending, when a request is repeated, says that the peer's host has it.
	Replied(c *qp.Connection, m *handshake.Message)
	// Refused: nobody listens at the peer's address, or there was no answer in time.
	Refused(c *Conn, errno unix.Errno)
}

// Config of a Stack.
type Config struct {
	StartTimeout clock.Time // longest time for each step of the start; 0: 10 s
	DeathTimeout clock.Time // how long a peer may be silent; 0: 4 s
	AnswerDelay  clock.Time // how long a Write's completion waits for an answer (package pingpong)
}

// Stats counts events that belong to no connection.
type Stats struct {
	ReceiverNotReady uint64 `counter:"receiver_not_ready"` // messages that waited for a receive
	StartTimeouts    uint64 `counter:"mpa_start_timeouts"` // peers that did not send the expected frame in time
	BadStarts        uint64 `counter:"mpa_bad_starts"`     // connections whose start was not valid MPA
	Refused          uint64 `counter:"mpa_refused"`        // by the allow list, or because too many sent no request
}

// Stack has all TCP connections of one worker.
type Stack struct {
	Stats Stats

	cfg     Config
	clock   *clock.Clock
	table   *qp.Table
	streams *rdmap.Stats
	log     *slog.Logger
	handler Handler

	epoll          int // -1 before the first socket
	ready          [64]unix.EpollEvent
	at, have       int // ready[at:have] are still to be processed
	watched        []*Watched
	conns          map[int32]*Conn
	listeners      map[netip.AddrPort]*listener
	accepting      map[int32]*listener
	devices        map[int]Device
	past           map[int]*Traffic // traffic of connections that have left their queue pairs, by device
	silent         *places.Places
	outsiderLogged clock.Time // when a peer outside the allow list was last logged; 0: never

	number  int32 // the number of the newest connection
	vector  vector
	buffers pool
	copies  pool
	arenas  pool
}

// pool keeps unused buffers.
type pool struct {
	size  int
	spare [][]byte
}

const maxSpare = 64

func (p *pool) take() []byte {
	if last := len(p.spare) - 1; last >= 0 {
		b := p.spare[last]
		p.spare = p.spare[:last]
		return b
	}
	return make([]byte, p.size)
}

func (p *pool) put(b []byte) {
	if len(p.spare) < maxSpare {
		p.spare = append(p.spare, b)
	}
}

// NewStack returns a Stack without sockets.
func NewStack(cfg Config, t *qp.Table, streams *rdmap.Stats, log *slog.Logger) *Stack {
	if cfg.StartTimeout == 0 {
		cfg.StartTimeout = 10 * clock.Second
	}
	if cfg.DeathTimeout == 0 {
		cfg.DeathTimeout = 4 * clock.Second
	}
	return &Stack{cfg: cfg, clock: t.Clock, table: t, streams: streams, log: log, epoll: -1, conns: map[int32]*Conn{},
		listeners: map[netip.AddrPort]*listener{}, accepting: map[int32]*listener{}, silent: places.New(maxSilent),
		devices: map[int]Device{}, past: map[int]*Traffic{},
		buffers: pool{size: bufferLen}, copies: pool{size: copiesLen}, arenas: pool{size: arenaLen}}
}

// SetDeathTimeout sets the death timeout of new connections.
func (s *Stack) SetDeathTimeout(t clock.Time) { s.cfg.DeathTimeout = t }

// SetHandler sets the connection manager; call it before the first connection.
func (s *Stack) SetHandler(h Handler) { s.handler = h }

// Device has the parameters of a device's connections.
type Device struct {
	Allow []netip.Prefix // connections are accepted only from these networks; empty: from all
	Scope uint32         // index of the interface for link-local addresses
	CRC   bool           // use CRCs even if the peer doesn't ask for them
}

// SetDevice sets the parameters of a device's new connections.
func (s *Stack) SetDevice(dev int, d Device) { s.devices[dev] = d }

func (s *Stack) allowed(dev int, peer netip.Addr) bool {
	n := s.devices[dev].Allow
	return len(n) == 0 || slices.ContainsFunc(n, func(p netip.Prefix) bool { return p.Contains(peer) })
}

// logOutsider logs a peer that the allow list refused, at most one per minute.
func (s *Stack) logOutsider(peer netip.Addr) {
	if s.outsiderLogged == 0 || s.clock.Now-s.outsiderLogged >= 60*clock.Second {
		s.outsiderLogged = s.clock.Now
		s.log.Warn("connection refused: \"allow\" in urdma.json has no network of the peer's; others are only counted (mpa_refused) for a minute", "peer", peer.String())
	}
}

// Descriptor returns a descriptor that becomes readable when a socket or a Watched descriptor is ready; -1
// while there is none.
func (s *Stack) Descriptor() int { return s.epoll }

func (s *Stack) open() error {
	if s.epoll >= 0 {
		return nil
	}
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("mpa: epoll: %w", err)
	}
	s.epoll = fd
	return nil
}

func (s *Stack) watchInput(fd int) error {
	if err := s.open(); err != nil {
		return err
	}
	return unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

// ask asks the kernel for events of a connection's socket.
func (s *Stack) ask(c *Conn, events uint32) {
	if c.fd < 0 || c.polled && events == c.events {
		return
	}
	op := unix.EPOLL_CTL_MOD
	if !c.polled {
		op = unix.EPOLL_CTL_ADD
		if err := s.open(); err != nil {
			s.log.Error("no socket can be watched", "error", err)
			return
		}
		s.conns[int32(c.fd)] = c
	}
	c.polled, c.events = true, events
	if err := unix.EpollCtl(s.epoll, op, c.fd,
		&unix.EpollEvent{Events: events, Fd: int32(c.fd), Pad: c.number}); err != nil {
		s.log.Error("a socket can't be watched", "error", err)
	}
}

// forget closes a connection's socket.
func (s *Stack) forget(c *Conn) {
	c.silent.Leave()
	if c.fd >= 0 {
		delete(s.conns, int32(c.fd))
		if now, ok := c.Inspect(); ok {
			c.resent = now.Traffic.Resent
		}
		_ = unix.Close(c.fd)
		c.fd = -1
	}
	if c.Paid != nil {
		c.Paid()
		c.Paid = nil
	}
}

// Watched is a descriptor, not of this package, whose readability is asked together with that of the
// sockets.
type Watched struct {
	Readable bool // as Look found it; true if it did not look
	fd       int
}

// WatchReadable makes Look also ask whether fd is readable. fd must stay open. It returns nil if the kernel
// refuses.
func (s *Stack) WatchReadable(fd int) *Watched {
	if s.watchInput(fd) != nil {
		return nil
	}
	b := &Watched{true, fd}
	s.watched = append(s.watched, b)
	return b
}

// Look asks the kernel which sockets are ready, unless sockets from the last call are still to be
// processed.
func (s *Stack) Look() {
	looks := len(s.conns)+len(s.accepting) > 0 && s.at == s.have
	for _, b := range s.watched {
		b.Readable = !looks
	}
	if !looks {
		return
	}
	s.at, s.have = 0, readable(s.epoll, s.ready[:])
	for _, b := range s.watched {
		b.Readable = s.have == len(s.ready) // if the list is full, there may be more
		for i := range s.ready[:s.have] {
			b.Readable = b.Readable || int(s.ready[i].Fd) == b.fd
		}
	}
}

// Poll processes the sockets that Look found ready, within a turn's budget, and returns the amount of work.
// The kernel keeps the order of its list while none is processed, so those beyond the budget are the first
// of the next turn.
func (s *Stack) Poll() (n int) {
	for begun := s.table.Spent(); s.at < s.have && !s.table.Overspent(begun); {
		e := &s.ready[s.at]
		s.at++
		if l := s.accepting[e.Fd]; l != nil {
			n += s.accept(l)
		} else if c := s.conns[e.Fd]; c != nil && c.number == e.Pad {
			n++
			s.table.Serving = c.QP
			c.happened(e.Events)
			s.table.Serving = nil
		}
	}
	return n
}

// happened handles the kernel's events for a connection's socket.
func (c *Conn) happened(events uint32) {
	switch c.state {
	case connConnecting:
		c.connected()
	case connRequesting, connAwaiting, connStarting:
		if !c.out.full {
			c.readFrame()
		} else if _, ok := c.flush(); ok {
			c.readFrame()
		}
	case connRequested:
		c.lostEarly(unix.ECONNRESET)
	case connOpen, connDraining:
		if events&unix.EPOLLOUT != 0 {
			c.out.full = false
			c.s.table.Ready(c.QP)
			c.watch()
		}
		if events&^unix.EPOLLOUT != 0 {
			if c.rnr.Waiting() {
				c.endedBehind(events)
				return
			}
			c.receive()
		}
	case connTerminating:
		if _, ok := c.flush(); ok {
			c.shut()
		}
	case connClosing:
		c.discard()
	default:
		c.close()
	}
}

// endedBehind handles the end of a connection while a message waits and nothing is read. A reset, or a peer
// that TCP has given up, ends the connection at once.
func (c *Conn) endedBehind(events uint32) {
	switch {
	case events&(unix.EPOLLERR|unix.EPOLLHUP) != 0:
		errno, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err != nil || errno == 0 {
			errno = int(unix.ECONNRESET)
		}
		c.lost(unix.Errno(errno))
	case events&unix.EPOLLRDHUP != 0:
		c.endAt = c.now()
		c.watch()
	}
}

// discard reads and drops what a peer still sends, up to its end of the stream.
func (c *Conn) discard() {
	b := c.s.buffers.take()
	defer c.s.buffers.put(b)
	n, errno := c.s.vector.receive(c.fd, [][]byte{b})
	if errno == 0 {
		c.s.table.Spend(n)
	}
	if n == 0 && errno == 0 || errno != 0 && errno != unix.EAGAIN && errno != unix.EINTR {
		c.close()
	}
}

// connected handles the end of the TCP handshake.
func (c *Conn) connected() {
	errno, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil || errno != 0 {
		c.lostEarly(unix.Errno(errno))
		return
	}
	c.state = connRequesting
	c.s.clock.Set(c.timer, clock.Never) // no timeout: a program may take its time to answer (see Asked)
	request := c.offer.request()
	if c.older {
		request = c.offer.older()
	}
	c.putFrame(&request)
	if c.state == connRequesting {
		c.watch()
	}
}
