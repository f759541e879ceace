package snapshot_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"urdma/inspect"
	"urdma/urdmad/attach/admin"
	"urdma/urdmad/attach/snapshot"
	"urdma/urdmad/control/controltest"
	"urdma/verbs/abi"
)

// strangerUID is an ordinary user.
const strangerUID = 65534

// TestMain also runs the stranger, who uses and inspects the given urdmad.
func TestMain(m *testing.M) {
	if socket := os.Getenv("URDMA_TEST_LOOK"); socket != "" {
		os.Exit(look(socket))
	}
	os.Exit(m.Run())
}

func look(socket string) int {
	c, err := controltest.Dial(socket)
	if err == nil {
		err = c.MakeObjects()
	}
	var text []byte
	if err == nil {
		err = mayNot(socket)
	}
	if err == nil {
		text, err = fetch(socket)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	os.Stdout.Write(text)
	return 0
}

// mayNot tries operations that only urdmad's user may do, and tries to end the first client, which belongs to another
// user.
func mayNot(socket string) error {
	s, err := inspect.Open(socket)
	if err != nil {
		return err
	}
	defer s.Close()
	for op, want := range map[uint32]error{abi.AdminReload: syscall.EPERM, abi.AdminLogLevel: syscall.EPERM,
		abi.AdminEndClient: syscall.ENOENT} {
		if _, err := s.Administer(op, 1, "debug"); !errors.Is(err, want) {
			return fmt.Errorf("ADMIN of operation %d by a stranger: %v, expected %v", op, err, want)
		}
	}
	return nil
}

func fetch(socket string) ([]byte, error) {
	s, err := inspect.Open(socket)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.FetchJSON()
}

// shown returns the snapshot of urdmad's answer.
func shown(t *testing.T, socket string) *inspect.Snapshot {
	t.Helper()
	text, err := fetch(socket)
	if err != nil {
		t.Fatal(err)
	}
	s := new(inspect.Snapshot)
	if err := json.Unmarshal(text, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// attached attaches snapshots, and administration for mayNot.
func attached(r *controltest.Running) {
	snapshot.Attach(r.Server, snapshot.Config{Loop: func(int) inspect.Loop { return inspect.Loop{Turns: r.Worker.Stats().Turns} }})
	admin.Attach(r.Server, admin.Config{})
}

func TestInspectShowsEveryObject(t *testing.T) {
	r, c := controltest.StartEquipped(t, attached)
	s := shown(t, r.Socket)
	for range 30000 { // the command line appears a little later
		if len(s.Clients) == 0 || s.Clients[0].Line != "" {
			break
		}
		time.Sleep(time.Millisecond)
		s = shown(t, r.Socket)
	}
	if s.Restricted || s.Loop == nil || s.Totals == nil || s.Handshakes == nil || len(s.Ports) != 1 ||
		len(s.Totals.Traffic) != 1 {
		t.Fatalf("the owner does not see the whole: %+v", s)
	}
	if n := [...]int{len(s.Clients), len(s.Domains), len(s.Regions), len(s.CQs), len(s.QPs), len(s.Connections),
		len(s.Listeners)}; n != [...]int{1, 1, 1, 1, 1, 1, 1} {
		t.Fatalf("objects: %v, expected one of each", n)
	}
	who := s.Clients[0]
	if who.PID != os.Getpid() || who.UID != os.Getuid() || who.Command != "tester?[31m" || who.Line == "" ||
		who.QPs != 1 || who.IDs != 2 {
		t.Errorf("client: %+v", who)
	}
	q := s.QPs[0]
	if q.State != "RESET" || q.SendDepth != 8 || q.RecvDepth != 16 || q.PID != os.Getpid() ||
		q.Domain != s.Domains[0].Number || q.SendCQ != s.CQs[0].Handle {
		t.Errorf("queue pair: %+v", q)
	}
	if d := s.Domains[0]; d.Regions != 1 || d.QPs != 1 || d.Device != "urdma0" {
		t.Errorf("domain: %+v", d)
	}
	if l := s.Listeners[0]; l.Backlog != 3 || l.Local == "" {
		t.Errorf("listener: %+v", l)
	}
	for _, at := range []struct {
		what string
		age  float64
	}{{"queue pair", s.Taken.Sub(q.Created).Seconds()}, {"client", s.Taken.Sub(who.Connected).Seconds()},
		{"connection", s.Taken.Sub(s.Connections[0].Created).Seconds()}} {
		if at.age < 0 || at.age > 30 {
			t.Errorf("%s is %v s old", at.what, at.age)
		}
	}
	c.Close()
	for range 30000 {
		if s = shown(t, r.Socket); len(s.Clients) == 0 {
			return
		}
	}
	t.Error("the client is still there after it has gone")
}

// TestStatisticsAreSums: the statistics are the sums of a snapshot's lists.
func TestStatisticsAreSums(t *testing.T) {
	var taker *snapshot.Taker
	r, c := controltest.StartEquipped(t, func(r *controltest.Running) {
		taker = snapshot.Attach(r.Server, snapshot.Config{Loop: func(int) inspect.Loop { return inspect.Loop{Turns: 7} }})
	})
	defer c.Close()
	w := r.Server.Workers[0]
	w.Do(func() { w.Engine.QPs.At(0).Stats.MessagesSent = 5 })
	all, err := taker.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := taker.Statistics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Loop.Core = all.Loop.Core // the worker may have moved
	if s.QueuePairs != len(all.QPs) || s.Work != all.AllWork() || s.Work.MessagesSent != 5 ||
		!slices.Equal(s.Traffic, all.AllTraffic()) || *s.Loop != *all.Loop || len(s.Ports) != len(all.Ports) {
		t.Errorf("statistics: %+v; a snapshot: %+v", s, all)
	}
}

// TestInspectIsPrivate: another user sees only that user's objects.
func TestInspectIsPrivate(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: needs root, to become another user")
	}
	r := controltest.Start(t, attached)
	mine, err := controltest.Dial(r.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	if err := mine.MakeObjects(); err != nil {
		t.Fatal(err)
	}
	self := filepath.Join(filepath.Dir(r.Socket), "test") // others may not read the test's directory
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(self, text, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Dir = "/"
	cmd.Env = []string{"URDMA_TEST_LOOK=" + r.Socket}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: strangerUID, Gid: strangerUID}}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var s inspect.Snapshot
	if err := json.Unmarshal(out, &s); err != nil {
		t.Fatal(err)
	}
	if !s.Restricted || s.Loop != nil || s.Totals != nil || s.Handshakes != nil {
		t.Errorf("a stranger sees the whole's counters: %s", out)
	}
	if len(s.Clients) != 1 || s.Clients[0].UID != strangerUID {
		t.Fatalf("a stranger sees clients %+v", s.Clients)
	}
	own := s.Clients[0].ID
	for what, owners := range map[string][]inspect.Object{
		"domain": owners(s.Domains, func(v inspect.Domain) inspect.Object { return v.Object }),
		"region": owners(s.Regions, func(v inspect.Region) inspect.Object { return v.Object }),
		"CQ":     owners(s.CQs, func(v inspect.CQ) inspect.Object { return v.Object }),
		"QP":     owners(s.QPs, func(v inspect.QP) inspect.Object { return v.Object }),
		"id":     owners(s.Connections, func(v inspect.Connection) inspect.Object { return v.Object }),
		"listen": owners(s.Listeners, func(v inspect.Listener) inspect.Object { return v.Object }),
	} {
		if len(owners) != 1 || owners[0].Client != own {
			t.Errorf("a stranger sees %s of %+v, expected one of client %d", what, owners, own)
		}
	}
}

// TestContainerRoot: root of another PID or user namespace is a stranger for urdmad and for every other root.
func TestContainerRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: makes namespaces")
	}
	r := controltest.Start(t, attached)
	c, err := controltest.Dial(r.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.MakeObjects(); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string]uintptr{"PID": syscall.CLONE_NEWPID, "user": syscall.CLONE_NEWUSER} {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), "URDMA_TEST_LOOK="+r.Socket)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		if flags == syscall.CLONE_NEWUSER {
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}}
		}
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if errors.Is(err, syscall.EPERM) {
			t.Logf("no %s namespace can be made here", name)
			continue
		}
		var s inspect.Snapshot
		if err := errors.Join(err, json.Unmarshal(out, &s)); err != nil {
			t.Fatal(name, err)
		}
		if !s.Restricted || s.Loop != nil || len(s.Clients) != 1 || s.Clients[0].PID == os.Getpid() {
			t.Errorf("root of another %s namespace sees %+v", name, s.Clients)
		}
		for _, l := range s.Limits {
			if l.Of != inspect.OfClient || l.Client != s.Clients[0].ID {
				t.Errorf("root of another %s namespace sees what %+v", name, l)
			}
		}
	}
}

