package memif

import (
	"fmt"
	"net"
	"time"
)

const (
	retryFirst = 5 * time.Millisecond
	retryMost  = 250 * time.Millisecond
)

// dialForever keeps a client connected until Close.
func (p *Port) dialForever() {
	defer p.running.Done()
	wait := retryFirst
	for p.ctx.Err() == nil {
		if p.dialOnce() {
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

// dialOnce makes one connection and stays until it ends; linked tells whether
// it came to a link.
func (p *Port) dialOnce() (linked bool) {
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: p.opt.SocketPath, Net: "unixpacket"})
	if err != nil {
		p.faults.waiting(p, err)
		return false
	}
	c := control{conn}
	defer conn.Close()
	stop := p.closeWith(c)
	defer stop()
	l, err := p.connect(c)
	if err != nil {
		p.faults.report(p, "memif server not connected", err)
		c.send(disconnectMsg(reasonOf(err)), -1)
		return false
	}
	p.runLink(l)
	return true
}

// connect does the client's handshake.
func (p *Port) connect(c control) (l *link, err error) {
	m, fd, err := c.expect(kindHello)
	if err != nil {
		return nil, err
	}
	closeFD(fd)
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
	return l, p.announce(l, log2)
}

// announce makes the shared memory and offers it, waiting for each answer.
func (p *Port) announce(l *link, log2 uint8) error {
	ringsEnd := 2 * ringBytes(log2)
	base := (ringsEnd + cacheLine - 1) &^ (cacheLine - 1)
	buffers := buffersPerRingSlot << log2
	size := base + buffers*p.opt.BufferSize
	fd, mem, err := createRegion(size)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	l.regions = [][]byte{mem}
	c2s := addRing{flags: ringC2S, log2: log2}
	s2c := addRing{offset: uint32(ringBytes(log2)), log2: log2}
	if l.tx, err = ringAt(mem, c2s.offset, log2); err != nil {
		return err
	}
	if l.rx, err = ringAt(mem, s2c.offset, log2); err != nil {
		return err
	}
	l.tx.format()
	l.rx.format()
	i := initMsg{version: version, id: p.opt.ID, mode: modeEthernet, secret: p.opt.secret(), name: softwareName}
	if err := l.ctl.ask(i.encode(), -1, kindAck); err != nil {
		return err
	}
	if err := l.ctl.ask(addRegion{index: 0, size: uint64(size)}.encode(), fd, kindAck); err != nil {
		return err
	}
	if err := l.offerRing(c2s, &l.txWake); err != nil {
		return err
	}
	if err := l.offerRing(s2c, &l.rxWake); err != nil {
		return err
	}
	if err := l.ctl.ask(connectMsg(kindConnect, p.opt.Name), -1, kindConnected); err != nil {
		return err
	}
	// A server clears both indices before it answers "connected"; only now may
	// buffers be posted.
	l.rx.zeroHead()
	l.tx.zeroHead()
	l.rx.maskInterrupt(true)
	s := newClientSide(p.queue, l, mem, base, p.opt.BufferSize, buffers)
	s.post()
	l.side = s
	return nil
}

// offerRing announces a ring with a fresh interrupt.
func (l *link) offerRing(a addRing, in *interrupt) error {
	ours, theirs, err := newInterrupt()
	if err != nil {
		return err
	}
	*in = ours
	defer closeFD(theirs)
	return l.ctl.ask(a.encode(), theirs, kindAck)
}

// ask sends a message and waits for the answer to it.
func (c control) ask(m message, fd int, answer kind) error {
	if err := c.send(m, fd); err != nil {
		return err
	}
	_, got, err := c.expect(answer)
	closeFD(got)
	return err
}
