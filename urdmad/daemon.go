package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/user"
	"strconv"
	"time"

	"urdma/config"
	"urdma/dpdk"
	"urdma/dpdk/port"
	"urdma/urdmad/cm"
	"urdma/urdmad/control"
	"urdma/urdmad/engine"
	"urdma/urdmad/sysfs"
	"urdma/urdmad/worker"
	"urdma/verbs/abi"
)

// maxReads is the IRD and ORD limit of a queue pair.
const maxReads = 64

// daemon is a running urdmad.
type daemon struct {
	cfg        *config.Config
	log        *slog.Logger
	ports      []port.Port
	closePorts func() error
	engine     *engine.Engine
	worker     *worker.Worker
	cm         *cm.Manager
	server     *control.Server
	listener   *net.UnixListener
}

// serve runs until ctx ends.
func serve(ctx context.Context, cfg *config.Config) error {
	log := newLogger(cfg)
	worker.PrepareRuntime(1)
	d := &daemon{cfg: cfg, log: log}
	if err := d.start(); err != nil {
		d.stop()
		return err
	}
	log.Info("urdmad is ready", "version", version, "socket", cfg.Socket, "ports", len(d.ports))
	served := make(chan error, 1)
	go func() { served <- d.server.Serve(d.listener) }()
	var err error
	select {
	case <-ctx.Done():
		log.Info("stopping")
	case err = <-served:
	}
	return errors.Join(err, d.stop())
}

func (d *daemon) start() (err error) {
	if err := config.MakeSocketDir(d.cfg.Socket, d.cfg.SocketGroup != ""); err != nil {
		return err
	}
	if d.listener, err = d.listen(); err != nil {
		return err
	}
	if d.ports, d.closePorts, err = dpdk.OpenPorts(specs(d.cfg), d.cfg.EALArgs, d.log); err != nil {
		return err
	}
	if err := d.startEngine(); err != nil {
		return err
	}
	return sysfs.Write(d.cfg.SysfsDir, sysfsDevices(d.cfg, d.ports))
}

func specs(cfg *config.Config) []dpdk.Spec {
	var out []dpdk.Spec
	for _, p := range cfg.Ports {
		s := dpdk.Spec{Name: p.Name, Vdev: p.Vdev, PCI: p.PCIAddress, MTU: p.MTU, RxDesc: p.RxDesc, TxDesc: p.TxDesc}
		if mac, err := net.ParseMAC(p.MAC); err == nil { // "" keeps the device's; config has checked the form
			copy(s.MAC[:], mac)
		}
		out = append(out, s)
	}
	return out
}

func (d *daemon) startEngine() error {
	e := engine.New(engine.Config{Log: d.log, DeathTimeout: engine.Time(d.cfg.DeathTimeout), YieldPost: 1, YieldPoll: 1,
		Wake: func() { d.worker.Wake() }})
	var devices []cm.Device
	for i, p := range d.cfg.Ports {
		dev := e.AddPort(d.ports[i], engine.Address{Prefix: p.Address, Gateway: p.Gateway})
		if p.Placement == config.PlacementImmediate {
			e.PlaceImmediately(dev)
		}
		devices = append(devices, cm.Device{IP: p.Address.Addr().As4()})
	}
	d.engine = e
	d.cm = cm.New(e, d.log, devices, engine.Time(d.cfg.DeathTimeout), maxReads)
	w, err := worker.New(e, d.policy(), worker.Hooks{Begin: dpdk.RegisterThread, End: dpdk.UnregisterThread, Moved: e.Moved})
	if err != nil {
		return configError{err}
	}
	d.worker = w
	d.server = d.newServer()
	if err := w.Start(); err != nil {
		return err
	}
	e.Do(e.Announce)
	w.Wake()
	return nil
}

func (d *daemon) policy() worker.Policy {
	p := worker.DefaultPolicy()
	c := d.cfg.Polling
	p.Spin, p.Yield = worker.Time(c.Spin), worker.Time(c.Yield)
	p.Slice, p.Nice = worker.Time(c.Slice), c.Nice
	if len(d.cfg.Workers) > 0 {
		p.Core = d.cfg.Workers[0].Core
	}
	return p
}

func (d *daemon) newServer() *control.Server {
	l := d.cfg.Limits
	s := &control.Server{Engine: d.engine, CM: d.cm, Sysfs: d.cfg.SysfsDir, Version: versionNumber(version), Log: d.log,
		Wake: d.worker.Wake, Watch: d.worker.Watch, Unwatch: d.worker.Unwatch, MaxReads: maxReads,
		Limits: control.Limits{QueuePairs: l.QueuePairs, MemoryRegions: l.MemoryRegions, CompletionQueues: l.CompletionQueues,
			ProtectionDomains: l.ProtectionDomains, RegisteredBytes: l.RegisteredBytes, Clients: l.Clients}}
	for i, p := range d.cfg.Ports {
		info := d.ports[i].Info()
		s.Devices = append(s.Devices, control.Device{Name: p.Name, IP: p.Address.Addr().As4(), PrefixLen: p.Address.Bits(),
			MAC: info.MAC, MTU: info.MTU, Transport: transportNumber(p.Transport), MaxQP: p.MaxQP, Link: d.ports[i].Link})
	}
	return s
}

func transportNumber(name string) uint32 {
	switch name {
	case config.TransportIB:
		return abi.TransportIB
	case config.TransportRoCE:
		return abi.TransportRoCE
	}
	return abi.TransportIWARP
}

func (d *daemon) listen() (*net.UnixListener, error) {
	mode := os.FileMode(0o600)
	if d.cfg.SocketGroup != "" {
		mode = 0o660
	}
	l, err := control.Listen(d.cfg.Socket, mode)
	if err != nil || d.cfg.SocketGroup == "" {
		return l, err
	}
	gid, err := groupNumber(d.cfg.SocketGroup)
	if err == nil {
		err = os.Chown(d.cfg.Socket, -1, gid)
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("socket_group: %w", err)
	}
	return l, nil
}

func groupNumber(name string) (int, error) {
	if n, err := strconv.Atoi(name); err == nil {
		return n, nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(g.Gid)
}

// finLinger is how long a stopping urdmad keeps its loop going, so that peers
// get the fins of the connections it closed.
const finLinger = 20 * time.Millisecond

// stop takes everything down: connections get a fin, clients a hang-up, files
// and sockets go away. It is safe after a start that failed half way.
func (d *daemon) stop() error {
	var errs []error
	if d.listener != nil {
		errs = append(errs, d.listener.Close()) // removes the socket as well
	}
	if d.server != nil {
		d.server.Close()
		time.Sleep(finLinger)
		errs = append(errs, d.worker.Stop())
	}
	if d.closePorts != nil {
		errs = append(errs, d.closePorts(), dpdk.Cleanup())
	}
	errs = append(errs, sysfs.Remove(d.cfg.SysfsDir))
	return errors.Join(errs...)
}
