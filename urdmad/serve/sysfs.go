package serve

import (
	"fmt"

	"urdma/urdmad/sysfs"
	"urdma/verbs/personality"
)

// WriteSysfs writes the tree that stands for /sys, and has programs find it: Open MPI and UCX take no
// device that isn't there.
func (c *Core) WriteSysfs() error {
	c.Server.Sysfs, c.sysfs = c.Config.SysfsDir, true
	var devices []sysfs.Device
	for i := range c.Ports {
		devices = append(devices, c.SysfsDevice(i))
	}
	return sysfs.Write(c.Config.SysfsDir, devices)
}

// RemoveSysfs removes the tree if WriteSysfs was called.
func (c *Core) RemoveSysfs() error {
	if !c.sysfs {
		return nil
	}
	return sysfs.Remove(c.Config.SysfsDir)
}

// ShowLink writes a port's present link state to the tree.
func (c *Core) ShowLink(i int) {
	if err := sysfs.SetLink(c.Config.SysfsDir, c.SysfsPort(i), c.Links.Up(i)); err != nil {
		c.Log.Warn("sysfs does not show the link's change", "port", c.Config.Ports[i].Name, "error", err)
	}
}

// SysfsPort returns what identifies port i in the tree.
func (c *Core) SysfsPort(i int) sysfs.Port {
	return sysfs.Port{Device: c.Config.Ports[i].Device, Number: c.Config.Ports[i].Number}
}

// SysfsDevice returns port i as the tree shows it now, with the address of the configuration.
func (c *Core) SysfsDevice(i int) sysfs.Device {
	p, on := &c.Config.Ports[i], c.Ports[i]
	info := on.Info()
	return sysfs.Device{Port: c.SysfsPort(i), GUID: personality.GUID(c.Ports[i+1-p.Number].Info().MAC),
		Firmware: c.firmware(),
		Driver:   info.Driver, Interface: info.Interface, Up: on.Link(),
		Is: personality.Port{MAC: info.MAC, Addr: p.Address.Addr()}, Personality: personality.Named(p.Transport),
		Counters: c.SysfsCounters(i)}
}

// firmware is urdma's version as a device's firmware version.
func (c *Core) firmware() string {
	return fmt.Sprintf("%d.%d.%d", c.Version>>16, c.Version>>8&0xff, c.Version&0xff)
}

// SysfsCounters returns port i's counters as the tree shows them now.
func (c *Core) SysfsCounters(i int) sysfs.Counters {
	s := c.Ports[i].Stats()
	return sysfs.Counters{RxPackets: s.RxPackets, TxPackets: s.TxPackets, RxBytes: s.RxBytes, TxBytes: s.TxBytes,
		RxErrors: s.RxErrors, RxDropped: s.RxDropped + s.NoBuffer, TxDropped: s.TxDropped, LinkDowns: s.LinkDowns}
}
