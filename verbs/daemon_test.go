package verbs_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"urdma/test/programtest"
	"urdma/verbs"
)

// roleVariable makes the test binary run as a peer process instead, see roles.
const roleVariable = "URDMA_VERBS_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(roles[role]())
	}
	os.Exit(programtest.Main(m))
}

// daemon is a urdmad for this test.
type daemon struct {
	*programtest.Daemon
	t testing.TB
}

func startDaemon(t testing.TB, args ...string) *daemon {
	t.Helper()
	return &daemon{programtest.Start(t, args...), t}
}

func (d *daemon) open() *verbs.Client {
	d.t.Helper()
	c, err := verbs.Open(d.Socket)
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
