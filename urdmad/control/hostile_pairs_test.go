package control_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"testing"

	"urdma/urdmad/control"
	"urdma/urdmad/control/controltest"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/samehost"
)

// oneCarrier checks that each queue pair and its carrier have each other, and that
// nobody delivers to a queue pair that is gone.
func oneCarrier(t *testing.T, r *running, numbers []uint32) {
	t.Helper()
	wrong := make(chan string, 1)
	r.server.Workers[0].Engine.Do(func() {
		defer close(wrong)
		for _, n := range numbers {
			q := r.server.Workers[0].Engine.QPs.Pair(n)
			if q == nil || q.Carrier() == nil {
				continue
			}
			if other := q.Connection().QP; other != q {
				wrong <- fmt.Sprintf("the carrier %T of queue pair %d, of type %d, has another", q.Carrier(), n, q.Type)
				return
			}
			if c, ok := q.Carrier().(*samehost.Conn); ok && c.Other() != nil && c.Other().QP != nil &&
				c.Other().QP.Carrier() != qp.Carrier(c.Other()) {
				wrong <- fmt.Sprintf("queue pair %d sends to queue pair %d, of type %d, whose carrier is a %T", n, c.Other().QP.QPN,
					c.Other().QP.Type, c.Other().QP.Carrier())
				return
			}
		}
	})
	r.server.Workers[0].Wake()
	if text := <-wrong; text != "" {
		t.Fatal(text)
	}
}

// TestHostilePairs: queue pairs of every type, with queues or without, connected in
// every way to each other and themselves, destroyed at any time: urdmad goes on, and
// nothing is left.
func TestHostilePairs(t *testing.T) {
	r := start(t, func(s *control.Server) { s.Devices[0].MaxQP = 0 })
	domain, err := os.CreateTemp(t.TempDir(), "domain")
	if err != nil {
		t.Fatal(err)
	}
	defer domain.Close()
	steps := 40_000
	if os.Getenv("URDMA_LONG") != "" {
		steps = 2_000_000
	}
	rng := rand.New(rand.NewPCG(7, 8))
	own := netip.MustParseAddr("198.18.0.1")
	var numbers []uint32
	newClient := func() *controltest.Client {
		c, err := controltest.New(controltest.Config{Rand: rng, Socket: r.socket, Own: own, Peers: []netip.Addr{own},
			Domain: domain, Numbers: &numbers})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	clients := []*controltest.Client{newClient(), newClient(), newClient()}
	for i := range steps {
		at := rng.IntN(len(clients))
		if err := clients[at].Step(); err != nil {
			t.Fatal(err)
		}
		if len(numbers) > 32 {
			numbers = numbers[2:] // most are gone
		}
		if i%8 == 0 {
			oneCarrier(t, r, numbers)
		}
		if rng.IntN(1000) == 0 {
			clients[at].Leave()
			clients[at] = newClient()
		}
	}
	for _, c := range clients {
		c.Leave()
	}
	nothingLeft(t, r)
	stats := r.server.Workers[0].CM.Stats
	t.Logf("%d requests, %d accepted, %d connections by rdma_cm; by number %d", stats.Requested, stats.Accepted,
		stats.Established, r.server.Workers[0].Numbers.Stats().Established)
}
