// Package serve builds the parts that every urdmad has from a configuration: ports, workers for
// them, and the control server. Its caller attaches features between the steps.
package serve

import (
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"urdma/config"
	"urdma/dpdk"
	"urdma/dpdk/port"
	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/urdmad/control/objects"
	"urdma/urdmad/core/rawpacket"
	"urdma/urdmad/core/worker"
	"urdma/verbs/personality"
)

// maxReads is the limit of IRD and ORD of a queue pair.
const maxReads = 64

// Core is a urdmad without attached features. The steps are Open, MakeWorkers, StartWorkers and
// Links.Watch; then Server serves. Stop and Close may follow a failed step.
type Core struct {
	Config *config.Config // configuration at the start
	Log    *slog.Logger
	// Version is major<<16 | minor<<8 | patch.
	Version uint32
	// Expected, if not nil, is called before a connection request to a port number without a listener
	// is refused, see cm.Config.
	Expected func(port uint16) bool

	Ports      []port.Port
	Pollers    []*Poller
	Server     *control.Server
	Links      Links
	Machine    worker.Machine // measured properties of the machine
	Background sync.WaitGroup // goroutines that use the ports and end by themselves

	alone      bool              // one worker is used although the configuration allows several
	shared     *sharedPorts      // nil: there is one worker
	raw        []*rawpacket.Wire // by port; nil: without raw packets
	sysfs      bool              // we have written the tree in sysfs_dir
	closePorts func() error
	claims     []io.Closer // claims of addresses, see claimAddresses
}

// MakeWorkers makes the workers without starting them.
func (c *Core) MakeWorkers() error {
	c.settleWorkers()
	c.measure()
	c.openRaw()
	c.Links.core, c.Links.down = c, make([]atomic.Uint32, len(c.Ports))
	if c.Workers() > 1 {
		c.shared = c.sharePorts()
	}
	for i := range c.Workers() {
		p, err := c.newPoller(i)
		if err != nil {
			return err
		}
		c.Pollers = append(c.Pollers, p)
	}
	return nil
}

// StartWorkers starts the workers, and makes the control server without starting it.
func (c *Core) StartWorkers() error {
	for _, p := range c.Pollers {
		if err := p.Worker.Start(); err != nil {
			return err
		}
		if err := p.Worker.Refused(); err != nil {
			c.Log.Warn("the kernel refused a setting of the worker, which runs without it", "error", err)
		}
	}
	c.Server = c.newServer()
	return nil
}

func (c *Core) newServer() *control.Server {
	s := &control.Server{Version: c.firmware(), Profile: c.Config.Profile, Log: c.Log, MaxReads: maxReads,
		Accounts: account.Accounts{Limits: Limits(c.Config), Totals: account.MachineTotals()}}
	for _, p := range c.Pollers {
		w := &control.Worker{Engine: p.Engine, CM: p.CM, Numbers: p.Numbers, Wake: p.Worker.Wake,
			WatchKick: p.Worker.Watch, UnwatchKick: p.Worker.Unwatch}
		if !dpdk.NeedsEAL(Specs(c.Config)) { // DPDK's ports may be used on the worker's own thread only
			w.Borrow = p.borrow
		}
		s.Workers = append(s.Workers, w)
	}
	for i, p := range c.Config.Ports {
		info := c.Ports[i].Info()
		s.Devices = append(s.Devices, control.Device{Name: p.Name, Of: p.Device, Number: p.Number,
			Place: control.Place{Address: p.Address, MTU: info.MTU}, Scope: scopeOf(info), MAC: info.MAC,
			Personality: personality.Named(p.Transport), MaxQP: p.MaxQP, Frames: carriesFrames(info),
			RawPackets: rawPackets[p.RawPackets], Link: func() bool { return c.Links.Up(i) }})
	}
	objects.Attach(s)
	return s
}

// Limits returns the limits per client from a configuration.
func Limits(c *config.Config) account.Limits {
	l := c.Limits
	return account.Limits{QueuePairs: l.QueuePairs, MemoryRegions: l.MemoryRegions, CompletionQueues: l.CompletionQueues,
		SharedReceiveQueues: l.SharedReceiveQueues, ProtectionDomains: l.ProtectionDomains,
		RegisteredBytes: l.RegisteredBytes, QueueBytes: l.QueueBytes, Contexts: l.Contexts,
		CompletionChannels: l.CompletionChannels, EventChannels: l.EventChannels, IDs: l.CMIDs, Files: l.Files,
		Mappings: l.Maps, Clients: l.Clients, UserShare: l.UserShare}
}

// Move gives port dev another address and MTU.
func (c *Core) Move(dev int, to control.Place) {
	if c.shared != nil {
		c.shared.ports[dev].Renumber(to.Address.Addr())
	}
	for _, p := range c.Pollers {
		p.Do(func() {
			p.Engine.Interface(dev).SetMTU(to.MTU)
			p.Engine.Renumber(dev, to.Address)
			p.Numbers.Renumber(dev, to.Address.Addr())
		})
	}
	c.Server.SetPlace(dev, to)
}

// finLinger is how long the poll loops continue during a stop, so that peers get the fins of
// closed connections.
const finLinger = 20 * time.Millisecond

// Stop disconnects clients, whose connections get a fin, and stops the workers. Clients cannot be
// cleaned up after a worker has ended.
func (c *Core) Stop() (err error) {
	if c.Server == nil || c.workerEnded() {
		return nil
	}
	c.Server.Close()
	time.Sleep(finLinger)
	for _, p := range c.Pollers {
		err = errors.Join(err, p.Worker.Stop())
	}
	return err
}

// Close waits for background goroutines, and closes the ports.
func (c *Core) Close() (err error) {
	c.Background.Wait()
	if c.closePorts != nil {
		err = c.closePorts()
	}
	for _, claim := range c.claims {
		err = errors.Join(err, claim.Close())
	}
	return errors.Join(err, dpdk.Cleanup()) // also if closing a port has failed
}
