package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"

	"urdma/inject"
	"urdma/urdmad/attach/fabric"
	"urdma/urdmad/attach/sysfs"
	"urdma/urdmad/attach/umad"
	"urdma/verbs/abi"
	"urdma/verbs/personality"
)

// startSubnet makes the InfiniBand subnet that the ports are shown in, as far as they are
// shown as InfiniBand's.
func (d *daemon) startSubnet() (err error) {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	t, err := d.cfg.Topology()
	if err != nil {
		return configError{err}
	}
	if d.subnet, err = umad.New(host, d.subnetPorts, t, d.showSubnet); err != nil {
		return configError{err}
	}
	d.shown = make([]fabric.Shown, len(d.ports))
	d.reachWires()
	d.subnet.Attach(d.server)
	return nil
}

// injectIntoSubnet is injector.Config's.
func (d *daemon) injectIntoSubnet(one *inject.Statement, look bool) (err error) {
	f := &fabric.Fault{At: one.At, Errors: one.Errors, Name: one.Name, Down: one.Verb == inject.Link && !one.Up, Up: one.Up}
	if look {
		err = d.subnet.Inject(f, true)
	} else {
		d.background.Go(func() { _ = d.subnet.Inject(f, false) }) // what it looked at before may have gone
	}
	switch {
	case errors.Is(err, fabric.ErrNotFound):
		return fmt.Errorf("%w: %w", err, syscall.ENODEV)
	case err != nil:
		return fmt.Errorf("%w: %w", err, syscall.ENOTUNIQ)
	}
	return nil
}

// subnetPorts is the snapshot of ports that the subnet answers from.
func (d *daemon) subnetPorts() (list []fabric.Port) {
	for i, p := range d.cfg.Ports {
		info, n := d.ports[i].Info(), d.ports[i].Stats()
		guid, node := personality.GUID(info.MAC), personality.GUID(d.ports[i+1-p.Number].Info().MAC)
		at := d.server.Devices[i].At()
		lid, ok := personality.UnicastLID(at.Address.Addr())
		if !ok {
			lid = 0
		}
		list = append(list, fabric.Port{Name: p.Device, Node: binary.BigEndian.Uint64(node[:]), GUID: binary.BigEndian.Uint64(guid[:]), LID: lid, MTU: at.MTU, Up: d.ports[i].Link() && !d.links.broken(i), Wire: info.Wire && !p.RoCE(),
			Counters: fabric.Counters{RxPackets: n.RxPackets, TxPackets: n.TxPackets, RxBytes: n.RxBytes, TxBytes: n.TxBytes,
				RxErrors: n.RxErrors, TxDropped: n.TxDropped, LinkDowns: n.LinkDowns}})
	}
	return list
}

// showSubnet writes what the subnet has decided of port i, and has its link follow.
func (d *daemon) showSubnet(i int, s fabric.Shown) {
	if err := sysfs.SetSubnet(d.cfg.SysfsDir, sysfsPort(&d.cfg.Ports[i]), sysfs.Subnet{LID: s.LID, SMLID: s.SMLID, LMC: s.LMC, SMSL: s.SMSL, State: s.State,
		Phys: s.Phys, CapabilityMask: s.CapabilityMask}); err != nil {
		d.log.Warn("sysfs does not show the subnet's change", "port", d.cfg.Ports[i].Name, "error", err)
	}
	d.tellSubnet(i, s)
	if s.Disabled != d.links.disabled[i].Load() {
		d.background.Go(func() { d.followSubnet(i) }) // which asks the subnet, whose lock is held
	}
}

// tellSubnet tells programs what a subnet manager has changed.
func (d *daemon) tellSubnet(i int, now fabric.Shown) {
	before, first := d.shown[i], d.shown[i] == (fabric.Shown{})
	d.shown[i] = now
	if first {
		return
	}
	if now.SMLID != before.SMLID {
		d.server.SubnetChanged(i, abi.EventSMChange)
	}
	if now.Reregistered != before.Reregistered {
		d.server.SubnetChanged(i, abi.EventClientReregister)
	}
}

// followSubnet has port i carry packets unless somebody has disabled it in the subnet.
func (d *daemon) followSubnet(i int) {
	d.links.telling.Lock()
	defer d.links.telling.Unlock()
	d.changeLink(i, &d.links.disabled[i], d.subnet.Disabled(i), func(off bool) {
		d.injector.DisableWire(i, off)
	})
}
