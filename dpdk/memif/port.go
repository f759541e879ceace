package memif

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"urdma/dpdk/port"
)

// Port is a memif port. See package port for the rules of its methods.
type Port struct {
	opt      Options
	info     port.Info
	room     int // bytes of the largest frame
	counters port.Counters

	// mail is a new link on its way from the control goroutine to the worker.
	// Whoever swaps a link out owns it.
	mail atomic.Pointer[link]
	up   atomic.Bool

	// The worker's.
	cur     *link
	retired []*link // dead, with packets still held
	heap    heap
	armed   bool

	epfd   int // what ArmRx gives: wakeFD and the current link's rxWake
	wakeFD int // the control goroutine wakes a sleeping worker

	// The control goroutine's.
	epoch    atomic.Uint32
	busy     atomic.Bool // a control connection exists (server)
	listener *listener
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup
	closing  sync.Once
	faults   faultLog
}

var _ port.Port = (*Port)(nil)

// Open makes a port and starts connecting in the background, for ever, until
// Close. It fails on bad options, and for a server when the socket can't be
// had.
func Open(o Options) (port.Port, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	p := &Port{opt: o, room: o.MTU + port.EtherHeaderLen, epfd: -1, wakeFD: -1}
	p.info = port.Info{
		Name: o.Name, Driver: driverName, MAC: o.MAC, MTU: o.MTU,
		RxChecksum: true, TxUDPChecksum: true, SharedRx: true, Wire: true,
	}
	p.heap = newHeap(p.room)
	p.faults.log = o.Log
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if err := p.openWake(); err != nil {
		return nil, err
	}
	if o.Server {
		if err := listen(p); err != nil {
			p.closeWake()
			return nil, err
		}
		return p, nil
	}
	p.running.Add(1)
	go p.dialForever()
	return p, nil
}

func (p *Port) openWake() (err error) {
	if p.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("memif %s: epoll: %w", p.opt.Name, err)
	}
	if p.wakeFD, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		p.closeWake()
		return fmt.Errorf("memif %s: eventfd: %w", p.opt.Name, err)
	}
	if err = p.watch(p.wakeFD); err != nil {
		p.closeWake()
	}
	return err
}

func (p *Port) watch(fd int) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	if err := unix.EpollCtl(p.epfd, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("memif %s: epoll: %w", p.opt.Name, err)
	}
	return nil
}

func (p *Port) closeWake() {
	closeFD(p.epfd)
	closeFD(p.wakeFD)
}

// Info implements port.Port.
func (p *Port) Info() port.Info { return p.info }

// Link implements port.Port.
func (p *Port) Link() bool { return p.up.Load() }

// Stats implements port.Port.
func (p *Port) Stats() port.Stats { return p.counters.Snapshot() }

// Close implements port.Port. It tells the peer.
func (p *Port) Close() error {
	p.closing.Do(func() {
		p.cancel()
		if p.listener != nil {
			p.listener.remove(p)
		}
		p.running.Wait()
		if l := p.mail.Swap(nil); l != nil {
			l.destroy()
		}
		if p.cur != nil {
			p.cur.destroy()
			p.cur = nil
		}
		for _, l := range p.retired {
			l.destroy()
		}
		p.retired = nil
		p.closeWake()
	})
	return nil
}

// deliver puts a connected link into the mailbox. Control goroutine.
func (p *Port) deliver(l *link) {
	if old := p.mail.Swap(l); old != nil {
		old.destroy() // died before the worker ever looked
	}
	p.up.Store(true)
	p.counters.LinkUps.Add(1)
	p.wake()
}

// withdraw ends a link. Control goroutine.
func (p *Port) withdraw(l *link) {
	p.up.Store(false)
	p.counters.LinkDowns.Add(1)
	l.dead.Store(true)
	if p.mail.CompareAndSwap(l, nil) {
		l.destroy()
	}
	p.wake()
}

// wake makes a sleeping worker look at the mailbox. The eventfd is private, so
// a plain write can't block: the counter never gets near its limit.
func (p *Port) wake() { unix.Write(p.wakeFD, kickByte[:]) }

// enter starts every data method: it takes a new link from the mailbox, leaves
// a dead one, and returns the one to use, or nil.
func (p *Port) enter() *link {
	if p.mail.Load() != nil {
		p.adopt()
	}
	l := p.cur
	if l != nil && l.dead.Load() {
		p.retire()
		return nil
	}
	return l
}

func (p *Port) adopt() {
	l := p.mail.Swap(nil)
	if l == nil {
		return
	}
	p.retire()
	p.cur = l
	if err := p.watch(l.rxWake.fd); err != nil {
		l.fault("gave an interrupt that can't be waited for: %v", err)
		return
	}
	if p.armed {
		l.rx.maskInterrupt(false)
	}
}

// retire stops using the current link; its memory stays until the last packet
// is freed.
func (p *Port) retire() {
	l := p.cur
	if l == nil {
		return
	}
	p.cur = nil
	// The peer may share the open file, so closing alone would leave it watched.
	unix.EpollCtl(p.epfd, unix.EPOLL_CTL_DEL, l.rxWake.fd, nil)
	l.rxWake.close()
	l.txWake.close()
	if l.held == 0 {
		l.unmap()
		return
	}
	p.retired = append(p.retired, l)
}

// old finds a retired link.
func (p *Port) old(epoch uint32) *link {
	for _, l := range p.retired {
		if l.epoch == epoch {
			return l
		}
	}
	return nil
}

// releaseOld takes back a packet of a retired link's memory.
func (p *Port) releaseOld(epoch uint32) {
	for i, l := range p.retired {
		if l.epoch != epoch {
			continue
		}
		if l.held--; l.held == 0 {
			l.unmap()
			last := len(p.retired) - 1
			p.retired[i], p.retired[last] = p.retired[last], nil
			p.retired = p.retired[:last]
		}
		return
	}
}

var errForeignPacket = errors.New("memif: packet is not one the caller received from this port")
