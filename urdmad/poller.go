package main

import (
	"net/netip"
	"slices"

	"urdma/config"
	"urdma/dpdk"
	"urdma/dpdk/port"
	"urdma/systemd"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/connect"
	"urdma/urdmad/core/engine"
	"urdma/urdmad/core/steer"
	"urdma/urdmad/core/worker"
	"urdma/verbs/probe"
)

// poller is a worker with what it runs: a data path, and who manages its connections.
type poller struct {
	engine  *engine.Engine
	worker  *worker.Worker
	cm      *cm.Manager
	numbers *connect.Numbers
}

// workers is how many there are.
func (d *daemon) workers() int {
	if d.alone {
		return 1
	}
	return max(len(d.cfg.Workers), 1)
}

// settleWorkers has one worker, where the configuration leaves it to urdmad, if no port has a
// queue for each of several.
func (d *daemon) settleWorkers() {
	n := d.workers()
	if !d.cfg.AutoWorkers || n == 1 || slices.ContainsFunc(d.ports, func(p port.Port) bool { return p.Queues() >= n }) {
		return
	}
	d.alone = true
	d.log.Info("one worker: no port has a queue for each of several", "processors_allow", n)
}

// sharedPorts are what several workers have in common.
type sharedPorts struct {
	hub     *steer.Hub
	numbers *steer.Numbers
	ports   []*steer.Port
}

// sharePorts puts a queue for each worker in front of each port.
func (d *daemon) sharePorts() *sharedPorts {
	s := &sharedPorts{numbers: steer.NewNumbers(d.workers())}
	s.hub = steer.NewHub(d.workers(), s.numbers, func(w int) { d.pollers[w].worker.Wake() })
	for i, p := range d.cfg.Ports {
		shared := s.hub.Add(d.ports[i], p.Address.Addr(), p.RoCE())
		s.ports = append(s.ports, shared)
		d.ports[i] = shared.For(0)
	}
	return s
}

// newPoller makes the worker of a number.
func (d *daemon) newPoller(n int) (*poller, error) {
	policy := d.policy(n)
	p := &poller{}
	set := engine.Config{Log: d.log.Logger, DeathTimeout: clock.Time(d.cfg.DeathTimeout), YieldPost: 1, YieldPoll: 1,
		YieldAlone: uint32(policy.Alone), Wake: func() { p.worker.Wake() }, AddressLost: d.addressLost}
	managing := cm.Config{Log: d.log.Logger, Timeout: clock.Time(d.cfg.DeathTimeout), MaxDepth: maxReads, Expected: d.responder.Expected}
	ports := d.ports
	if shared := d.shared; shared != nil {
		set.Mine = shared.numbers.Of(n).HasPair
		set.Numbers, managing.Shared = shared.numbers.Of(n), shared.numbers.Of(n)
		ports = make([]port.Port, len(d.ports))
		for i := range ports {
			ports[i] = shared.ports[i].For(n)
		}
	}
	p.engine = engine.New(set)
	managing.Addrs, managing.Scopes = d.addPorts(p.engine, ports)
	p.cm, p.numbers = connect.New(p.engine, managing)
	if n == 0 {
		d.listenOverTCP(p.engine)
	}
	var err error
	p.worker, err = worker.New(p.engine, policy, worker.Hooks{Begin: dpdk.RegisterThread, End: dpdk.UnregisterThread, Moved: p.engine.Moved, Crowded: p.engine.Crowded})
	if err != nil {
		return nil, configError{err}
	}
	return p, nil
}

// addPorts gives an engine its ports, and returns their addresses and scopes.
func (d *daemon) addPorts(e *engine.Engine, ports []port.Port) (addrs []netip.Addr, scopes []uint32) {
	for i, p := range d.cfg.Ports {
		dev := e.AddPort(ports[i], addressOf(&p))
		e.Interface(dev).SetBursts(p.RxBurst, p.TxBurst)
		if v, _ := config.ParseVdev(p.Vdev); v.TCP {
			e.CarryOverTCP(dev, d.allowedOver(&p), scopeOf(ports[i].Info()), p.CRC == config.CRCAlways)
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
func (d *daemon) allowedOver(p *config.Port) []netip.Prefix {
	if own := p.Address.Addr(); len(p.Allow) > 0 && d.workers() > 1 {
		return append(slices.Clone(p.Allow), netip.PrefixFrom(own, own.BitLen()))
	}
	return p.Allow
}

// listenOverTCP has requests come for the responder.
func (d *daemon) listenOverTCP(e *engine.Engine) {
	for dev := range d.cfg.Ports {
		if !e.OverTCP(dev) {
			continue
		}
		if err := e.MPA.Listen(dev, netip.AddrPortFrom(e.Interface(dev).IP(), probe.Port)); err != nil {
			d.log.Warn("the responder cannot be reached over TCP", "port", d.cfg.Ports[dev].Name, "number", probe.Port, "error", err)
		}
	}
}

// do has fn run on the worker's thread, and does not wait.
func (p *poller) do(fn func()) {
	p.engine.Do(fn)
	p.worker.Wake()
}

// borrow is control.Worker's.
func (p *poller) borrow(fn func()) bool {
	return p.worker.Borrow(func(now worker.Time) (work bool, deadline worker.Time) { return p.engine.Visit(now, fn) })
}

// watchPollers tells of the first worker that has ended.
func (d *daemon) watchPollers() <-chan *poller {
	dead := make(chan *poller, len(d.pollers))
	for _, p := range d.pollers {
		go func() {
			<-p.worker.Done()
			dead <- p
		}()
	}
	return dead
}

// pollerEnded reports whether a worker has.
func (d *daemon) pollerEnded() bool {
	for _, p := range d.pollers {
		select {
		case <-p.worker.Done():
			return true
		default:
		}
	}
	return false
}

// beats are for a watchdog.
func (d *daemon) beats() (all []systemd.Beat) {
	for _, p := range d.pollers {
		all = append(all, p.worker.Beat)
	}
	return all
}
