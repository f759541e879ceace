package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"syscall"
	"time"

	"urdma/dpdk/port"
	"urdma/inspect"
	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/urdmad/core/clock"
	"urdma/verbs/abi"
)

// Config is what a snapshot says besides what the server's workers have.
type Config struct {
	Daemon inspect.Daemon
	Ports  []Port // by device; nil: nothing is said of them
	// Loop is what is said of the poll loop of a worker; nil: nothing.
	Loop func(worker int) inspect.Loop
	// Responder is what is said of the responder; nil: nothing.
	Responder func() *inspect.Responder
	// Parts are what other features add.
	Parts []Part
}

// Port is what a snapshot says of a port besides what programs are told of it.
type Port struct {
	Driver    string
	Interface string        // the kernel's below it, "" for none
	Vdev      string        // or PCI address, as urdma.json has it
	Rate      string        // as sysfs shows it
	Offloads  func() string // nil where there is nothing to say
	Stats     func() port.Stats
}

// A Part adds what another feature has at the worker that is asked; on the goroutine that takes
// the snapshot. See Gathering's Ask and Each.
type Part func(g *Gathering) error

// Taker takes snapshots of a server.
type Taker struct {
	server *control.Server
	Config
}

// Attach has a server answer INSPECT; before it serves.
func Attach(s *control.Server, c Config) *Taker {
	t := &Taker{s, c}
	s.Attach(&control.Hooks{}, map[abi.Type]control.Request{abi.Inspect: control.Answer(t.inspect)})
	return t
}

// gatherTime bounds how long a snapshot waits for the poll loop.
const gatherTime = 5 * time.Second

// inspect answers INSPECT. It works before HELLO, so that looking inside needs
// neither doorbells nor a kick socket.
func (t *Taker) inspect(x *control.Session, _ *abi.Header, r *control.Reply) error {
	x.SnapshotLock().Lock()
	defer x.SnapshotLock().Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), gatherTime)
	defer cancel()
	snap, err := t.take(ctx, &x.Owner)
	if err != nil {
		return fmt.Errorf("%w: %w", err, syscall.ETIMEDOUT)
	}
	text, err := json.Marshal(snap)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	*r, err = control.RespondText("urdma-snapshot", text)
	return err
}

// Snapshot gathers everything, from any goroutine but a worker's.
func (t *Taker) Snapshot(ctx context.Context) (*inspect.Snapshot, error) {
	return t.take(ctx, &account.Owner{UID: os.Getuid(), Admin: true})
}

// slice is how many objects are copied in one turn of the poll loop: some tens
// of microseconds.
const slice = 128

// errLoop says that a snapshot could not be gathered.
var errLoop = errors.New("snapshot: the poll loop does not answer")

// Gathering is a snapshot under way. Its fields are the worker's thread's while a
// call of Ask is out, and the caller's otherwise.
type Gathering struct {
	Worker   *control.Worker // being asked
	Viewer   *account.Owner
	Snapshot *inspect.Snapshot
	Clients  []*control.Session // of the worker, which the viewer may look at

	ctx    context.Context
	t      *Taker
	s      *control.Server
	number int // of the worker
	clock  wallClock
	before struct { // what other workers had of what all have
		neighbours []inspect.Neighbour
		groups     []inspect.Group
	}
}

// Time is the wall clock's, of a time of the worker's.
func (g *Gathering) Time(t clock.Time) time.Time { return g.clock.time(t) }

// wallClock turns the engine's time into the wall's.
type wallClock struct {
	wall time.Time
	at   clock.Time
}

func (c wallClock) time(t clock.Time) time.Time { return c.wall.Add(time.Duration(t - c.at)) }

