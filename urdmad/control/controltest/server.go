package controltest

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"urdma/dpdk/loopback"
	"urdma/dpdk/port"
	"urdma/urdmad/control"
	"urdma/urdmad/control/objects"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/connect"
	"urdma/urdmad/core/engine"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/worker"
	"urdma/verbs/personality"
)

// Running is a urdmad without its main program, on a loopback port.
type Running struct {
	Server *control.Server
	Socket string
	Worker *worker.Worker
}

// Start starts one. changes run before, and also attach the features to test.
func Start(t testing.TB, changes ...func(*Running)) *Running {
	t.Helper()
	dir, err := os.MkdirTemp("", "urdma-control-") // other users cannot enter t.TempDir's parents
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	worker.PrepareRuntime(1)
	ip := netip.MustParsePrefix("198.18.0.1/24")
	p := loopback.Open("urdma0", [6]byte{2, 0, 0, 0, 0, 1}, 1500, netip.Addr{})
	first, w := NewWorker(t, p, ip, nil)
	r := &Running{Socket: filepath.Join(dir, "urdmad.sock"), Worker: w, Server: &control.Server{
		Log: slog.New(slog.DiscardHandler), MaxReads: 16, Workers: []*control.Worker{first},
		Devices: []control.Device{{Name: "urdma0", Of: "urdma0", Number: 1, Place: control.Place{Address: ip, MTU: 1500},
			Personality: personality.Named(personality.IWARP), MaxQP: 64, Link: p.Link}}}}
	objects.Attach(r.Server)
	for _, change := range changes {
		change(r)
	}
	l, err := control.Listen(r.Socket, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = r.Server.Serve(l) }()
	t.Cleanup(func() {
		l.Close()
		r.Server.Close()
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// NewWorker returns a single worker, or one of several, on a loopback port.
func NewWorker(t testing.TB, p port.Port, ip netip.Prefix, mine func(number uint32) bool) (*control.Worker,
	*worker.Worker) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	e := engine.New(engine.Config{Log: log, Mine: mine})
	t.Cleanup(func() {
		if n := e.Stats.Panics; n > 0 { // the worker has stopped
			t.Errorf("%d panics", n)
		}
	})
	e.AddPort(p, netif.Address{Prefix: ip})
	ids, numbers := connect.New(e, cm.Config{Log: log, Addrs: []netip.Addr{ip.Addr()}, Timeout: 4e9, MaxDepth: 16})
	w, err := worker.New(e, worker.DefaultPolicy(), worker.Hooks{Moved: e.Moved})
	if err != nil {
		t.Fatal(err)
	}
	return &control.Worker{Engine: e, CM: ids, Numbers: numbers, Wake: w.Wake, WatchKick: w.Watch, UnwatchKick: w.Unwatch,
		Borrow: func(fn func()) bool {
			return w.Borrow(func(now worker.Time) (bool, worker.Time) { return e.Visit(now, fn) })
		}}, w
}
