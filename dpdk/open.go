package dpdk

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"urdma/dpdk/port"
)

// OpenPorts opens all ports, in the order of specs, or none. The EAL is started only if one of them is a DPDK
// device; ealArgs are added to our own arguments and override them. closeAll closes the ports and may be
// called twice. At the very end of the process call Cleanup.
func OpenPorts(specs []Spec, ealArgs []string, log *slog.Logger) (ports []port.Port, closeAll func() error, err error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if err := checkAll(specs); err != nil {
		return nil, nil, err
	}
	closeAll = sync.OnceValue(func() error { return closePorts(ports) })
	if NeedsEAL(specs) {
		if err := startEAL(ealArguments(specs, ealArgs), log); err != nil {
			return nil, nil, err
		}
	}
	for i := range specs {
		p, err := specs[i].open(log)
		if err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
		ports = append(ports, p)
		info := p.Info()
		log.Info("port open", "port", info.Name, "driver", info.Driver, "mac", fmt.Sprintf("%x", info.MAC), "mtu", info.MTU,
			"queues", p.Queues(), "link", p.Link())
	}
	return ports, closeAll, nil
}

func (s *Spec) open(log *slog.Logger) (port.Port, error) {
	if s.native() {
		return s.openNative(log)
	}
	return s.openDevice(log)
}

func checkAll(specs []Spec) error {
	devices := map[string]string{}
	for i := range specs {
		s := &specs[i]
		if err := s.Check(); err != nil {
			return err
		}
		if s.native() {
			continue
		}
		if other, twice := devices[s.base()]; twice {
			return fmt.Errorf("dpdk: ports %q and %q both name the device %s", other, s.label(), s.base())
		}
		devices[s.base()] = s.label()
	}
	return nil
}

// NeedsEAL reports whether one of the ports is a DPDK device, so that OpenPorts starts the EAL.
func NeedsEAL(specs []Spec) bool {
	for i := range specs {
		if !specs[i].native() {
			return true
		}
	}
	return false
}

func closePorts(ports []port.Port) error {
	var errs []error
	for i := len(ports) - 1; i >= 0; i-- {
		errs = append(errs, ports[i].Close())
	}
	return errors.Join(errs...)
}
