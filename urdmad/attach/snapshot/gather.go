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

// Config has the sources of a snapshot other than the server's workers.
type Config struct {
	Daemon inspect.Daemon
	Ports  []Port // by device; nil: no facts about ports
	// Loop returns the statistics of a worker's poll loop; nil: none.
	Loop func(worker int) inspect.Loop
	// Responder returns the state of the responder; nil: none.
	Responder func() *inspect.Responder
	// Parts are the parts of other features.
	Parts []Part
}

// Port has the facts about a port that programs do not see.
type Port struct {
	Driver    string
	Interface string        // kernel interface below the port; "": none
	Vdev      string        // vdev or PCI address, as in urdma.json
	Rate      string        // as shown in sysfs
	Offloads  func() string // nil: no facts about offloads
	Stats     func() port.Stats
}

// Part adds the state of another feature at the worker being asked. It runs on the goroutine that
// takes the snapshot; see Gathering.Ask and Each.
type Part func(g *Gathering) error

// Taker takes snapshots of a server.
type Taker struct {
	server *control.Server
	Config
}

// Attach makes a server answer INSPECT; it must be called before Serve.
func Attach(s *control.Server, c Config) *Taker {
	t := &Taker{s, c}
	s.Attach(&control.Hooks{}, map[abi.Type]control.Request{abi.Inspect: control.Answer(t.inspect)})
	return t
}

// gatherTime bounds how long a snapshot waits for the poll loop. On a busy machine each of its turns can take 100 ms,
// and thousands of objects take dozens. The asking program waits a second longer.
const gatherTime = 9 * time.Second

// inspect answers INSPECT. It works before HELLO, so that a client that only inspects needs
// neither doorbells nor a kick socket.
func (t *Taker) inspect(x *control.Session, _ *abi.Header, r *control.Reply) error {
	x.SnapshotLock().Lock()
	defer x.SnapshotLock().Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), gatherTime)
	defer cancel()
	snap, err := t.For(ctx, &x.Owner)
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

// Snapshot gathers everything; it may be called from any goroutine except a worker's.
func (t *Taker) Snapshot(ctx context.Context) (*inspect.Snapshot, error) {
	return t.For(ctx, owner())
}

// owner returns urdmad's own user, who sees everything.
func owner() *account.Owner { return &account.Owner{UID: os.Getuid(), Admin: true} }

// slice is the number of objects copied in one turn of the poll loop, which takes some tens of
// microseconds.
const slice = 128

// errLoop reports that a snapshot could not be gathered.
var errLoop = errors.New("snapshot: the poll loop does not answer")

// Gathering is a snapshot being taken. Its fields belong to the worker's thread during a call of
// Ask, otherwise to the caller.
type Gathering struct {
	Worker   *control.Worker // worker being asked
	Viewer   *account.Owner
	Snapshot *inspect.Snapshot
	Clients  []*control.Session // clients of the worker that the viewer may see

	ctx    context.Context
	t      *Taker
	s      *control.Server
	number int // number of the worker
	clock  wallClock
	before struct { // entries that every worker has, from the workers asked before
		neighbours []inspect.Neighbour
		groups     []inspect.Group
	}
}

// Time converts a time of the worker's clock to wall-clock time.
func (g *Gathering) Time(t clock.Time) time.Time { return g.clock.time(t) }

// wallClock converts the engine's time to wall-clock time.
type wallClock struct {
	wall time.Time
	at   clock.Time
}

func (c wallClock) time(t clock.Time) time.Time { return c.wall.Add(time.Duration(t - c.at)) }

// gathering returns the beginning of a snapshot.
func (t *Taker) gathering(ctx context.Context, viewer *account.Owner, s *inspect.Snapshot) *Gathering {
	return &Gathering{ctx: ctx, t: t, s: t.server, Worker: t.server.Workers[0], Viewer: viewer, Snapshot: s}
}

// For gathers what a viewer may see; it may be called from any goroutine except a worker's. Its callers let each
// user's clients ask one after the other (account.Account.SnapshotLock).
func (t *Taker) For(ctx context.Context, viewer *account.Owner) (*inspect.Snapshot, error) {
	snap := &inspect.Snapshot{Format: inspect.Format, Daemon: t.Daemon, Restricted: !viewer.Admin,
		// JSON shows an empty list, not null.
		Clients: []inspect.Client{}, Domains: []inspect.Domain{}, Regions: []inspect.Region{},
		Windows: []inspect.Window{}, CQs: []inspect.CQ{}, QPs: []inspect.QP{}, SRQs: []inspect.SRQ{},
		Connections: []inspect.Connection{}, Listeners: []inspect.Listener{}, Limits: []inspect.Limit{},
		Neighbours: []inspect.Neighbour{}, Groups: []inspect.Group{}, Injections: []inspect.Injection{},
		Warnings: []inspect.Warning{}}
	g := t.gathering(ctx, viewer, snap)
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

// worker adds the state of a worker.
func (g *Gathering) worker() error {
	g.before.neighbours, g.before.groups = g.Snapshot.Neighbours, g.Snapshot.Groups
	err := g.begin()
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

// begin copies the state of the worker that belongs to no client, and finds the clients.
func (g *Gathering) begin() error {
	return g.Ask(func() (more bool) {
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
}

// Ask runs fn on the worker's thread, once per turn until it returns false, and waits for it with
// a time limit. After an error fn may still be running, so g must not be used.
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

// client copies one client's objects, a slice at a time. The iterator allows objects to come and
// go between slices.
func (g *Gathering) client(x *control.Session) error {
	c := inspect.Client{ID: x.ID(), PID: x.Owner.PID, UID: x.Owner.UID, Command: x.Owner.Name, Line: x.Owner.CommandLine()}
	var objects *reflect.MapIter
	err := g.Ask(func() (more bool) {
		if x.Gone() {
			return false // the client's rings may be unmapped
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

// links copies the neighbours and groups of the ports, a slice at a time. Only urdmad's user and
// the administrator may see them.
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

// Each calls fn on the worker's thread for every index below n. n may change meanwhile: elements
// that move may be missed or come twice.
func (g *Gathering) Each(n func() int, fn func(i int)) error {
	at := 0
	return g.Ask(func() (more bool) {
		for end := min(at+slice, n()); at < end; at++ {
			fn(at)
		}
		return at < n()
	})
}