func (t *Taker) take(ctx context.Context, viewer *account.Owner) (*inspect.Snapshot, error) {
	snap := &inspect.Snapshot{Format: inspect.Format, Daemon: t.Daemon, Restricted: !viewer.Admin,
		// JSON shows an empty list, not null.
		Clients: []inspect.Client{}, Domains: []inspect.Domain{}, Regions: []inspect.Region{},
		Windows: []inspect.Window{}, CQs: []inspect.CQ{}, QPs: []inspect.QP{}, SRQs: []inspect.SRQ{},
		Connections: []inspect.Connection{}, Listeners: []inspect.Listener{}, Limits: []inspect.Limit{},
		Neighbours: []inspect.Neighbour{}, Groups: []inspect.Group{}, Injections: []inspect.Injection{},
		Warnings: []inspect.Warning{}}
	g := &Gathering{ctx: ctx, t: t, s: t.server, Worker: t.server.Workers[0], Viewer: viewer, Snapshot: snap}
	g.ports()
	if t.Responder != nil {
		snap.Responder = t.Responder()
	}
	for g.number, g.Worker = range t.server.Workers {
		if err := g.worker(); err != nil {
			return nil, err
		}
	}
	snap.Taken = g.clock.wall
	sortSnapshot(snap)
	return snap, nil
}

// worker adds what a worker has.
func (g *Gathering) worker() error {
	g.before.neighbours, g.before.groups = g.Snapshot.Neighbours, g.Snapshot.Groups
	err := g.Ask(func() (more bool) {
		g.clock = wallClock{time.Now(), g.Worker.Engine.Now()}
		g.engine()
		g.Clients = nil
		for _, x := range g.Worker.Clients() {
			if g.Viewer.Sees(&x.Owner) {
				g.Clients = append(g.Clients, x)
			}
		}
		return false
	})
	for _, add := range g.t.Parts {
		if err == nil {
			err = add(g)
		}
	}
	for _, x := range g.Clients {
		if err == nil {
			err = g.client(x)
		}
	}
	if err == nil {
		err = g.links()
	}
	return err
}

// Ask runs fn on the worker's thread, once a turn as long as it wants more, and
// waits for it, but not for ever: after an error fn may still run, so g is lost.
func (g *Gathering) Ask(fn func() (more bool)) error {
	done := make(chan struct{})
	g.Worker.InTurns(func() bool { return g.ctx.Err() == nil && fn() }, func() { close(done) })
	select {
	case <-done:
		return g.ctx.Err()
	case <-g.ctx.Done():
		return fmt.Errorf("%w: %w", errLoop, g.ctx.Err())
	}
}

// client copies one client's objects, slice by slice. The iterator copes with
// objects that come and go between slices.
func (g *Gathering) client(x *control.Session) error {
	c := inspect.Client{ID: x.ID(), PID: x.Owner.PID, UID: x.Owner.UID, Command: x.Owner.Name, Line: x.Owner.CommandLine()}
	var objects *reflect.MapIter
	err := g.Ask(func() (more bool) {
		if x.Gone() {
			return false // its rings may be unmapped
		}
		if objects == nil {
			c.Connected = g.clock.time(x.Owner.Since)
			objects = x.Objects()
		}
		for range slice {
			if !objects.Next() {
				return false
			}
			g.object(&c, objects.Value().Interface().(control.Object))
		}
		return true
	})
	if err == nil && !c.Connected.IsZero() {
		g.Snapshot.Clients = append(g.Snapshot.Clients, c)
		g.limits(x)
	}
	return err
}

// links copies the neighbours and groups of the ports, slice by slice. They are their
// owner's and the administrator's to see.
func (g *Gathering) links() error {
	if g.Snapshot.Restricted {
		return nil
	}
	for dev := range g.s.Devices {
		link := g.Worker.Engine.Interface(dev)
		if err := g.Each(link.Neighbours().Len, func(i int) { g.neighbour(dev, link.Neighbours().At(i)) }); err != nil {
			return err
		}
		if err := g.Each(link.TakenGroups, func(i int) { g.group(dev, link, i) }); err != nil {
			return err
		}
	}
	return nil
}

// Each calls fn on the worker's thread for every index below n, which may change in between: what moves then
// may be missing, or come twice.
func (g *Gathering) Each(n func() int, fn func(i int)) error {
	at := 0
	return g.Ask(func() (more bool) {
		for end := min(at+slice, n()); at < end; at++ {
			fn(at)
		}
		return at < n()
	})
}
