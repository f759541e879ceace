package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"urdma/config"
	"urdma/dpdk/port"
	"urdma/urdmad/attach/sysfs"
	"urdma/verbs/personality"
)

// versionNumber packs "1.2.3-anything" as major<<16 | minor<<8 | patch.
func versionNumber(v string) (n uint32) {
	v, _, _ = strings.Cut(strings.TrimPrefix(v, "v"), "-")
	for i, part := range strings.SplitN(v, ".", 3) {
		d, err := strconv.ParseUint(part, 10, 8)
		if err != nil {
			break
		}
		n |= uint32(d) << (16 - 8*i)
	}
	return n
}

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
	return sysfs.Device{Port: sysfsPort(p), Firmware: firmware(), Driver: info.Driver, Interface: info.Interface, Up: on.Link(), Counters: sysfsCounters(on.Stats()),
		Is: personality.Port{MAC: info.MAC, Addr: p.Address.Addr()}, Personality: personality.Named(p.Transport)}
}

// firmware is the version as ibv_query_device(3) says it.
func firmware() string {
	v := versionNumber(version)
	return fmt.Sprintf("%d.%d.%d", v>>16, v>>8&0xff, v&0xff)
}

func sysfsCounters(s port.Stats) sysfs.Counters {
	return sysfs.Counters{RxPackets: s.RxPackets, TxPackets: s.TxPackets, RxBytes: s.RxBytes, TxBytes: s.TxBytes, RxErrors: s.RxErrors,
		RxDropped: s.RxDropped + s.NoBuffer, TxDropped: s.TxDropped, LinkDowns: s.LinkDowns}
}

// showCounters keeps each port's counters in the tree, until ctx ends. It writes
// nothing while a port is quiet.
func (d *daemon) showCounters(ctx context.Context) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	last := make([]sysfs.Counters, len(d.ports))
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		for i, p := range d.ports {
			now := sysfsCounters(p.Stats())
			now.Injected = d.subnet.Injected(i)
			if now == last[i] {
				continue
			}
			if err := sysfs.SetCounters(d.cfg.SysfsDir, sysfsPort(&d.cfg.Ports[i]), now); err != nil {
				d.log.Warn("sysfs does not show the counters", "port", d.cfg.Ports[i].Name, "error", err)
				continue
			}
			last[i] = now
		}
	}
}
