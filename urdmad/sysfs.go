package main

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"urdma/inject"
	"urdma/urdmad/attach/fabric"
	"urdma/urdmad/sysfs"
	"urdma/verbs/abi"
	"urdma/verbs/personality"
)

// sysfsRemoved reports whether the tree that stands for /sys has been removed.
func (d *daemon) sysfsRemoved() bool {
	_, err := os.Stat(d.Config.SysfsDir)
	return errors.Is(err, fs.ErrNotExist)
}

// shownTree returns the directory that stands for /sys for a program, and the devices' names in it.
func (d *daemon) shownTree(asked *abi.Shown) (dir string, names []string, err error) {
	profile, err := d.Server.ShownProfile(asked)
	if err != nil {
		return "", nil, err
	}
	dir = d.Config.SysfsDir
	if at := personality.Numbered(asked.Transport); at != nil {
		dir = filepath.Join(dir, sysfs.Shown(at.Name))
	}
	if profile.Name != "" {
		dir = filepath.Join(d.Config.SysfsDir, sysfs.ShownProfile(profile.Name))
	}
	for n, own := range d.deviceNames() {
		names = append(names, profile.DeviceName(n, own))
	}
	return dir, names, nil
}

// showAddress writes a port's present address.
func (d *daemon) showAddress(i int, a netip.Addr) {
	shown := d.SysfsDevice(i)
	shown.Is.Addr = a
	if err := sysfs.SetAddress(d.Config.SysfsDir, shown); err != nil {
		d.log.Warn("sysfs does not show the port's address", "port", d.Config.Ports[i].Name, "error", err)
	}
}

func (d *daemon) showCounters(ctx context.Context) {
	d.Background.Go(func() { d.keepCounters(ctx) })
}

// counted is what a port's counters are made of.
type counted struct {
	port     sysfs.Counters
	injected fabric.Errors // in addition
}

// keepCounters writes each port's counters to the tree until ctx ends. It writes nothing while
// they do not change.
func (d *daemon) keepCounters(ctx context.Context) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	last := make([]counted, len(d.Ports))
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		for i := range d.Ports {
			now := counted{d.SysfsCounters(i), d.subnet.Injected(i)}
			if now == last[i] {
				continue
			}
			if err := sysfs.SetCounters(d.Config.SysfsDir, d.SysfsPort(i), now.port, now.byName()); err != nil {
				d.log.Warn("sysfs does not show the counters", "port", d.Config.Ports[i].Name, "error", err)
				continue
			}
			last[i] = now
		}
	}
}

func (c *counted) byName() map[string]uint64 {
	injected := map[string]uint64{}
	for i, n := range c.injected {
		injected[inject.PortErrors[i]] = n
	}
	return injected
}
