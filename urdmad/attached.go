package main

import (
	"context"
	"slices"

	"urdma/urdmad/attach/admin"
	"urdma/urdmad/attach/fabric"
	"urdma/urdmad/attach/injector"
	"urdma/urdmad/attach/kernelif"
	"urdma/urdmad/attach/metrics"
	"urdma/urdmad/attach/nldev"
	"urdma/urdmad/attach/responder"
	"urdma/urdmad/attach/snapshot"
	"urdma/urdmad/attach/umad"
	"urdma/urdmad/attach/watch"
	"urdma/urdmad/serve"
)

// feature is a part that attaches to the core, which works without it. Nil functions are not
// called.
type feature struct {
	begin   func() error              // called once the ports are open
	workers func() error              // called once the workers are made, before they start
	server  func() error              // called once the control server is made, before it serves
	show    func(port int)            // called when a port's link may have changed; see serve.Links
	run     func(ctx context.Context) // runs in the background from urdmad's readiness until ctx ends
	stop    func() error              // called when no client is left; ends background work that ctx does not end
	close   func() error              // called once the ports are closed and report no more link changes
}

// features returns all features, in the order in which they attach.
func (d *daemon) features() []feature {
	return []feature{
		{begin: d.newResponder, workers: d.listenOverTCP, run: d.runResponder},
		{begin: d.listenMetrics, run: d.serveMetrics, stop: d.closeMetrics},
		{server: d.attachWatch},
		{server: d.attachInjection},
		{server: d.attachSnapshots, run: d.logStatistics},
		{server: d.attachAdmin},
		{server: d.attachNetlink},
		{server: d.WriteSysfs, show: d.ShowLink, run: d.showCounters, close: d.RemoveSysfs},
		{server: d.attachSubnet, show: d.updateSubnet},
		{workers: d.shareWithKernel, server: d.followKernel, stop: d.closeKernel},
	}
}

// attachments has the state of the features.
type attachments struct {
	responder *responder.Responder
	watch     *watch.Watch
	injector  *injector.Injector
	metrics   *metrics.Server // nil: no metrics_address
	snapshots *snapshot.Taker
	subnet    *umad.Server
	shown     []fabric.Shown              // last shown state, by port; guarded by subnet's lock
	kernels   map[int]*kernelif.Interface // kernel interfaces, by port
}

// Reasons why a port's link counts as down.
const (
	linkCut      = serve.AddressLost << (iota + 1) // taken down by urdma inject
	linkAway                                       // the kernel's interface is down or without an address
	linkDisabled                                   // disabled in the subnet by ibportstate or opensm
)

// attachedSettings are the features' settings that need no restart.
var attachedSettings = []liveSetting{
	{"responder", (*daemon).applyResponder},
	{"responder_allow", (*daemon).applyResponder},
}

func (d *daemon) attachAdmin() error {
	admin.Attach(d.Server, admin.Config{Reload: d.askReload, LogLevel: d.setLogLevel})
	return nil
}

func (d *daemon) attachNetlink() error {
	nldev.Attach(d.Server, nldev.Config{Devices: d.deviceNames, Sysfs: d.Config.SysfsDir, Shown: d.shownTree,
		Snapshot: d.snapshots.For})
	return nil
}

// deviceNames returns the names of the devices, each of which may have several ports.
func (d *daemon) deviceNames() (list []string) {
	for _, p := range d.Config.Ports {
		if p.Number == 1 {
			list = append(list, p.Device)
		}
	}
	return list
}

// restore recreates files of features that were removed together with the control socket.
func (d *daemon) restore() error {
	if !d.sysfsRemoved() {
		return nil
	}
	d.Links.Lock()
	defer d.Links.Unlock()
	if err := d.WriteSysfs(); err != nil {
		return err
	}
	d.subnet.ShowAnew()
	for i := range d.Ports {
		d.Links.Show(i)
	}
	return nil
}

// attach calls one function of each feature, up to the first error.
func (d *daemon) attach(which func(*feature) func() error) error {
	for i := range d.attached {
		if fn := which(&d.attached[i]); fn != nil {
			if err := fn(); err != nil {
				return err
			}
		}
	}
	return nil
}

// detach calls one function of each feature, in reverse order, and returns all errors.
func (d *daemon) detach(which func(*feature) func() error) (errs []error) {
	for _, f := range slices.Backward(d.attached) {
		if fn := which(&f); fn != nil {
			errs = append(errs, fn())
		}
	}
	return errs
}

// shows returns the features' show functions.
func (d *daemon) shows() (list []func(port int)) {
	for _, f := range d.attached {
		if f.show != nil {
			list = append(list, f.show)
		}
	}
	return list
}
