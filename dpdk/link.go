package dpdk

// #include "shim.h"
import "C"

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// followLink keeps a port's link state up to date: from the kernel's notifications about its interface, or by
// polling the driver.
func (p *ethPort) followLink(b *borrowed, log *slog.Logger) (err error) {
	defer p.Watch(func(up bool) {
		if up {
			log.Info("link up", "port", p.info.Name)
		} else {
			log.Warn("link down", "port", p.info.Name)
		}
	})
	filters := b != nil
	if b == nil && p.software && p.ifIndex != 0 { // tap has created one
		if b, err = borrowByIndex(p.ifIndex); err != nil {
			return err
		}
	}
	p.borrowed = b
	if b == nil {
		p.askLink()
		p.poll.begin(p, log)
		return nil
	}
	for i := range p.queues {
		p.queues[i].kernel = true
	}
	if err := b.started(); err != nil {
		return err
	}
	if filters { // a tap passes on everything that the kernel sends, and needs no CAP_NET_RAW
		if err := b.receiveGroups(); err != nil {
			return err
		}
	}
	if p.c.mac_kept != 0 {
		if err := b.receiveAll(); err != nil {
			return err
		}
	}
	s, err := b.dev.State()
	if err != nil {
		return err
	}
	p.link.Set(s.Up)
	return b.follow(p, log)
}

// askLink asks the driver for the link state. Watchers may use the port: p.mu is not held when they are
// called.
func (p *ethPort) askLink() {
	p.mu.Lock()
	gone := p.closed || p.gone.Load()
	up := !gone && C.urdma_link(p.c.id) != 0
	p.mu.Unlock()
	if !gone {
		p.link.Set(up)
	}
}

// leave closes a device that the kernel wants back (it was unbound or unplugged), once the workers no longer
// use it, and returns true from then on. The port continues to exist, without a link.
func (p *ethPort) leave(log *slog.Logger) bool {
	if atomic.LoadUint32((*uint32)(&p.queues[0].c.leaving)) == 0 {
		return false
	}
	if !p.gone.Swap(true) {
		log.Error("the kernel takes the port's card back, and with it the port, until urdmad is started again", "port",
			p.info.Name)
		p.link.Set(false) // wakes the workers
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	for i := range p.queues {
		if atomic.LoadUint32((*uint32)(&p.queues[i].c.left)) == 0 {
			return false
		}
	}
	C.urdma_device_close(p.c)
	return true
}

// linkPoll polls the link of a port without a network interface, in a goroutine, because not every driver has
// an interrupt for it.
type linkPoll struct {
	stop chan struct{}
	once sync.Once
	done sync.WaitGroup
}

// Intervals: short while the link is down, because programs wait for it.
const (
	linkPollUp   = 500 * time.Millisecond
	linkPollDown = 20 * time.Millisecond
)

func (l *linkPoll) begin(p *ethPort, log *slog.Logger) {
	l.stop = make(chan struct{})
	l.done.Go(func() {
		for {
			wait := linkPollUp
			if !p.Link() {
				wait = linkPollDown
			}
			select {
			case <-l.stop:
				return
			case <-time.After(wait):
				p.askLink()
				if p.leave(log) {
					return
				}
			}
		}
	})
}

func (l *linkPoll) end() {
	l.once.Do(func() {
		if l.stop != nil {
			close(l.stop)
		}
	})
	l.done.Wait()
}
