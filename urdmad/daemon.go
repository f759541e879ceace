package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"urdma/config"
	"urdma/dpdk"
	"urdma/dpdk/port"
	"urdma/systemd"
	"urdma/urdmad/attach/admin"
	"urdma/urdmad/attach/fabric"
	"urdma/urdmad/attach/injector"
	"urdma/urdmad/attach/kernelif"
	"urdma/urdmad/attach/metrics"
	"urdma/urdmad/attach/responder"
	"urdma/urdmad/attach/snapshot"
	"urdma/urdmad/attach/sysfs"
	"urdma/urdmad/attach/umad"
	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/steer"
	"urdma/urdmad/core/worker"
	"urdma/verbs/personality"
	"urdma/wire"
	"urdma/wire/roce"
)

// maxReads is the IRD and ORD limit of a queue pair.
const maxReads = 64

// daemon is a running urdmad.
type daemon struct {
	source     source
	cfg        *config.Config    // what it started with
	running    map[string]string // settings in effect, by JSON path
	log        *logger
	ports      []port.Port
	closePorts func() error
	kernels    map[int]*kernelif.Interface // by port, those that there are
	machine    worker.Machine
	pollers    []*poller
	alone      bool         // there is one worker, though the configuration allows several
	shared     *sharedPorts // nil: there is one worker
	server     *control.Server
	injector   *injector.Injector
	snapshots  *snapshot.Taker
	responder  *responder.Responder
	subnet     *umad.Server
	wires      *wires
	shown      []fabric.Shown // last, by port; guarded by subnet's lock

	listener    *net.UnixListener
	socketGroup string      // that the socket is open to
	socketFile  os.FileInfo // of the socket; nil: another process has put its own there
	inotify     *os.File    // of the socket's directory
	activated   bool        // the listener is systemd's
	claims      []io.Closer // of addresses, see claimAddresses
	sysfs       bool        // the tree in cfg.SysfsDir is ours

	reloads chan reloadRequest
	ended   chan struct{} // closed when run no longer takes them

	reporter   *systemd.Reporter
	metrics    *metrics.Server // nil: no metrics_address
	background sync.WaitGroup  // what supervise started
	links      links
	refusal    atomic.Pointer[string] // of the last reload, for the status
}

func newDaemon(src source, cfg *config.Config) *daemon {
	return &daemon{source: src, cfg: cfg, running: settings(cfg.Settings), log: openLogs(cfg),
		reloads: make(chan reloadRequest), ended: make(chan struct{})}
}

// serve runs until ctx ends.
func serve(ctx context.Context, src source) error {
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
	worker.PrepareRuntime(d.workers())
	makeRoomForDescriptors()
	allowLargeFiles(d.log.Logger)
	limitHeap(account.Memory())
	if err := d.start(); err != nil {
		d.stop()
		return err
	}
	worker.LimitGarbage()
	return errors.Join(d.run(ctx, hups), d.stop())
}

// limitHeap has Go's collector, which PrepareRuntime made rare, keep the heap
// within three quarters of the memory there is. Half of it at most is queues.
// GOMEMLIMIT in the environment wins.
func limitHeap(memory uint64) {
	if memory != 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(min(memory/4*3, math.MaxInt64)))
	}
}

// run serves clients until ctx ends.
func (d *daemon) run(ctx context.Context, hups *hangUps) error {
	defer close(d.ended)
	d.accept()
	d.log.Info("urdmad is ready", "version", version, "socket", d.cfg.Socket, "ports", len(d.ports))
	d.reporter = systemd.NewReporter(d.status)
	d.tell(d.reporter.Ready)
	watched, unwatch := context.WithCancel(ctx)
	d.supervise(watched)
	defer unwatch()
	removed := d.watchSocket(watched)
	d.checkSocket()
	dead := d.watchPollers()
	for {
		select {
		case p := <-dead:
			return fmt.Errorf("the poll loop has ended: %w", cmp.Or(p.worker.Stop(), errNoReason))
		case <-ctx.Done():
			d.log.Info("stopping")
			d.tell(systemd.Stopping)
			return nil
		case <-removed:
			d.checkSocket()
		case <-hups.signals:
			if hups.final() {
				d.log.Info("stopping: the terminal is gone")
				return nil
			}
			_, _ = d.reload() // logs what it did
		case r := <-d.reloads:
			text, err := d.reload()
			r.done <- reloaded{text, err}
		}
	}
}

