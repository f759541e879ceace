package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"urdma/inspect"
	"urdma/urdmad/attach/recorder"
	"urdma/urdmad/control/account"
	"urdma/urdmad/control/memfd"
	"urdma/urdmad/core/clock"
	"urdma/verbs/abi"
)

// gatherTime bounds how long a snapshot waits for the poll loop.
const gatherTime = 5 * time.Second

// inspect answers INSPECT. It works before HELLO, so that looking inside needs
// neither doorbells nor a kick socket.
func (x *Session) inspect(_ *abi.Header, r *Reply) error {
	x.Looks().Lock()
	defer x.Looks().Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), gatherTime)
	defer cancel()
	snap, err := x.s.snapshot(ctx, &x.Owner)
	if err != nil {
		return fmt.Errorf("%w: %w", err, syscall.ETIMEDOUT)
	}
	text, err := json.Marshal(snap)
	if err != nil {
		return fmt.Errorf("control: snapshot: %w", err)
	}
	fd, err := memfd.Text("urdma-snapshot", text)
	if err != nil {
		return err
	}
	*r = Respond(&abi.InspectResponse{Bytes: uint64(len(text))}, fd)
	r.Done = func() { _ = unix.Close(fd) } // the client has its copy
	return nil
}

// Snapshot gathers everything, from any goroutine but the engine's.
func (s *Server) Snapshot(ctx context.Context) (*inspect.Snapshot, error) {
	return s.snapshot(ctx, &account.Owner{UID: os.Getuid(), Admin: true})
}

// slice is how many objects are copied in one turn of the poll loop: some tens
// of microseconds.
const slice = 128

// errLoop says that a snapshot could not be gathered.
var errLoop = errors.New("control: the poll loop does not answer")

// gather is a snapshot under way. Its fields are the engine's thread's while a
// call of ask is out, and the caller's otherwise.
type gather struct {
	ctx    context.Context
	s      *Server
	w      *Worker // being asked
	viewer *account.Owner
	snap   *inspect.Snapshot
	clock  wallClock
	rules  map[uint32]int // index in snap.Injections, by number
	before struct {       // what other workers had of what all have
		neighbours []inspect.Neighbour
		groups     []inspect.Group
	}
}

// wallClock turns the engine's time into the wall's.
type wallClock struct {
	wall time.Time
	at   clock.Time
}

func (c wallClock) time(t clock.Time) time.Time { return c.wall.Add(time.Duration(t - c.at)) }

// nanoseconds since 1970.
func (c wallClock) nanoseconds(t clock.Time) int64 { return c.time(t).UnixNano() }

func (s *Server) snapshot(ctx context.Context, viewer *account.Owner) (*inspect.Snapshot, error) {
	g := &gather{ctx: ctx, s: s, w: s.Workers[0], viewer: viewer, rules: map[uint32]int{}, snap: &inspect.Snapshot{Format: inspect.Format, Daemon: s.About,
		Restricted: !viewer.Admin,
		// JSON shows an empty list, not null.
		Clients: []inspect.Client{}, Domains: []inspect.Domain{}, Regions: []inspect.Region{}, Windows: []inspect.Window{}, CQs: []inspect.CQ{},
		QPs: []inspect.QP{}, SRQs: []inspect.SRQ{}, Connections: []inspect.Connection{}, Listeners: []inspect.Listener{},
		Limits: []inspect.Limit{}, Neighbours: []inspect.Neighbour{}, Groups: []inspect.Group{}, Injections: []inspect.Injection{}, Warnings: []inspect.Warning{}}}
	g.ports()
	if s.Responder != nil {
		g.snap.Responder = s.Responder()
	}
	for _, g.w = range s.Workers {
		if err := g.worker(); err != nil {
			return nil, err
		}
	}
	g.snap.Taken = g.clock.wall
	sortSnapshot(g.snap)
	return g.snap, nil
}

