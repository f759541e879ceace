package control_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/dpdk/loopback"
	"urdma/inspect"
	"urdma/urdmad/control"
	"urdma/urdmad/control/controltest"
	"urdma/verbs/abi"
)

// startTwo starts a urdmad with two workers.
func startTwo(t *testing.T, change ...func(*control.Server)) *running {
	return start(t, append(change, func(s *control.Server) {
		p := loopback.Open("urdma0", [6]byte{2, 0, 0, 0, 0, 1}, 1500, netip.Addr{})
		second, w := controltest.NewWorker(t, p, netip.MustParsePrefix("198.18.0.1/24"),
			func(number uint32) bool { return number%2 == 1 })
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := w.Stop(); err != nil {
				t.Error(err)
			}
		})
		s.Workers = append(s.Workers, second)
	})...)
}

// opened is a client that has opened the device and allocated a protection domain.
func opened(t *testing.T, r *running) *client {
	t.Helper()
	c, err := dial(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.conn.Close() })
	if _, err = call[abi.HelloRequest, abi.HelloResponse](c, abi.Hello,
		abi.HelloRequest{ABIVersion: abi.Version}); err != nil {
		t.Fatal(err)
	}
	ctx, err := call[abi.OpenDeviceRequest, abi.HandleMessage](c, abi.OpenDevice, abi.OpenDeviceRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = call[abi.HandleMessage, abi.HandleMessage](c, abi.AllocPD,
		abi.HandleMessage{Handle: ctx.Handle}); err != nil {
		t.Fatal(err)
	}
	return c
}

// clientsOf is how many clients each worker has, as a snapshot says.
func clientsOf(t *testing.T, r *running) (n []int) {
	t.Helper()
	s, err := r.snapshots.Snapshot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range s.Workers {
		n = append(n, w.Clients)
	}
	if all := n[0] + n[1]; len(s.Clients) != all || len(s.Domains) != all {
		t.Errorf("the snapshot has %d clients and %d protection domains, the workers %v", len(s.Clients), len(s.Domains), n)
	}
	return n
}

func makeCQ(c *client) error {
	_, err := call[abi.CreateCQRequest, abi.CQResponse](c, abi.CreateCQ, abi.CreateCQRequest{Context: 1, CQE: 10})
	return err
}

// TestWorkersShareClients: each new client goes to the worker with the fewest, a snapshot has
// all, and none ever moves: one of another worker has no part in an XRC domain, and those of the
// domain's user that come while it is open begin where it is.
func TestWorkersShareClients(t *testing.T) {
	r := startTwo(t)
	a, b, c := opened(t, r), opened(t, r), opened(t, r)
	if n := clientsOf(t, r); !slices.Equal(n, []int{2, 1}) {
		t.Fatalf("the workers have %v clients, expected 2 and 1", n)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "domain"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	h := inDomain(t, b, file, unix.O_CREAT)
	for _, flags := range []uint32{0, unix.O_CREAT} {
		_, err = callWith[abi.OpenXRCDRequest, abi.HandleMessage](a, abi.OpenXRCD,
			abi.OpenXRCDRequest{Context: 1, OFlags: flags}, int(file.Fd()))
		if !errors.Is(err, syscall.EBUSY) {
			t.Errorf("a client of another worker: %v, expected EBUSY", err)
		}
	}
	c.conn.Close()
	awaitClients(t, r, 2)
	d := opened(t, r)
	inDomain(t, d, file, 0)
	b.takes(t, abi.CloseXRCD, h) // it stays where it was: d has it still
	e := opened(t, r)
	inDomain(t, e, file, 0)
	if n := clientsOf(t, r); !slices.Equal(n, []int{1, 3}) {
		t.Errorf("the workers have %v clients, expected 1 and 3", n)
	}
	d.conn.Close()
	e.conn.Close()
	awaitClients(t, r, 2)
	inDomain(t, a, file, unix.O_CREAT) // the domain is gone, and this is another
}

// TestWorkersTakeTurns: where clients come one after the other, each worker has some.
func TestWorkersTakeTurns(t *testing.T) {
	r := startTwo(t)
	for i := range 4 {
		c := opened(t, r)
		want := []int{0, 0}
		want[i%2] = 1
		if n := clientsOf(t, r); !slices.Equal(n, want) {
			t.Errorf("the workers have %v clients, expected %v", n, want)
		}
		c.conn.Close()
		awaitClients(t, r, 0)
	}
}

// awaitClients waits until so many clients are left, and nothing of the others.
func awaitClients(t *testing.T, r *running, left int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); r.server.Clients() > left; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d clients are left, expected %d", r.server.Clients(), left)
		}
	}
}

