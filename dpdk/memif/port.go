package memif

import (
	"context"
	"sync"
	"sync/atomic"

	"urdma/ancillary"
	"urdma/dpdk/port"
)

// Port is a memif port. See package port for the rules of its methods.
type Port struct {
	opt      Options
	info     port.Info
	counters port.Counters // of control messages
	queues   []*queue
	link     port.LinkState

	// Used by the control goroutine only.
	// indexed by an add-ring's flags: the number of rings that a server accepted before it refused one; 0: it
	// refused none
	refused  [2]int
	epoch    atomic.Uint32
	busy     atomic.Bool // a control connection exists (server)
	listener *listener
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup
	closing  sync.Once
	faults   faultLog
	closer   ancillary.Closer // of descriptors that servers send
}

var _ port.Port = (*Port)(nil)

// Open makes a port, which tries to connect in the background until Close. It fails if the options are
// invalid, or if a server's socket can't be created.
func Open(o Options) (port.Port, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	p := &Port{opt: o}
	for range o.Queues {
		q, err := newQueue(&o)
		if err != nil {
			p.closeQueues()
			return nil, err
		}
		p.queues = append(p.queues, q)
	}
	p.info = port.Info{
		Name: o.Name, Driver: driverName, MAC: o.MAC, MTU: o.MTU,
		TxUDPChecksum: true, SharedRx: true, Wire: true,
	}
	p.faults.log = o.Log
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if o.Server {
		if err := listen(p); err != nil {
			p.closeQueues()
			return nil, err
		}
		return p, nil
	}
	p.running.Add(1)
	go p.dialForever()
	return p, nil
}

// Info implements port.Port.
func (p *Port) Info() port.Info { return p.info }

// Queues implements port.Port.
func (p *Port) Queues() int { return len(p.queues) }

// Queue implements port.Port.
func (p *Port) Queue(i int) port.Queue { return p.queues[i] }

// Link implements port.Port.
func (p *Port) Link() bool { return p.link.Up() }

// Watch implements port.Port.
func (p *Port) Watch(f func(up bool)) { p.link.Watch(f) }

// Stats implements port.Port.
func (p *Port) Stats() port.Stats {
	s := p.counters.Snapshot().Add(p.link.Stats())
	for _, q := range p.queues {
		s = s.Add(q.counters.Snapshot())
	}
	return s
}

// Close implements port.Port. It sends the peer a disconnect message.
func (p *Port) Close() error {
	p.closing.Do(func() {
		p.link.Close()
		p.cancel()
		if p.listener != nil {
			p.listener.remove(p)
		}
		p.running.Wait()
		p.closeQueues()
	})
	return nil
}

func (p *Port) closeQueues() {
	for _, q := range p.queues {
		q.close()
	}
}

// deliver puts a link into the workers' mailboxes. Called by the control goroutine. Wake-ups are sent before
// the link is up.
func (p *Port) deliver(l *link) {
	for i, q := range p.queues {
		if old := q.mail.Swap(l.shares[i]); old != nil {
			old.destroy() // the earlier link died before the worker took it
		}
		q.wake()
	}
	p.link.Set(true)
}

// withdraw ends a link. Called by the control goroutine.
func (p *Port) withdraw(l *link) {
	p.link.Set(false)
	l.dead.Store(true)
	for i, q := range p.queues {
		if s := l.shares[i]; q.mail.CompareAndSwap(s, nil) {
			s.destroy()
		}
		q.wake()
	}
}
