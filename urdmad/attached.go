package main

import (
	"context"
	"slices"

	"urdma/urdmad/attach/admin"
	"urdma/urdmad/attach/fabric"
	"urdma/urdmad/attach/injector"
	"urdma/urdmad/attach/kernelif"
	"urdma/urdmad/attach/metrics"
	"urdma/urdmad/attach/responder"
	"urdma/urdmad/attach/snapshot"
	"urdma/urdmad/attach/umad"
	"urdma/urdmad/attach/watch"
	"urdma/urdmad/serve"
)

// feature is attached to the core, which works without it. Functions that are nil are not called.
type feature struct {
	begin   func() error              // the ports are open
	workers func() error              // the workers are made, and stand still
	server  func() error              // the control server is made, and serves nobody
	show    func(port int)            // a port's link may have changed; see serve.Links
	run     func(ctx context.Context) // urdmad is ready; until ctx ends, in the background
	stop    func() error              // no client is left; ends what goes on, if ctx does not
	close   func() error              // the ports are closed, and tell of no links any more
}

// features are all that there are, in the order in which they are attached.
func (d *daemon) features() []feature {
	return []feature{
		{begin: d.newResponder, workers: d.listenOverTCP, run: d.runResponder},
		{begin: d.listenMetrics, run: d.serveMetrics, stop: d.closeMetrics},
		{server: d.attachWatch},
		{server: d.attachInjection},
		{server: d.attachSnapshots, run: d.logStatistics},
		{server: d.attachAdmin},
		{server: d.writeSysfs, show: d.showLink, run: d.showCounters, close: d.removeSysfs},
		{server: d.attachSubnet, show: d.updateSubnet},
		{workers: d.shareWithKernel, server: d.followKernel, stop: d.closeKernel},
	}
}

// attachments are the features' own.
type attachments struct {
	responder *responder.Responder
	watch     *watch.Watch
	injector  *injector.Injector
	metrics   *metrics.Server // nil: no metrics_address
	snapshots *snapshot.Taker
	cuts      cuts
	sysfs     bool // the tree in sysfs_dir is ours
	subnet    *umad.Server
	shown     []fabric.Shown              // last, by port; guarded by subnet's lock
	kernels   map[int]*kernelif.Interface // by port, those that there are
}

// Reasons for which a port's link is down.
const (
	linkCut      = serve.AddressLost << (iota + 1) // on purpose: urdma inject
	linkAway                                       // the kernel's interface is down or without an address
	linkDisabled                                   // in the subnet: ibportstate, opensm
)

// attachedSettings need no restart.
var attachedSettings = []liveSetting{
	{"responder", (*daemon).applyResponder},
	{"responder_allow", (*daemon).applyResponder},
}

func (d *daemon) attachAdmin() error {
	admin.Attach(d.Server, admin.Config{Reload: d.askReload, LogLevel: d.setLogLevel})
	return nil
}

// restore makes anew what was removed beside the control socket.
func (d *daemon) restore() error {
	if !d.sysfsRemoved() {
		return nil
	}
	d.Links.Lock()
	defer d.Links.Unlock()
	if err := d.writeSysfs(); err != nil {
		return err
	}
	d.subnet.ShowAnew()
	for i := range d.Ports {
		d.Links.Show(i)
	}
	return nil
}

// attach calls a function of each feature, up to the first error.
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

// detach calls a function of each feature, from the last, and returns all errors.
func (d *daemon) detach(which func(*feature) func() error) (errs []error) {
	for _, f := range slices.Backward(d.attached) {
		if fn := which(&f); fn != nil {
			errs = append(errs, fn())
		}
	}
	return errs
}

// shows are the features' functions for links.
func (d *daemon) shows() (list []func(port int)) {
	for _, f := range d.attached {
		if f.show != nil {
			list = append(list, f.show)
		}
	}
	return list
}
