package main

import (
	"encoding/binary"
	"os"

	"urdma/urdmad/attach/fabric"
	"urdma/urdmad/attach/umad"
	"urdma/urdmad/sysfs"
	"urdma/verbs/abi"
	"urdma/verbs/personality"
)

// attachSubnet makes the InfiniBand subnet of the ports that are shown as InfiniBand.
func (d *daemon) attachSubnet() (err error) {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	t, err := d.Config.Topology()
	if err != nil {
		return configError{err}
	}
	if d.subnet, err = umad.New(host, d.subnetPorts, t, d.showSubnet); err != nil {
		return configError{err}
	}
	d.shown = make([]fabric.Shown, len(d.Ports))
	d.subnet.Attach(d.Server)
	d.subnet.ShowAnew()
	return nil
}

// subnetPorts returns the snapshot of the ports for the subnet.
func (d *daemon) subnetPorts() (list []fabric.Port) {
	for i, p := range d.Config.Ports {
		info, n := d.Ports[i].Info(), d.Ports[i].Stats()
		guid, node := personality.GUID(info.MAC), personality.GUID(d.Ports[i+1-p.Number].Info().MAC)
		at := d.Server.Devices[i].At()
		lid, ok := personality.UnicastLID(at.Address.Addr())
		if !ok {
			lid = 0
		}
		list = append(list, fabric.Port{Name: p.Device, Node: binary.BigEndian.Uint64(node[:]),
			GUID: binary.BigEndian.Uint64(guid[:]), LID: lid, MTU: at.MTU, Up: d.Ports[i].Link() &&
				d.Links.Why(i)&^linkDisabled == 0,
			Counters: fabric.Counters{RxPackets: n.RxPackets, TxPackets: n.TxPackets, RxBytes: n.RxBytes, TxBytes: n.TxBytes,
				RxErrors: n.RxErrors, TxDropped: n.TxDropped, LinkDowns: n.LinkDowns}})
	}
	return list
}

// showSubnet writes the subnet's settings of port i to sysfs, and applies them to its link.
func (d *daemon) showSubnet(i int, s fabric.Shown) {
	if err := sysfs.SetSubnet(d.Config.SysfsDir, d.SysfsPort(i),
		sysfs.Subnet{LID: s.LID, SMLID: s.SMLID, LMC: s.LMC, SMSL: s.SMSL, State: s.State,
			Phys: s.Phys, CapabilityMask: s.CapabilityMask}); err != nil {
		d.log.Warn("sysfs does not show the subnet's change", "port", d.Config.Ports[i].Name, "error", err)
	}
	d.tellSubnet(i, s)
	if s.Disabled != (d.Links.Why(i)&linkDisabled != 0) {
		// in the background, because it takes the subnet's lock, which is held here
		d.Background.Go(func() { d.followSubnet(i) })
	}
}

// tellSubnet notifies programs of a subnet manager's changes.
func (d *daemon) tellSubnet(i int, now fabric.Shown) {
	before, first := d.shown[i], d.shown[i] == (fabric.Shown{})
	d.shown[i] = now
	if first {
		return
	}
	if now.SMLID != before.SMLID {
		d.Server.SubnetChanged(i, abi.EventSMChange)
	}
	if now.Reregistered != before.Reregistered {
		d.Server.SubnetChanged(i, abi.EventClientReregister)
	}
}

// followSubnet lets port i pass packets unless the port is disabled in the subnet.
func (d *daemon) followSubnet(i int) {
	d.Links.Lock()
	defer d.Links.Unlock()
	was, off := d.Links.Why(i)&linkDisabled != 0, d.subnet.Disabled(i)
	switch {
	case off == was:
	case off:
		d.injector.DisableWire(i, true)
		d.Links.Set(i, 0, linkDisabled)
	default:
		d.injector.DisableWire(i, false)
		d.Links.Set(i, linkDisabled, 0)
	}
}

// updateSubnet updates the subnet after a port's link has changed.
func (d *daemon) updateSubnet(int) { d.subnet.Update() }