// worker adds what a worker has.
func (g *gather) worker() error {
	g.before.neighbours, g.before.groups = g.snap.Neighbours, g.snap.Groups
	var seen []*Session
	var past []*ended
	err := g.ask(func() (more bool) {
		g.clock = wallClock{time.Now(), g.w.Engine.Now()}
		g.engine()
		seen, past = g.w.seenBy(g.viewer)
		return false
	})
	for _, e := range past {
		g.warnings(e.owner, e.events)
	}
	if n := g.s.Injected; n != nil && err == nil {
		err = g.each(func() int { return n.Rules(g.w) }, g.injection)
	}
	for _, x := range seen {
		if err == nil {
			err = g.client(x)
		}
	}
	if err == nil {
		err = g.links()
	}
	return err
}

// seenBy is the clients that a viewer may look at, and what is kept of others that are gone; on the
// engine's thread.
func (w *Worker) seenBy(viewer *account.Owner) (clients []*Session, past []*ended) {
	for _, x := range w.attached {
		if viewer.Sees(&x.Owner) {
			clients = append(clients, x)
		}
	}
	for _, e := range w.ended {
		if viewer.Sees(e.owner) {
			past = append(past, e)
		}
	}
	return clients, past
}

// ask runs fn on the engine's thread, once a turn as long as it wants more, and
// waits for it, but not for ever: after an error fn may still run, so g is lost.
func (g *gather) ask(fn func() (more bool)) error {
	done := make(chan struct{})
	g.w.InTurns(func() bool { return g.ctx.Err() == nil && fn() }, func() { close(done) })
	select {
	case <-done:
		return g.ctx.Err()
	case <-g.ctx.Done():
		return fmt.Errorf("%w: %w", errLoop, g.ctx.Err())
	}
}

// client copies one client's objects, slice by slice. The iterator copes with
// objects that come and go between slices.
func (g *gather) client(x *Session) error {
	c := inspect.Client{ID: x.id, PID: x.Owner.PID, UID: x.Owner.UID, Command: x.Owner.Name, Line: x.Owner.CommandLine()}
	var objects *reflect.MapIter
	var warned []recorder.Event
	err := g.ask(func() (more bool) {
		if x.ended {
			return false // its rings may be unmapped
		}
		if objects == nil {
			c.Connected = g.clock.time(x.Owner.Since)
			warned = x.client.Recorder.Warned(g.clock.nanoseconds)
			objects = reflect.ValueOf(x.objects).MapRange()
		}
		for range slice {
			if !objects.Next() {
				return false
			}
			g.object(&c, objects.Value().Interface().(Object))
		}
		return true
	})
	if err == nil && !c.Connected.IsZero() {
		g.snap.Clients = append(g.snap.Clients, c)
		g.limits(x)
		g.warnings(&x.Owner, warned)
	}
	return err
}

// links copies the neighbours and groups of the ports, slice by slice. They are their
// owner's and the administrator's to see.
func (g *gather) links() error {
	if g.snap.Restricted {
		return nil
	}
	for dev := range g.s.Devices {
		link := g.w.Engine.Interface(dev)
		if err := g.each(link.Neighbours().Len, func(i int) { g.neighbour(dev, link.Neighbours().At(i)) }); err != nil {
			return err
		}
		if err := g.each(link.TakenGroups, func(i int) { g.group(dev, link, i) }); err != nil {
			return err
		}
	}
	return nil
}

// each calls fn for every index below n, which may change in between: what moves then
// may be missing, or come twice.
func (g *gather) each(n func() int, fn func(i int)) error {
	at := 0
	return g.ask(func() (more bool) {
		for end := min(at+slice, n()); at < end; at++ {
			fn(at)
		}
		return at < n()
	})
}

// injection adds a rule that the viewer may see, which other workers may have as well.
func (g *gather) injection(i int) {
	v, ok := g.s.Injected.Rule(g.w, i, g.viewer, g.clock.time)
	if !ok {
		return
	}
	at, has := g.rules[v.Number]
	if !has {
		g.rules[v.Number] = len(g.snap.Injections)
		g.snap.Injections = append(g.snap.Injections, v)
		return
	}
	o := &g.snap.Injections[at]
	v.Seen, v.Hits = v.Seen+o.Seen, v.Hits+o.Hits
	*o = v
}