// TestWorkersAreAllBroken: a rule that is for every client of a user is at each worker, is
// shown once, and goes from each.
func TestWorkersAreAllBroken(t *testing.T) {
	r := startTwo(t)
	clients := []*client{opened(t, r), opened(t, r)}
	looks, err := dial(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer looks.conn.Close()
	inject := func(text string) { injects(t, looks, text) }
	inject("call ibv_create_cq errno=ENOMEM count=all")
	for i, c := range clients {
		if err := makeCQ(c); !errors.Is(err, syscall.ENOMEM) {
			t.Errorf("client %d: %v, expected ENOMEM", i, err)
		}
	}
	s, err := r.snapshots.Snapshot(context.Background())
	if err != nil || len(s.Injections) != 1 || s.Injections[0].Hits != 2 || s.Totals.Injected != 2 {
		t.Errorf("shown: %+v, %v; expected one rule with two hits", s.Injections, err)
	}
	inject("clear")
	for i, c := range clients {
		if err := makeCQ(c); err != nil {
			t.Errorf("client %d after the rule: %v", i, err)
		}
	}
}

// injects has a client ask for faults.
func injects(t *testing.T, c *client, text string) {
	t.Helper()
	var m abi.InjectRequest
	copy(m.Text[:], text)
	if _, err := call[abi.InjectRequest, abi.InjectResponse](c, abi.Inject, m); err != nil {
		t.Fatal(err)
	}
}

// TestWorkersTellOnce: what happens to a port is logged, counted and shown to who watches
// once, and is told to the clients of each worker.
func TestWorkersTellOnce(t *testing.T) {
	var log logged
	r := startTwo(t, log.take)
	for range 2 {
		opened(t, r)
	}
	source, err := inspect.Open(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	watch, err := source.StartCapture(abi.CaptureRequest{Device: abi.NoDevice, RingBytes: 1 << 16,
		Flags: abi.CaptureEvents | abi.CaptureChanges})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	looks, err := dial(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer looks.conn.Close()
	for _, text := range []string{"port urdma0 GID_CHANGE", "port urdma0 down", "port urdma0 up",
		"call ibv_create_qp errno=ENOMEM", "device urdma0"} {
		injects(t, looks, text)
	}
	s, err := r.snapshots.Snapshot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	injects(t, looks, "clear")
	for what, want := range map[string]int{"msg=injected": 4, "msg=\"inject: begins\"": 1,
		"msg=\"inject: ends\" worker=0": 1, "msg=\"inject: ends\" worker=1": 1} {
		if n := strings.Count(log.String(), what); n != want {
			t.Errorf("%q stands %d times in the log, expected %d:\n%s", what, n, want, log.String())
		}
	}
	if s.Totals.Injected != 4 {
		t.Errorf("%d injected, expected 4", s.Totals.Injected)
	}
	if err := watch.Stop(); err != nil {
		t.Fatal(err)
	}
	links := 0
	for {
		head, frame, _, ok, err := watch.Reader.Next()
		if !ok || err != nil {
			break
		}
		if e, ok := abi.Decode[abi.TraceEvent](frame); ok && e.Kind == abi.TraceLink {
			links++
		}
		watch.Reader.Release(uint64(head.Bytes))
	}
	if links != 2 {
		t.Errorf("%d changes of the link are shown, expected 2", links)
	}
}