func (d *daemon) start() (err error) {
	if err := d.listen(); err != nil {
		return err
	}
	if err := d.listenMetrics(); err != nil {
		return err
	}
	if err := placePorts(d.cfg); err != nil {
		return configError{err}
	}
	if err := d.openPorts(); err != nil {
		return configError{err}
	}
	d.claimAddresses()
	return d.usePorts()
}

// usePorts starts what works with the ports, which are open. A link that comes up
// after it is watched is announced then; all others are behind that.
func (d *daemon) usePorts() error {
	if err := d.startEngine(); err != nil {
		return err
	}
	if err := d.startSubnet(); err != nil {
		return err
	}
	d.sysfs = true
	if err := d.writeSysfs(); err != nil {
		return err
	}
	for i, p := range d.ports {
		p.Watch(func(up bool) { d.linkChanged(i, up) })
		d.links.telling.Lock()
		d.showLink(i) // it may have changed in between
		d.links.telling.Unlock()
	}
	d.pollers[0].do(d.pollers[0].engine.Announce) // for all
	return d.followKernel()
}

// openPorts tells of a setting that does not fit the machine in the words of
// the configuration.
func (d *daemon) openPorts() (err error) {
	if s := specs(d.cfg); len(d.source.ealArgs) > 0 && !dpdk.NeedsEAL(s) {
		return fmt.Errorf("%q: no port of %s starts DPDK's environment abstraction layer, so arguments for it are a mistake", d.source.ealArgs, d.cfg.Source)
	}
	d.ports, d.closePorts, err = dpdk.OpenPorts(specs(d.cfg), d.cfg.EALArgs, d.log.Logger)
	var wrong *dpdk.SettingError
	if errors.As(err, &wrong) {
		return d.cfg.PortError(wrong.Port, wrong.Setting, wrong.Allowed)
	}
	return err
}

func specs(cfg *config.Config) []dpdk.Spec {
	var out []dpdk.Spec
	for _, p := range cfg.Ports {
		s := dpdk.Spec{Name: p.Name, Vdev: p.Vdev, PCI: p.PCIAddress, MTU: p.MTU, RaiseMTU: p.RaiseMTU, VLAN: p.VLAN, RxDesc: p.RxDesc, TxDesc: p.TxDesc,
			Address: p.Address.Addr(), Allow: p.Allow, PeerQueue: steer.PeerQueue}
		if p.RoCE() {
			s.PeerQueue = steer.PeerQueueRoCE
		}
		if p.UDP() && p.RoCE() {
			s.Vdev, s.ECN, s.Renumber = fmt.Sprintf("udp,port=%d", p.SocketPort()), true, roce.Renumber
		}
		if n := len(cfg.Workers); n > 1 {
			s.Queues = n
			s.Filter, s.QueueOf, s.BySource = steer.SocketFilter(n), func(number int) int { return wire.WorkerOf(uint32(number), n) }, p.RoCE()
			if p.RoCE() {
				s.Filter = steer.PacketFilter(n)
			}
		}
		if mac, err := net.ParseMAC(p.MAC); err == nil { // "" keeps the device's; config has checked the form
			copy(s.MAC[:], mac)
		}
		out = append(out, s)
	}
	return out
}

func addressOf(p *config.Port) netif.Address {
	return netif.Address{Prefix: p.Address, Gateway: p.Gateway, SocketPort: p.SocketPort()}
}

