package responder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"urdma/verbs"
	"urdma/verbs/probe"
)

// Policy is the configuration of the responder.
type Policy struct {
	Serve bool
	Allow []netip.Prefix // hosts to answer; empty: all
}

// Names reports whether Allow contains a host's address.
func (p *Policy) Names(peer netip.Addr) bool {
	return slices.ContainsFunc(p.Allow, func(n netip.Prefix) bool { return n.Contains(peer) })
}

// Config configures a Responder.
type Config struct {
	Socket string                // control socket of our own urdmad
	Own    func(netip.Addr) bool // whether an address belongs to a port of ours; called from any goroutine
	Log    *slog.Logger
	// Idle is how long a responder without connections keeps listening; 0 means idleTime.
	Idle time.Duration
}

const (
	idleTime = 30 * time.Second
	// mostOfPeer and most bound connections; beyond them the oldest, of the peer
	// or of all, ends.
	mostOfPeer = 4
	most       = 16
	// keepAlive is the pause between two questions whether a peer that says
	// nothing is still there.
	keepAlive = 20 * time.Second
	// acceptLimit bounds the wait for the first packet after an accept.
	acceptLimit = 5 * time.Second
	// atOnce bounds requests being answered, connections, and those that end.
	atOnce = 2 * most
)

// Counts has the counters of a responder.
type Counts struct {
	Open            int
	Served, Refused uint64
}

// Responder answers other hosts.
type Responder struct {
	cfg             Config
	policy          atomic.Pointer[Policy]
	requests        chan struct{}
	served, refused atomic.Uint64

	mu          sync.Mutex    // guards connections
	connections []*connection // oldest first
}

// connection is a connection to which memory is lent.
type connection struct {
	peer netip.Addr
	end  context.CancelFunc
}

// New makes a responder; Run runs it.
func New(cfg Config, p Policy) *Responder {
	cfg.Idle = cmp.Or(cfg.Idle, idleTime)
	r := &Responder{cfg: cfg, requests: make(chan struct{}, 1)}
	r.SetPolicy(p)
	return r
}

// SetPolicy sets the policy for later requests. A policy that disables the responder also ends
// present connections.
func (r *Responder) SetPolicy(p Policy) {
	r.policy.Store(&p)
	if p.Serve {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.connections {
		l.end()
	}
}

// Policy returns the present policy.
func (r *Responder) Policy() Policy { return *r.policy.Load() }

// Counts returns the counters.
func (r *Responder) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Counts{Open: len(r.connections), Served: r.served.Load(), Refused: r.refused.Load()}
}

// Expected is called on the poll loop's thread when a request comes to a port number without a
// listener. It reports whether the responder is about to listen there.
func (r *Responder) Expected(port uint16) bool {
	if port != probe.Port || !r.policy.Load().Serve {
		return false
	}
	select {
	case r.requests <- struct{}{}:
	default: // one pending signal is enough
	}
	return true
}

// Run answers requests until ctx ends.
func (r *Responder) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.requests:
		}
		if err := r.serve(ctx); err != nil && ctx.Err() == nil {
			r.cfg.Log.Warn("urdma ping of other hosts is not answered", "error", err)
		}
	}
}

