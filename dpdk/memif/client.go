package memif

import (
	"errors"
	"fmt"
	"net"
	"time"
)

const (
	retryFirst = 5 * time.Millisecond
	retryMost  = 250 * time.Millisecond
)

// dialForever connects again and again until Close.
func (p *Port) dialForever() {
	defer p.running.Done()
	wait := retryFirst
	for p.ctx.Err() == nil {
		if !p.closer.Full() && p.dialOnce() {
			wait = retryFirst
		} else {
			wait = min(2*wait, retryMost)
		}
		select {
		case <-p.ctx.Done():
		case <-time.After(wait):
		}
	}
}

// dialOnce makes one connection and returns when it ends; linked reports whether a link was established.
func (p *Port) dialOnce() (linked bool) {
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: p.opt.SocketPath, Net: "unixpacket"})
	if err != nil {
		p.refused = [2]int{} // the next server may have other limits
		p.faults.waiting(p, err)
		return false
	}
	c := control{conn, &p.closer}
	defer c.hangUp()
	stop := p.closeWith(c)
	defer stop()
	l, err := p.connect(c)
	if err != nil {
		p.faults.report(p, "memif server not connected", err)
		c.send(disconnectMsg(reasonOf(err)), -1)
		return false
	}
	p.runLink(l)
	p.refused = [2]int{}
	return true
}

// connect performs the client's handshake.
func (p *Port) connect(c control) (l *link, err error) {
	m, fd, err := c.expect(kindHello)
	if err != nil {
		return nil, err
	}
	c.drop(fd)
	h := m.hello()
	if h.minVersion > version || h.maxVersion < version {
		return nil, fmt.Errorf("memif: server speaks versions %#x to %#x, we speak %#x", h.minVersion, h.maxVersion, version)
	}
	log2 := min(p.opt.log2Ring(), h.maxLog2RingEntries)
	if log2 < minLog2Ring {
		return nil, fmt.Errorf("memif: server allows rings of 2^%d slots, we need 2^%d", log2, minLog2Ring)
	}
	l = p.newLink(c, h.name)
	defer func() {
		if err != nil {
			l.destroy()
		}
	}()
	c2s, s2c := p.rings(h)
	return l, p.announce(l, p.layout(log2, c2s, s2c))
}

// rings returns how many rings the client creates: for receiving one for each of our queues, for sending one
// for each of the server's queues. Our own server states its number of queues. Others state 256 and refuse
// rings beyond the number that they have; we assume that they have as many as we do.
func (p *Port) rings(h hello) (c2s, s2c int) {
	queues := len(p.queues)
	s2c = min(queues, int(h.maxS2CRing)+1)
	if c2s = int(h.maxC2SRing) + 1; c2s > maxQueues {
		c2s = queues
	}
	for kind, n := range []*int{&s2c, &c2s} {
		if took := p.refused[kind]; took > 0 {
			*n = min(*n, took)
		}
	}
	return c2s, s2c
}

// layout is the layout of a client's region: the rings for sending, the rings for receiving, and the buffers,
// equally many for each queue.
type layout struct {
	log2     uint8
	c2s, s2c int
	buffers  int // buffers of each queue
	stride   int // bytes from one buffer to the next
	base     int // offset of the first buffer
	size     int
}

// layout makes rings shorter if there are many, so that a link needs at most twice the memory of one with a
// ring in each direction, and fits the limits of our own server.
func (p *Port) layout(log2 uint8, c2s, s2c int) (o layout) {
	queues := len(p.queues)
	for shorter := 2; shorter < max(queues, c2s) && log2 > minLog2Ring; shorter *= 2 {
		log2--
	}
	for ; ; log2-- {
		o = layout{log2: log2, c2s: c2s, s2c: s2c, buffers: buffersPerRingSlot << log2, stride: p.opt.BufferSize}
		ringsEnd := (c2s + s2c) * ringBytes(log2)
		o.base = (ringsEnd + cacheLine - 1) &^ (cacheLine - 1)
		o.size = o.base + queues*o.buffers*o.stride
		if o.size <= maxRegionBytes || log2 == minLog2Ring {
			return o
		}
	}
}

// ring returns the message that offers a ring.
func (o *layout) ring(flags uint16, index int) addRing {
	place := index
	if flags != ringC2S {
		place += o.c2s
	}
	return addRing{flags: flags, index: uint16(index), offset: uint32(place * ringBytes(o.log2)), log2: o.log2}
}

// announce creates the shared memory and offers it to the server, waiting for each acknowledgement.
func (p *Port) announce(l *link, o layout) error {
	fd, mem, err := createRegion(o.size)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	l.regions = [][]byte{mem}
	tx, err := l.formatRings(mem, &o)
	if err != nil {
		return err
	}
	i := initMsg{version: version, id: p.opt.ID, mode: modeEthernet, secret: p.opt.secret(), name: softwareName}
	if err := l.ctl.ask(i.encode(), -1, kindAck); err != nil {
		return err
	}
	if err := l.ctl.ask(addRegion{index: 0, size: uint64(o.size)}.encode(), fd, kindAck); err != nil {
		return err
	}
	for i, t := range l.tx {
		if err := p.offerRing(l.ctl, o.ring(ringC2S, i), &t.wake); err != nil {
			return err
		}
	}
	for i, s := range l.shares[:o.s2c] {
		if err := p.offerRing(l.ctl, o.ring(0, i), &s.rxWake); err != nil {
			return err
		}
	}
	if err := l.ctl.ask(connectMsg(kindConnect, p.opt.Name), -1, kindConnected); err != nil {
		return err
	}
	// A server clears both indices before it sends "connected", so buffers may be posted only now.
	for _, t := range l.tx {
		t.zeroHead()
	}
	for i, s := range l.shares {
		p.queues[i].begin(s, mem, &o, i, tx)
	}
	return nil
}

// formatRings initialises the rings.
func (l *link) formatRings(mem []byte, o *layout) (tx []*clientTx, err error) {
	for i := range o.c2s {
		t := &clientTx{buf: make([]uint32, 1<<o.log2)}
		if t.ring, err = ringAt(mem, o.ring(ringC2S, i).offset, o.log2); err != nil {
			return nil, err
		}
		t.format()
		t.wake.fd = -1
		tx, l.tx = append(tx, t), append(l.tx, &t.outRing)
	}
	for i, s := range l.shares[:o.s2c] {
		if s.rx, err = ringAt(mem, o.ring(0, i).offset, o.log2); err != nil {
			return nil, err
		}
		s.rx.format()
	}
	return tx, nil
}

// begin initialises a queue's share of a link.
func (q *queue) begin(s *share, mem []byte, o *layout, number int, tx []*clientTx) {
	side := newClientSide(q, s, mem, o, number, tx)
	s.side = side
	if s.reads() {
		s.rx.zeroHead()
		s.rx.maskInterrupt(true)
		side.post()
	}
}

// offerRing offers a ring with a new interrupt, and records the limit if the server refuses it.
func (p *Port) offerRing(c control, a addRing, in *interrupt) error {
	var err error
	if *in, err = newInterrupt(a.flags == ringC2S); err != nil {
		return err
	}
	if err = c.ask(a.encode(), in.fd, kindAck); errors.Is(err, errRefused) {
		p.refused[a.flags] = int(a.index)
	}
	return err
}

// ask sends a message and waits for its response.
func (c control) ask(m message, fd int, answer kind) error {
	if err := c.send(m, fd); err != nil {
		return err
	}
	_, got, err := c.expect(answer)
	c.drop(got)
	return err
}
