package serve

import (
	"net/netip"
	"slices"

	"urdma/config"
	"urdma/dpdk"
	"urdma/dpdk/port"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/connect"
	"urdma/urdmad/core/engine"
	"urdma/urdmad/core/steer"
	"urdma/urdmad/core/worker"
)

// Poller is a worker with its data path and its connection managers.
type Poller struct {
	Engine  *engine.Engine
	Worker  *worker.Worker
	CM      *cm.Manager
	Numbers *connect.Numbers
}

// Workers returns the number of workers.
func (c *Core) Workers() int {
	if c.alone {
		return 1
	}
	return max(len(c.Config.Workers), 1)
}

// settleWorkers decides for one worker if the configuration leaves the number to urdmad and no
// port has a queue for each of several workers.
func (c *Core) settleWorkers() {
	n := c.Workers()
	if !c.Config.AutoWorkers || n == 1 || slices.ContainsFunc(c.Ports, func(p port.Port) bool { return p.Queues() >= n }) {
		return
	}
	c.alone = true
	c.Log.Info("one worker: no port has a queue for each of several", "processors_allow", n)
}

// Steered returns the counts of packets that worker n has passed to other workers and got from
// them; several reports whether there are other workers.
func (c *Core) Steered(n int) (counts steer.Counts, several bool) {
	if c.shared == nil {
		return counts, false
	}
	return c.shared.hub.Counts(n), true
}

// sharedPorts is the state that several workers share.
type sharedPorts struct {
	hub     *steer.Hub
	numbers *steer.Numbers
	ports   []*steer.Port
}

// sharePorts puts a queue for each worker in front of each port.
func (c *Core) sharePorts() *sharedPorts {
	s := &sharedPorts{numbers: steer.NewNumbers(c.Workers())}
	s.hub = steer.NewHub(c.Workers(), s.numbers, func(w int) { c.Pollers[w].Worker.Wake() })
	for i, p := range c.Config.Ports {
		shared := s.hub.Add(c.Ports[i], p.Address.Addr(), p.RoCE())
		s.ports = append(s.ports, shared)
		c.Ports[i] = shared.For(0)
	}
	return s
}

// newPoller makes worker number n.
func (c *Core) newPoller(n int) (*Poller, error) {
	policy := c.Policy(n)
	p := &Poller{}
	set := engine.Config{Log: c.Log, DeathTimeout: clock.Time(c.Config.DeathTimeout), YieldPost: 1, YieldPoll: 1,
		YieldAlone: uint32(policy.Alone), Wake: func() { p.Worker.Wake() }, AddressLost: c.addressLost}
	managing := cm.Config{Log: c.Log, Timeout: clock.Time(c.Config.DeathTimeout), MaxDepth: maxReads, Expected: c.Expected}
	ports := c.Ports
	if shared := c.shared; shared != nil {
		set.Mine = shared.numbers.Of(n).HasPair
		set.Numbers, managing.Shared = shared.numbers.Of(n), shared.numbers.Of(n)
		ports = make([]port.Port, len(c.Ports))
		for i := range ports {
			ports[i] = shared.ports[i].For(n)
		}
	}
	p.Engine = engine.New(set)
	managing.Addrs, managing.Scopes = c.addPorts(p.Engine, ports)
	p.CM, p.Numbers = connect.New(p.Engine, managing)
	var err error
	p.Worker, err = worker.New(p.Engine, policy, worker.Hooks{Begin: dpdk.RegisterThread, End: dpdk.UnregisterThread,
		Moved: p.Engine.Moved, Crowded: p.Engine.Crowded})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// addPorts adds the ports to an engine, and returns their addresses and scopes.
func (c *Core) addPorts(e *engine.Engine, ports []port.Port) (addrs []netip.Addr, scopes []uint32) {
	for i, p := range c.Config.Ports {
		dev := e.AddPort(ports[i], addressOf(&p))
		e.Interface(dev).SetBursts(p.RxBurst, p.TxBurst)
		if v, _ := config.ParseVdev(p.Vdev); v.TCP {
			e.CarryOverTCP(dev, c.allowedOver(&p), scopeOf(ports[i].Info()), p.CRC == config.CRCAlways)
		}
		if p.RoCE() {
			e.SpeakRoCE(dev)
		}
		if c.raw[i] != nil {
			e.Raw.Open(dev, c.raw[i])
		}
		if p.Placement == config.PlacementImmediate {
			e.PlaceImmediately(dev)
		}
		addrs = append(addrs, p.Address.Addr())
		scopes = append(scopes, scopeOf(ports[i].Info()))
	}
	return addrs, scopes
}

// allowedOver returns the networks from which a port accepts connections. Connections between
// workers of this urdmad are among them.
func (c *Core) allowedOver(p *config.Port) []netip.Prefix {
	if own := p.Address.Addr(); len(p.Allow) > 0 && c.Workers() > 1 {
		return append(slices.Clone(p.Allow), netip.PrefixFrom(own, own.BitLen()))
	}
	return p.Allow
}

// Do runs fn on the worker's thread without waiting.
func (p *Poller) Do(fn func()) {
	p.Engine.Do(fn)
	p.Worker.Wake()
}

// borrow implements control.Worker.
func (p *Poller) borrow(fn func()) bool {
	return p.Worker.Borrow(func(now worker.Time) (work bool, deadline worker.Time) { return p.Engine.Visit(now, fn) })
}

// Ended returns a channel that delivers the first worker that has ended.
func (c *Core) Ended() <-chan *Poller {
	dead := make(chan *Poller, len(c.Pollers))
	for _, p := range c.Pollers {
		go func() {
			<-p.Worker.Done()
			dead <- p
		}()
	}
	return dead
}

// workerEnded reports whether any worker has ended.
func (c *Core) workerEnded() bool {
	for _, p := range c.Pollers {
		select {
		case <-p.Worker.Done():
			return true
		default:
		}
	}
	return false
}