// serve listens until there has been no connection for a while.
func (r *Responder) serve(ctx context.Context) error {
	client, err := verbs.Open(r.cfg.Socket)
	if err != nil {
		return err
	}
	defer client.Close()
	l, err := client.Listen(fmt.Sprintf(":%d", probe.Port))
	if err != nil {
		return fmt.Errorf("port number %d: %w", probe.Port, err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(ctx)
	var connections sync.WaitGroup
	defer connections.Wait()
	defer cancel()
	slots := make(chan struct{}, atOnce)
	for {
		request, err := r.next(ctx, l)
		switch {
		case errors.Is(err, context.DeadlineExceeded) && r.Counts().Open > 0:
			continue
		case errors.Is(err, context.DeadlineExceeded), ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		slots <- struct{}{} // others wait in the listener's backlog
		connections.Go(func() {
			defer func() { <-slots }()
			r.answer(ctx, request)
		})
	}
}

func (r *Responder) next(ctx context.Context, l *verbs.Listener) (*verbs.Request, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Idle)
	defer cancel()
	return l.Next(ctx)
}

// judge reads a request and decides whether to grant it.
func (r *Responder) judge(request *verbs.Request) (probe.Request, probe.Status) {
	ask, err := probe.ParseRequest(request.PrivateData)
	p, peer := r.policy.Load(), request.Remote.Addr().WithZone("") // prefixes and our own addresses have no zone
	own := peer.IsLoopback() || r.cfg.Own(peer)                    // a local program could lend itself memory anyway
	switch {
	case err != nil:
		return ask, probe.OtherVersion
	case !p.Serve:
		return ask, probe.Off
	case !own && len(p.Allow) > 0 && !p.Names(peer):
		return ask, probe.NotForYou
	}
	return ask, probe.Granted
}

func (r *Responder) answer(ctx context.Context, request *verbs.Request) {
	ask, status := r.judge(request)
	if status == probe.Granted {
		r.lend(ctx, request, ask)
		return
	}
	r.refused.Add(1)
	r.cfg.Log.Debug("responder: refused", "peer", request.Remote.String(), "status", status)
	_ = request.Reject(probe.Answer{Status: status}.Append(nil)) // fails if the peer has given up
}

// lend serves one connection until it ends. Only a connection that its peer has acknowledged can
// replace another, so that a peer with forged addresses cannot.
func (r *Responder) lend(ctx context.Context, request *verbs.Request, ask probe.Request) {
	limited, cancel := context.WithTimeout(ctx, acceptLimit)
	defer cancel()
	conn, err := request.Accept(limited, options(ask))
	if err != nil {
		r.cfg.Log.Debug("responder: not connected", "peer", request.Remote.String(), "error", err)
		return
	}
	defer conn.Close()
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer r.leave(r.enter(request.Remote.Addr(), end))
	r.served.Add(1)
	watch(ctx, conn)
}

// options returns the connection's options: the peer reads the lent memory, and we post only
// checks whether it is alive.
func options(ask probe.Request) *verbs.ConnOptions {
	return &verbs.ConnOptions{Serve: 1, Reads: -1, QP: verbs.QPOptions{SendWR: 1, RecvWR: 1, SendSGE: 1, RecvSGE: 1},
		Prepare: func(conn *verbs.Conn) error {
			memory, err := conn.PD().AllocMemory(probe.Bytes, verbs.LocalWrite|verbs.RemoteRead)
			if err != nil {
				return err
			}
			probe.Fill(memory.Bytes(), ask.Seed)
			at := memory.Remote(0)
			return conn.SetPrivateData(probe.Answer{Bytes: uint32(len(memory.Bytes())), RKey: at.RKey,
				Addr: at.Addr}.Append(nil))
		}}
}

// watch returns when the connection, the peer or the time limit has ended. A peer that died
// silently is detected because it does not acknowledge a Write of 0 bytes.
func watch(ctx context.Context, conn *verbs.Conn) {
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-conn.Done():
			return
		case <-tick.C:
			if conn.Write(ctx, verbs.Remote{}) != nil {
				return
			}
		}
	}
}

// enter adds a connection, and may end others to make room.
func (r *Responder) enter(peer netip.Addr, end context.CancelFunc) *connection {
	r.mu.Lock()
	defer r.mu.Unlock()
	same := 0
	for _, l := range r.connections {
		if l.peer == peer {
			same++
		}
	}
	switch i := slices.IndexFunc(r.connections, func(l *connection) bool { return l.peer == peer }); {
	case same >= mostOfPeer:
		r.connections[i].end()
		r.connections = slices.Delete(r.connections, i, i+1)
	case len(r.connections) >= most:
		r.connections[0].end()
		r.connections = slices.Delete(r.connections, 0, 1)
	}
	l := &connection{peer, end}
	r.connections = append(r.connections, l)
	return l
}

func (r *Responder) leave(mine *connection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.connections = slices.DeleteFunc(r.connections, func(l *connection) bool { return l == mine })
}
