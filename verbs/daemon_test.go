package verbs_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"urdma/verbs"
)

// roleVariable makes the test binary run as a peer process instead, see roles.
const roleVariable = "URDMA_VERBS_TEST_ROLE"

var programs struct {
	once sync.Once
	dir  string
	why  string // why they could not be built; the test is then skipped
	err  error
}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(roles[role]())
	}
	status := m.Run()
	if programs.dir != "" {
		os.RemoveAll(programs.dir)
	}
	os.Exit(status)
}

// program builds urdmad and the example once and returns the path of one of them.
func program(t testing.TB, name string) string {
	t.Helper()
	programs.once.Do(func() {
		if out, err := exec.Command("pkg-config", "--exists", "libdpdk").CombinedOutput(); err != nil {
			programs.why = fmt.Sprintf("urdmad needs libdpdk-dev to build (pkg-config libdpdk: %v %s)", err, out)
			return
		}
		if programs.dir, programs.err = os.MkdirTemp("", "urdma-verbs-"); programs.err != nil {
			return
		}
		build := exec.Command("go", "build", "-o", programs.dir+"/", "urdma/urdmad", "urdma/examples/go/ping",
			"urdma/examples/go/srq", "urdma/examples/go/ud")
		if out, err := build.CombinedOutput(); err != nil {
			programs.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if programs.why != "" {
		t.Skip(programs.why)
	}
	if programs.err != nil {
		t.Fatal(programs.err)
	}
	return filepath.Join(programs.dir, name)
}

// daemon is a urdmad for this test, with the built-in configuration unless arguments change it.
type daemon struct {
	t      testing.TB
	cmd    *exec.Cmd
	dir    string // its XDG_RUNTIME_DIR
	socket string
	ended  sync.Once
}

func startDaemon(t testing.TB, args ...string) *daemon {
	t.Helper()
	path := program(t, "urdmad")
	dir := t.TempDir()
	d := &daemon{t: t, dir: dir, socket: filepath.Join(dir, "urdma", "urdmad.sock")}
	d.cmd = exec.Command(path, args...)
	d.cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "URDMA_SOCKET=")
	var log bytes.Buffer
	d.cmd.Stderr, d.cmd.Stdout = &log, &log
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.kill()
		if t.Failed() {
			t.Logf("urdmad said:\n%s", log.String())
		}
	})
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if c, err := verbs.Open(d.socket); err == nil {
			c.Close()
			return d
		}
	}
	t.Fatal("urdmad did not open its socket within a minute")
	return nil
}

// kill is kill -9.
func (d *daemon) kill() {
	d.ended.Do(func() {
		_ = d.cmd.Process.Kill() // it has exited by itself
		_ = d.cmd.Wait()         // reports the signal
	})
}

func (d *daemon) open() *verbs.Client {
	d.t.Helper()
	c, err := verbs.Open(d.socket)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { c.Close() })
	return c
}

// patience limits every wait: a call that takes longer counts as hanging.
func patience(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// must is for calls that can't fail in a test.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pair connects two clients of one urdmad.
type pair struct {
	d                *daemon
	near, far        *verbs.Client
	dialed, accepted *verbs.Conn
}

func connect(t testing.TB, dial, accept verbs.ConnOptions) *pair {
	t.Helper()
	d := startDaemon(t)
	p := &pair{d: d, near: d.open(), far: d.open()}
	p.connect(t, dial, accept)
	return p
}

func (p *pair) connect(t testing.TB, dial, accept verbs.ConnOptions) {
	t.Helper()
	ctx := patience(t)
	l := must(p.far.Listen(":0"))(t)
	defer l.Close()
	type result struct {
		conn *verbs.Conn
		err  error
	}
	got := make(chan result, 1)
	go func() {
		conn, err := l.Accept(ctx, &accept)
		got <- result{conn, err}
	}()
	address := fmt.Sprintf("198.18.0.1:%d", l.Addr().Port())
	p.dialed = must(p.near.Dial(ctx, address, &dial))(t)
	r := <-got
	p.accepted = must(r.conn, r.err)(t)
}

// memory registers memory in a connection's own domain.
func memory(t testing.TB, conn *verbs.Conn, n int, shared bool) *verbs.MR {
	t.Helper()
	access := verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead | verbs.RemoteAtomic
	if shared {
		return must(conn.PD().AllocMemory(n, access))(t)
	}
	return must(conn.PD().RegisterMemory(make([]byte, n), access))(t)
}

func fill(b []byte, n int) {
	for i := range b {
		b[i] = byte(n*167 + i*13 + i>>8)
	}
}

func check(t testing.TB, b []byte, n int) {
	t.Helper()
	for i := range b {
		if want := byte(n*167 + i*13 + i>>8); b[i] != want {
			t.Fatalf("message %d, byte %d of %d: got 0x%02x, expected 0x%02x", n, i, len(b), b[i], want)
		}
	}
}
