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

// Poller is a worker with what it runs: a data path, and who manages its connections.
type Poller struct {
	Engine  *engine.Engine
	Worker  *worker.Worker
	CM      *cm.Manager
	Numbers *connect.Numbers
}

// Workers is how many there are.
func (c *Core) Workers() int {
	if c.alone {
		return 1
	}
	return max(len(c.Config.Workers), 1)
}

// settleWorkers has one worker, where the configuration leaves it to urdmad, if no port has a
// queue for each of several.
func (c *Core) settleWorkers() {
	n := c.Workers()
	if !c.Config.AutoWorkers || n == 1 || slices.ContainsFunc(c.Ports, func(p port.Port) bool { return p.Queues() >= n }) {
		return
	}
	c.alone = true
	c.Log.Info("one worker: no port has a queue for each of several", "processors_allow", n)
}

// Steered is what worker n has given to others and got from them; it reports whether there are others.
func (c *Core) Steered(n int) (counts steer.Counts, several bool) {
	if c.shared == nil {
		return counts, false
	}
	return c.shared.hub.Counts(n), true
}

// sharedPorts are what several workers have in common.
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

// newPoller makes the worker of a number.
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
	p.Worker, err = worker.New(p.Engine, policy, worker.Hooks{Begin: dpdk.RegisterThread, End: dpdk.UnregisterThread, Moved: p.Engine.Moved, Crowded: p.Engine.Crowded})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// addPorts gives an engine its ports, and returns their addresses and scopes.
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
		if p.Placement == config.PlacementImmediate {
			e.PlaceImmediately(dev)
		}
		addrs = append(addrs, p.Address.Addr())
		scopes = append(scopes, scopeOf(ports[i].Info()))
	}
	return addrs, scopes
}

// allowedOver are the networks whose connections a port takes, which those of other workers
// here are.
func (c *Core) allowedOver(p *config.Port) []netip.Prefix {
	if own := p.Address.Addr(); len(p.Allow) > 0 && c.Workers() > 1 {
		return append(slices.Clone(p.Allow), netip.PrefixFrom(own, own.BitLen()))
	}
	return p.Allow
}

// Do has fn run on the worker's thread, and does not wait.
func (p *Poller) Do(fn func()) {
	p.Engine.Do(fn)
	p.Worker.Wake()
}

// borrow is control.Worker's.
func (p *Poller) borrow(fn func()) bool {
	return p.Worker.Borrow(func(now worker.Time) (work bool, deadline worker.Time) { return p.Engine.Visit(now, fn) })
}

// Ended tells of the first worker that has ended.
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

// workerEnded reports whether a worker has.
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
