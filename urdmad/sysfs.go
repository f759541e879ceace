package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"time"

	"urdma/config"
	"urdma/dpdk/port"
	"urdma/urdmad/attach/sysfs"
	"urdma/verbs/personality"
)

func sysfsDevices(cfg *config.Config, ports []port.Port) (out []sysfs.Device) {
	for i, p := range cfg.Ports {
		shown := sysfsDevice(&p, ports[i])
		shown.GUID = personality.GUID(ports[i+1-p.Number].Info().MAC)
		out = append(out, shown)
	}
	return out
}

func sysfsPort(p *config.Port) sysfs.Port { return sysfs.Port{Device: p.Device, Number: p.Number} }

func sysfsDevice(p *config.Port, on port.Port) sysfs.Device {
	info := on.Info()
	return sysfs.Device{Port: sysfsPort(p), Firmware: firmware(), Driver: info.Driver, Interface: info.Interface,
		Up: on.Link(), Counters: sysfsCounters(on.Stats()),
		Is: personality.Port{MAC: info.MAC, Addr: p.Address.Addr()}, Personality: personality.Named(p.Transport)}
}

// firmware returns the version as in ibv_query_device(3).
func firmware() string {
	v := versionNumber(version)
	return fmt.Sprintf("%d.%d.%d", v>>16, v>>8&0xff, v&0xff)
}

func sysfsCounters(s port.Stats) sysfs.Counters {
	return sysfs.Counters{RxPackets: s.RxPackets, TxPackets: s.TxPackets, RxBytes: s.RxBytes, TxBytes: s.TxBytes,
		RxErrors:  s.RxErrors,
		RxDropped: s.RxDropped + s.NoBuffer, TxDropped: s.TxDropped, LinkDowns: s.LinkDowns}
}

// writeSysfs writes the tree that stands for /sys.
func (d *daemon) writeSysfs() error {
	d.Server.Sysfs, d.sysfs = d.Config.SysfsDir, true
	return sysfs.Write(d.Config.SysfsDir, sysfsDevices(d.Config, d.Ports))
}

// sysfsRemoved reports whether the tree has been removed.
func (d *daemon) sysfsRemoved() bool {
	_, err := os.Stat(d.Config.SysfsDir)
	return errors.Is(err, fs.ErrNotExist)
}

func (d *daemon) removeSysfs() error {
	if !d.sysfs {
		return nil
	}
	return sysfs.Remove(d.Config.SysfsDir)
}

// showLink writes a port's present link state.
func (d *daemon) showLink(i int) {
	p := &d.Config.Ports[i]
	if err := sysfs.SetLink(d.Config.SysfsDir, sysfsPort(p), d.Links.Up(i)); err != nil {
		d.log.Warn("sysfs does not show the link's change", "port", p.Name, "error", err)
	}
}

// showAddress writes a port's present address.
func (d *daemon) showAddress(i int, a netip.Addr) {
	p := &d.Config.Ports[i]
	shown := sysfsDevice(p, d.Ports[i])
	shown.Is.Addr = a
	if err := sysfs.SetAddress(d.Config.SysfsDir, shown); err != nil {
		d.log.Warn("sysfs does not show the port's address", "port", p.Name, "error", err)
	}
}

func (d *daemon) showCounters(ctx context.Context) {
	d.Background.Go(func() { d.keepCounters(ctx) })
}

// keepCounters writes each port's counters to the tree until ctx ends. It writes nothing while
// they do not change.
func (d *daemon) keepCounters(ctx context.Context) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	last := make([]sysfs.Counters, len(d.Ports))
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		for i, p := range d.Ports {
			now := sysfsCounters(p.Stats())
			now.Injected = d.subnet.Injected(i)
			if now == last[i] {
				continue
			}
			if err := sysfs.SetCounters(d.Config.SysfsDir, sysfsPort(&d.Config.Ports[i]), now); err != nil {
				d.log.Warn("sysfs does not show the counters", "port", d.Config.Ports[i].Name, "error", err)
				continue
			}
			last[i] = now
		}
	}
}
