package memif

import (
	"bytes"
	"crypto/subtle"
	"errors"
	"fmt"
)

// offer has the memory that a client has announced so far.
type offer struct {
	regions [][]byte
	rings   [2][]offered // indexed by an add-ring's flags
	most    [2]int       // maximum number of rings, with the same index
	peer    string
}

// offered is a ring that a client has announced.
type offered struct {
	addRing
	wake interrupt
}

// discard releases the parts that no link has taken over.
func (o *offer) discard() {
	l := link{regions: o.regions}
	l.unmap()
	for _, kind := range o.rings {
		for i := range kind {
			kind[i].wake.close()
		}
	}
}

// serve handles one control connection from hello to its end.
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

// greet exchanges hello and init, finds the port that the client names, and marks it busy.
func (l *listener) greet(c control) (*Port, error) {
	h := hello{
		name: softwareName, minVersion: version, maxVersion: version,
		maxRegion: maxRegions - 1, maxLog2RingEntries: maxLog2Ring, maxS2CRing: maxQueues - 1, maxC2SRing: l.queues() - 1,
	}
	if err := c.send(h.encode(), -1); err != nil {
		return nil, err
	}
	m, fd, err := c.expect(kindInit)
	if err != nil {
		return nil, err
	}
	c.drop(fd)
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

// admit checks a client's init, marks the port busy and acknowledges.
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
	o := &offer{most: [2]int{maxQueues, len(p.queues)}}
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

// step handles one message of the offer; done is true after connect. Each message except connect is
// acknowledged.
func (o *offer) step(c control) (done bool, err error) {
	m, fd, err := c.next()
	if err != nil {
		return false, err
	}
	kept := false
	defer func() {
		if !kept {
			c.drop(fd)
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
	a.flags &= ringC2S
	rings, most := &o.rings[a.flags], o.most[a.flags]
	switch {
	case fd < 0:
		return false, fmt.Errorf("memif: ring came without an interrupt")
	case int(a.index) != len(*rings) || len(*rings) >= most:
		return false, fmt.Errorf("memif: ring %d (flags %#x), expected %d of at most %d", a.index, a.flags, len(*rings), most)
	case a.privHeader != 0:
		return false, fmt.Errorf("memif: private headers of %d bytes are not supported", a.privHeader)
	}
	in, err := openInterrupt(fd, a.flags != ringC2S)
	if err != nil {
		return false, err
	}
	*rings = append(*rings, offered{a, in})
	return true, nil
}

// accept builds the link and sends "connected".
func (p *Port) accept(c control, o *offer) (*link, error) {
	c2s, s2c := o.rings[ringC2S], o.rings[0]
	if len(c2s) == 0 || len(s2c) == 0 {
		return nil, fmt.Errorf("memif: client connects without a ring each way")
	}
	l := p.newLink(c, o.peer)
	l.regions = o.regions
	var tx []*serverTx
	for i := range s2c {
		r, err := o.ring(&s2c[i].addRing)
		if err != nil {
			return nil, err
		}
		t := newServerTx(r)
		tx, l.tx = append(tx, t), append(l.tx, &t.outRing)
	}
	for i := range c2s {
		r, err := o.ring(&c2s[i].addRing)
		if err != nil {
			return nil, err
		}
		l.shares[i].rx = r
	}
	for i, s := range l.shares {
		if s.reads() {
			s.rx.setTail(0)
			s.rx.maskInterrupt(true)
		}
		s.side = newServerSide(p.queues[i], s, tx)
	}
	if err := c.send(connectMsg(kindConnected, p.opt.Name), -1); err != nil {
		return nil, err
	}
	for i, t := range l.tx {
		t.wake = s2c[i].wake
	}
	for i := range c2s {
		l.shares[i].rxWake = c2s[i].wake
	}
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
