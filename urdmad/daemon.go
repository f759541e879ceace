package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"runtime/debug"
	"sync/atomic"

	"urdma/ancillary"
	"urdma/config"
	"urdma/dpdk"
	"urdma/systemd"
	"urdma/urdmad/control/account"
	"urdma/urdmad/core/worker"
	"urdma/urdmad/serve"
)

// daemon is a running urdmad.
type daemon struct {
	*serve.Core
	attachments
	attached []feature

	source  source
	running map[string]string // settings in effect, by JSON path
	log     *logger

	listener    *net.UnixListener
	socketGroup string      // group that may use the socket
	socketFile  os.FileInfo // identity of our socket; nil: another process has replaced it
	lost        bool        // it was removed, and could not be made anew so far
	inotify     *os.File    // watches the socket's directory
	activated   bool        // the listener is systemd's

	reloads chan reloadRequest
	ended   chan struct{} // closed when run accepts no more reload requests

	reporter *systemd.Reporter
	refusal  atomic.Pointer[string] // why the last reload was refused, for the status
}

func newDaemon(src source, cfg *config.Config) *daemon {
	log := openLogs(cfg)
	d := &daemon{Core: &serve.Core{Config: cfg, Log: log.Logger, Version: versionNumber(version)}, source: src,
		running: settings(cfg.Settings), log: log, reloads: make(chan reloadRequest), ended: make(chan struct{})}
	d.attached = d.features()
	return d
}

// runDaemon runs urdmad until ctx ends.
func runDaemon(ctx context.Context, src source) error {
	hups := watchHangUps()
	defer hups.stop()
	cfg, warnings, err := src.load()
	if err != nil {
		warn(warnings)
		return err
	}
	d := newDaemon(src, cfg)
	defer d.log.close()
	for _, w := range warnings {
		d.log.Warn("configuration: " + w)
	}
	worker.PrepareRuntime(d.Workers())
	makeRoomForDescriptors()
	allowLargeFiles(d.Log)
	limitHeap(account.Memory())
	if err := d.start(); err != nil {
		d.stop()
		return err
	}
	worker.LimitGarbage()
	return errors.Join(d.run(ctx, hups), d.stop())
}

// limitHeap makes Go's garbage collector, which PrepareRuntime made infrequent, keep the heap
// within three quarters of the available memory. At most half of the memory is queues. The
// environment variable GOMEMLIMIT takes precedence.
func limitHeap(memory uint64) {
	if memory != 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(min(memory/4*3, math.MaxInt64)))
	}
}

// run serves clients until ctx ends.
func (d *daemon) run(ctx context.Context, hups *hangUps) error {
	defer close(d.ended)
	d.accept()
	d.log.Info("urdmad is ready", "version", version, "socket", d.Config.Socket, "ports", len(d.Ports))
	d.reporter = systemd.NewReporter(d.status)
	d.tell(d.reporter.Ready)
	watched, unwatch := context.WithCancel(ctx)
	d.supervise(watched)
	defer unwatch()
	removed := d.watchSocket(watched)
	again := d.checkSocket()
	dead := d.Ended()
	for {
		select {
		case p := <-dead:
			return fmt.Errorf("the poll loop has ended: %w", cmp.Or(p.Worker.Stop(), errNoReason))
		case <-ctx.Done():
			d.log.Info("stopping")
			d.tell(systemd.Stopping)
			return nil
		case <-removed:
			again = d.checkSocket()
		case <-again:
			again = d.checkSocket()
		case <-hups.signals:
			if hups.final() {
				d.log.Info("stopping: the terminal is gone")
				return nil
			}
			_, _ = d.reload() // logs its result
		case r := <-d.reloads:
			text, err := d.reload()
			r.done <- reloaded{text, err}
		}
	}
}

func (d *daemon) start() error {
	if err := d.listen(); err != nil {
		return err
	}
	if args := d.source.ealArgs; len(args) > 0 && !dpdk.NeedsEAL(serve.Specs(d.Config)) {
		return configError{fmt.Errorf("%q: no port of %s starts DPDK's environment abstraction layer, so arguments for it are a mistake",
			args, d.Config.Source)}
	}
	if err := d.Open(); err != nil {
		if busy := (*dpdk.BusyError)(nil); errors.As(err, &busy) {
			return err // the service manager tries again
		}
		return configError{err}
	}
	return d.usePorts()
}

// usePorts starts everything that needs the open ports.
func (d *daemon) usePorts() error {
	if err := d.attach(func(f *feature) func() error { return f.begin }); err != nil {
		return err
	}
	if err := d.MakeWorkers(); err != nil {
		return configError{err}
	}
	if err := d.attach(func(f *feature) func() error { return f.workers }); err != nil {
		return err
	}
	if err := d.StartWorkers(); err != nil {
		return err
	}
	if err := d.attach(func(f *feature) func() error { return f.server }); err != nil {
		return err
	}
	d.Links.Watch(d.shows()...)
	return nil
}

// errNoReason stands for the missing error of a poll loop that has ended.
var errNoReason = errors.New("nobody asked it to")

// stop shuts everything down: connections get a fin, clients are disconnected, files and sockets
// are removed. Clients come first; readers of metrics can wait. It may be called after a start
// that failed half way.
func (d *daemon) stop() error {
	var errs []error
	if d.listener != nil {
		if !d.activated {
			fi, err := os.Lstat(d.Config.Socket)
			d.listener.SetUnlinkOnClose(err == nil && os.SameFile(fi, d.socketFile))
		}
		errs = append(errs, new(ancillary.Closer).Unlisten(d.listener)) // also removes a socket file that we made
	}
	errs = append(errs, d.Stop())
	errs = append(errs, d.detach(func(f *feature) func() error { return f.stop })...)
	errs = append(errs, d.Close())
	return errors.Join(append(errs, d.detach(func(f *feature) func() error { return f.close })...)...)
}
