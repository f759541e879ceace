package memif

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"urdma/dpdk/port"
	"urdma/dpdk/port/porttest"
)

// testLog writes to the test's output while the test runs.
func testLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

// tested is a port with its first queue.
type tested struct {
	*Port
	*queue
}

func mustOpen(t *testing.T, o Options) tested {
	t.Helper()
	if o.Log == nil {
		o.Log = testLog(t)
	}
	p, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return tested{p.(*Port), p.(*Port).queues[0]}
}

func waitLink(t *testing.T, up bool, ports ...port.Port) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for _, p := range ports {
		for p.Link() != up {
			if time.Now().After(deadline) {
				t.Fatalf("%s: link up is %v for a minute", p.Info().Name, !up)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// openPair opens a connected server and client; change adapts their options.
func openPair(t *testing.T, change func(server, client *Options)) (server, client tested) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.sock")
	so := Options{Name: "server", SocketPath: path, Server: true}
	co := Options{Name: "client", SocketPath: path}
	if change != nil {
		change(&so, &co)
	}
	server, client = mustOpen(t, so), mustOpen(t, co)
	waitLink(t, true, server, client)
	return server, client
}

func TestConformance(t *testing.T) {
	for _, c := range []struct {
		mtu, ring    int
		clientBuffer int
	}{{1500, 1024, 0}, {9000, 256, 0}, {1500, 64, 0}, {1500, 8, 0}} {
		open := func(swap bool) func(t *testing.T) *porttest.Pair {
			return func(t *testing.T) *porttest.Pair {
				s, cl := openPair(t, func(s, c2 *Options) {
					s.MTU, c2.MTU = c.mtu, c.mtu
					c2.RingSize = c.ring
				})
				p := &porttest.Pair{A: cl, B: s, Interrupts: true, Step: func() { time.Sleep(50 * time.Microsecond) }}
				if swap {
					p.A, p.B = p.B, p.A
				}
				return p
			}
		}
		t.Run(fmt.Sprintf("client to server, MTU %d, ring %d", c.mtu, c.ring),
			func(t *testing.T) { porttest.Run(t, open(false)) })
		t.Run(fmt.Sprintf("server to client, MTU %d, ring %d", c.mtu, c.ring),
			func(t *testing.T) { porttest.Run(t, open(true)) })
	}
}