func owners[T any](list []T, of func(T) inspect.Object) (out []inspect.Object) {
	for _, v := range list {
		out = append(out, of(v))
	}
	return out
}

// TestInspectWhileObjectsComeAndGo takes snapshots while a client makes and destroys objects, and another client
// ends.
func TestInspectWhileObjectsComeAndGo(t *testing.T) {
	r := controltest.Start(t, attached)
	stop := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			c, err := controltest.Dial(r.Socket)
			if err == nil {
				err = c.MakeObjects()
				c.Close()
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	for range 200 {
		s := shown(t, r.Socket)
		for _, q := range s.QPs {
			if q.State != "RESET" {
				t.Fatalf("queue pair: %+v", q)
			}
		}
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// BenchmarkSnapshot measures a snapshot of 10,000 regions.
func BenchmarkSnapshot(b *testing.B) {
	var taker *snapshot.Taker
	r := controltest.Start(b, func(r *controltest.Running) { taker = snapshot.Attach(r.Server, snapshot.Config{}) })
	c, err := controltest.Dial(r.Socket)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if err := c.MakeObjects(); err != nil {
		b.Fatal(err)
	}
	for range 10000 {
		if _, err := controltest.Call[abi.RegMRRequest, abi.RegMRResponse](c, abi.RegMR,
			abi.RegMRRequest{PD: 2, Access: abi.AccessLocalWrite}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		s, err := taker.Snapshot(context.Background())
		if err != nil || len(s.Regions) != 10001 {
			b.Fatal(len(s.Regions), err)
		}
	}
}