func (d *daemon) startEngine() error {
	d.settleWorkers()
	d.measure()
	for _, why := range []*[]atomic.Bool{&d.links.lost, &d.links.cut, &d.links.away, &d.links.disabled} {
		*why = make([]atomic.Bool, len(d.ports))
	}
	d.responder = responder.New(responder.Config{Socket: d.cfg.Socket, Own: d.own, Log: d.log.Logger}, responderPolicy(d.cfg))
	if d.workers() > 1 {
		d.shared = d.sharePorts()
	}
	for i := range d.workers() {
		p, err := d.newPoller(i)
		if err != nil {
			return err
		}
		d.pollers = append(d.pollers, p)
	}
	for i := range d.cfg.Ports {
		if p := &d.cfg.Ports[i]; p.KernelInterface != "" {
			if err := d.shareWithKernel(i, p); err != nil {
				return err
			}
		}
	}
	for _, p := range d.pollers {
		if err := p.worker.Start(); err != nil {
			return err
		}
		if err := p.worker.Refused(); err != nil {
			d.log.Warn("the kernel refused a setting of the worker, which runs without it", "error", err)
		}
	}
	d.server = d.newServer()
	d.injector = injector.Attach(d.server, injector.Config{CutLink: d.cutLink, Subnet: d.injectIntoSubnet, Because: (*control.Session).Because})
	d.server.Why = d.injector.Why
	d.snapshots = snapshot.Attach(d.server, d.snapshotConfig())
	return nil
}

func (d *daemon) newServer() *control.Server {
	s := &control.Server{Sysfs: d.cfg.SysfsDir, Version: versionNumber(version), Log: d.log.Logger, MaxReads: maxReads,
		Accounts: account.Accounts{Limits: clientLimits(d.cfg), Totals: account.MachineTotals()}}
	if d.cfg.RecorderDir != "" {
		s.Records = control.NewRecords(d.cfg.RecorderDir, d.log.Logger)
	}
	for _, p := range d.pollers {
		w := &control.Worker{Engine: p.engine, CM: p.cm, Numbers: p.numbers, Wake: p.worker.Wake, Watch: p.worker.Watch, Unwatch: p.worker.Unwatch}
		if !dpdk.NeedsEAL(specs(d.cfg)) { // whose ports want the worker's own thread
			w.Borrow = p.borrow
		}
		s.Workers = append(s.Workers, w)
	}
	for i, p := range d.cfg.Ports {
		info := d.ports[i].Info()
		s.Devices = append(s.Devices, control.Device{Name: p.Name, Of: p.Device, Number: p.Number, Place: control.Place{Address: p.Address, MTU: info.MTU}, Scope: scopeOf(info),
			MAC: info.MAC, Personality: personality.Named(p.Transport), MaxQP: p.MaxQP, Link: func() bool { return d.linkUp(i) }})
	}
	admin.Attach(s, admin.Config{Reload: d.askReload, LogLevel: d.setLogLevel})
	return s
}

// finLinger is how long a stopping urdmad keeps its loop going, so that peers
// get the fins of the connections it closed.
const finLinger = 20 * time.Millisecond

// errNoReason stands for the error of a poll loop that gave none.
var errNoReason = errors.New("nobody asked it to")

// stop takes everything down: connections get a fin, clients a hang-up, files
// and sockets go away. Clients come first; readers of metrics can wait. It is
// safe after a start that failed half way, and after the worker's end, when
// clients can't be cleaned up after any more.
func (d *daemon) stop() error {
	var errs []error
	if d.listener != nil {
		if !d.activated {
			fi, err := os.Lstat(d.cfg.Socket)
			d.listener.SetUnlinkOnClose(err == nil && os.SameFile(fi, d.socketFile))
		}
		errs = append(errs, d.listener.Close()) // removes a socket of our own as well
	}
	if d.server != nil && !d.pollerEnded() {
		d.server.Close()
		time.Sleep(finLinger)
		for _, p := range d.pollers {
			errs = append(errs, p.worker.Stop())
		}
	}
	if d.metrics != nil {
		errs = append(errs, d.metrics.Close())
	}
	d.background.Wait()
	for _, k := range d.kernels {
		k.Close()
	}
	if d.closePorts != nil {
		errs = append(errs, d.closePorts())
	}
	for _, c := range d.claims {
		errs = append(errs, c.Close())
	}
	errs = append(errs, dpdk.Cleanup()) // also after a port that failed
	if d.sysfs {
		errs = append(errs, sysfs.Remove(d.cfg.SysfsDir))
	}
	return errors.Join(errs...)
}
