package memif

import (
	"bytes"
	"crypto/subtle"
	"errors"
	"fmt"
)

// offer is what a client has announced so far.
type offer struct {
	regions  [][]byte
	c2s, s2c *addRing
	c2sInt   interrupt
	s2cInt   interrupt
	peer     string
}

// discard gives back what no link took over.
func (o *offer) discard() {
	l := link{regions: o.regions}
	l.unmap()
	o.c2sInt.close()
	o.s2cInt.close()
}

// serve runs one control connection from hello to its end.
func (l *listener) serve(c control) {
	p, err := l.greet(c)
	if err != nil {
		c.send(disconnectMsg(reasonOf(err)), -1)
		return
	}
	defer p.running.Done()
	defer p.busy.Store(false)
	stop := p.closeWith(c)
	defer stop()
	ln, err := p.handshake(c)
	if err != nil {
		p.faults.report(p, "memif client refused", err)
		c.send(disconnectMsg(reasonOf(err)), -1)
		return
	}
	p.runLink(ln)
}

// greet exchanges hello and init and finds the port the client wants, which it
// marks busy.
func (l *listener) greet(c control) (*Port, error) {
	h := hello{
		name: softwareName, minVersion: version, maxVersion: version,
		maxRegion: maxRegions - 1, maxLog2RingEntries: maxLog2Ring,
	}
	if err := c.send(h.encode(), -1); err != nil {
		return nil, err
	}
	m, fd, err := c.expect(kindInit)
	if err != nil {
		return nil, err
	}
	closeFD(fd)
	i := m.init()
	p := l.find(i.id)
	if p == nil {
		return nil, fmt.Errorf("memif: no interface with id %d", i.id)
	}
	if err := p.admit(c, i); err != nil {
		p.running.Done()
		return nil, err
	}
	return p, nil
}

// admit judges a client that wants this port, marks the port busy and
// acknowledges.
func (p *Port) admit(c control, i initMsg) error {
	switch {
	case i.version != version:
		return fmt.Errorf("memif: version %#x, expected %#x", i.version, version)
	case i.mode != modeEthernet:
		return fmt.Errorf("memif: interface mode %d, only Ethernet (0) is supported", i.mode)
	case !sameSecret(p.opt.secret(), i.secret):
		p.faults.report(p, "memif client refused", errSecret)
		return errSecret
	case !p.busy.CompareAndSwap(false, true):
		return fmt.Errorf("memif: already connected")
	}
	if err := c.send(newMessage(kindAck), -1); err != nil {
		p.busy.Store(false)
		return err
	}
	return nil
}

var errSecret = errors.New("memif: wrong or missing secret")

// sameSecret compares up to the first zero, in constant time.
func sameSecret(ours, theirs [secretSize]byte) bool {
	if n := bytes.IndexByte(theirs[:], 0); n >= 0 {
		clear(theirs[n:])
	}
	return subtle.ConstantTimeCompare(ours[:], theirs[:]) == 1
}

// handshake receives the client's offer and turns it into a link.
func (p *Port) handshake(c control) (*link, error) {
	o := &offer{c2sInt: interrupt{fd: -1}, s2cInt: interrupt{fd: -1}}
	for {
		done, err := o.step(c)
		if err != nil {
			o.discard()
			return nil, err
		}
		if !done {
			continue
		}
		l, err := p.accept(c, o)
		if err != nil {
			o.discard()
			return nil, err
		}
		return l, nil
	}
}

// step takes one message of the offer; done after connect. Each message but
// connect is acknowledged.
func (o *offer) step(c control) (done bool, err error) {
	m, fd, err := c.next()
	if err != nil {
		return false, err
	}
	kept := false
	defer func() {
		if !kept {
			closeFD(fd)
		}
	}()
	switch m.kind() {
	case kindAddRegion:
		err = o.addRegion(m.addRegion(), fd)
	case kindAddRing:
		kept, err = o.addRing(m.addRing(), fd)
	case kindConnect:
		o.peer = m.interfaceName()
		return true, nil
	case kindDisconnect:
		_, reason := m.disconnect()
		err = fmt.Errorf("memif: client gave up: %q", reason)
	default:
		err = fmt.Errorf("memif: got %v while a link is being made", m.kind())
	}
	if err != nil {
		return false, err
	}
	return false, c.send(newMessage(kindAck), -1)
}

func (o *offer) addRegion(a addRegion, fd int) error {
	if fd < 0 {
		return fmt.Errorf("memif: region %d came without a descriptor", a.index)
	}
	if int(a.index) != len(o.regions) || len(o.regions) >= maxRegions {
		return fmt.Errorf("memif: region %d, expected %d of at most %d", a.index, len(o.regions), maxRegions)
	}
	total := a.size
	for _, r := range o.regions {
		total += uint64(len(r))
	}
	if a.size > maxRegionBytes || total > maxRegionBytes {
		return fmt.Errorf("memif: regions of %d bytes in all, allowed are %d", total, maxRegionBytes)
	}
	mem, err := mapRegion(fd, a.size)
	if err != nil {
		return err
	}
	o.regions = append(o.regions, mem)
	return nil
}

func (o *offer) addRing(a addRing, fd int) (kept bool, err error) {
	c2s := a.flags&ringC2S != 0
	slot, in := &o.s2c, &o.s2cInt
	if c2s {
		slot, in = &o.c2s, &o.c2sInt
	}
	switch {
	case fd < 0:
		return false, fmt.Errorf("memif: ring came without an interrupt")
	case a.index != 0 || *slot != nil:
		return false, fmt.Errorf("memif: ring %d (flags %#x): one each way is served", a.index, a.flags)
	case a.privHeader != 0:
		return false, fmt.Errorf("memif: private headers of %d bytes are not supported", a.privHeader)
	}
	if *in, err = openInterrupt(fd, !c2s); err != nil {
		return false, err
	}
	*slot = &a
	return true, nil
}

// accept builds the link and tells the client.
func (p *Port) accept(c control, o *offer) (*link, error) {
	if o.c2s == nil || o.s2c == nil {
		return nil, fmt.Errorf("memif: client connects without a ring each way")
	}
	l := p.newLink(c, o.peer)
	var err error
	if l.rx, err = o.ring(o.c2s); err != nil {
		return nil, err
	}
	if l.tx, err = o.ring(o.s2c); err != nil {
		return nil, err
	}
	l.rx.setTail(0)
	l.tx.setTail(0)
	l.rx.maskInterrupt(true)
	l.side = newServerSide(p.queue, l)
	if err := c.send(connectMsg(kindConnected, p.opt.Name), -1); err != nil {
		return nil, err
	}
	l.regions, l.rxWake, l.txWake = o.regions, o.c2sInt, o.s2cInt
	return l, nil
}

func (o *offer) ring(a *addRing) (r ring, err error) {
	if int(a.region) >= len(o.regions) {
		return r, fmt.Errorf("memif: ring in region %d, there are %d", a.region, len(o.regions))
	}
	if r, err = ringAt(o.regions[a.region], a.offset, a.log2); err != nil {
		return r, err
	}
	if got := r.cookie(); got != cookie {
		return r, fmt.Errorf("memif: ring starts with %#x, expected the cookie %#x", got, cookie)
	}
	return r, nil
}
