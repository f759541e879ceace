package injector

import (
	"fmt"
	"slices"
	"syscall"

	"urdma/dpdk/port"
	"urdma/inject"
	"urdma/urdmad/attach/impair"
	"urdma/urdmad/core/clock"
)

// This file puts the queues of wire statements between ports and their interfaces; on the
// engine's thread.

// wireOf returns the device whose port has a name, if the script may affect its wire.
func (s *script) wireOf(w *worker, name string) (int, error) {
	dev := s.n.server.PortNamed(name)
	switch {
	case dev < 0:
		return 0, fmt.Errorf("no port %q: %w", name, syscall.ENODEV)
	case !s.by.Admin || s.own != nil:
		return 0, fmt.Errorf("a port is its administrator's to break: %w", syscall.EPERM)
	case !w.Engine.Interface(dev).Receives():
		return 0, fmt.Errorf("port %q has no wire: nothing leaves urdmad there; "+
			"with two workers in urdma.json programs of this machine exchange packets: %w", name, syscall.EOPNOTSUPP)
	case w.Engine.OverTCP(dev):
		return 0, fmt.Errorf("the wire of port %q is the kernel's TCP; tc-netem(8) impairs that: %w",
			name, syscall.EOPNOTSUPP)
	}
	return dev, nil
}

// impair adds a stage to a device's wire.
func (w *worker) impair(dev int, stage *impair.Stage) {
	q := w.wires[dev]
	if q == nil {
		e := w.Engine
		e.Interface(dev).SetQueue(func(under port.Queue, info port.Info) port.Queue {
			q = impair.New(under, info, &e.Clock)
			return q
		})
		if w.wires == nil {
			w.wires = map[int]*impair.Queue{}
		}
		w.wires[dev] = q
	}
	q.Stages = append(q.Stages, stage)
}

// repair removes a stage.
func (w *worker) repair(dev int, stage *impair.Stage) {
	q := w.wires[dev]
	q.Stages = slices.DeleteFunc(q.Stages, func(s *impair.Stage) bool { return s == stage })
	if len(q.Stages) == 0 {
		w.restore(dev)
	}
}

// restoring is the interval of checks whether a queue is idle.
const restoring = 10 * clock.Millisecond

// restore gives an interface its port's own queue back, once no packet waits in the other.
func (w *worker) restore(dev int) {
	c := &w.Engine.Clock
	var look *clock.Timer
	look = clock.NewTimer(func() {
		q := w.wires[dev]
		switch {
		case q == nil || len(q.Stages) > 0: // new stages were added
		case !q.Idle():
			c.Set(look, c.Now+restoring)
		default:
			w.Engine.Interface(dev).SetQueue(func(port.Queue, port.Info) port.Queue { return q.Under() })
			q.Close()
			delete(w.wires, dev)
		}
	})
	c.Set(look, c.Now)
}

// cut identifies a reason why a device's wire carries nothing.
type cut struct {
	dev    int
	subnet bool // disabled in the subnet; else by urdma inject
}

// DisableWire stops or restores all traffic on a device's wire, because the port was disabled in
// the subnet. It does not wait.
func (n *Injector) DisableWire(dev int, off bool) {
	for _, w := range n.workers {
		w.Engine.Do(func() { w.cutWire(cut{dev, true}, off) })
		w.Wake()
	}
}

// cutWire stops or restores all traffic of a device, both on its wire and between connected queue
// pairs of this urdmad.
func (w *worker) cutWire(which cut, down bool) {
	before, is := w.cut[which]
	if is == down {
		return
	}
	e := w.Engine
	if down {
		if w.cut == nil {
			w.cut = map[cut]*impair.Stage{}
		}
		w.cut[which] = nil
		if e.Interface(which.dev).Receives() {
			w.cut[which] = impair.NewStage(inject.Wire{In: true, Out: true, Cut: true}, 0)
			w.impair(which.dev, w.cut[which])
		}
	} else if delete(w.cut, which); before != nil {
		w.repair(which.dev, before)
	}
	_, disabled := w.cut[cut{which.dev, true}]
	_, injected := w.cut[cut{which.dev, false}]
	e.SameHost.SetCut(which.dev, disabled || injected)
}
