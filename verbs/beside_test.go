package verbs_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"urdma/verbs"
)

// TestConnectBesideResize: a connection that uses a shared receive queue can be made while that is resized.
// The race detector reports unguarded reads of its size.
func TestConnectBesideResize(t *testing.T) {
	d := startDaemon(t)
	far := d.open()
	p := newPool(t, far)
	near := d.open()
	stop, resized := make(chan struct{}), make(chan error, 1)
	go func() { resized <- resizeUntil(p.srq, stop) }()
	for range 10 {
		two := &pair{d: d, near: near, far: far}
		two.connect(t, verbs.ConnOptions{}, verbs.ConnOptions{PD: p.pd, QP: verbs.QPOptions{SRQ: p.srq}})
		ok(t, p.srq.SetLimit(2))
		ok(t, two.accepted.Close())
		ok(t, two.dialed.Close())
	}
	close(stop)
	ok(t, <-resized)
}

// held counts the process's descriptors and mappings that come from urdmad.
func held(t *testing.T) string {
	t.Helper()
	maps := must(os.ReadFile("/proc/self/maps"))(t)
	return fmt.Sprintf("%d descriptors, %d mappings", len(must(os.ReadDir("/proc/self/fd"))(t)),
		bytes.Count(maps, []byte("memfd:urdma")))
}

// TestClosedBesideMakers: closing a client while it dials for the first time or creates any other object
// leaks nothing. idle keeps references to descriptors that the garbage collector would otherwise close, so
// that they count.
func TestClosedBesideMakers(t *testing.T) {
	d := startDaemon(t)
	far := d.open()
	address := fmt.Sprintf("198.18.0.1:%d", must(far.Listen(":0"))(t).Addr().Port()) // nobody accepts there
	ctx := patience(t)
	makers := map[string]func(c *verbs.Client) error{
		"Dial": func(c *verbs.Client) error { _, err := c.Dial(ctx, address, nil); return err },
		"Listen": func(c *verbs.Client) error {
			_, err := c.Listen(":0")
			return err
		},
		"Open": func(c *verbs.Client) error { _, err := c.Devices()[0].Open(); return err },
		"AllocMemory": func(c *verbs.Client) error {
			x, err := c.Devices()[0].Open()
			if err != nil {
				return err
			}
			return makeUntilError(x)
		},
	}
	for name, maker := range makers {
		t.Run(name, func(t *testing.T) {
			idle := held(t)
			for round := range 60 {
				c := must(verbs.Open(d.Socket))(t)
				var all sync.WaitGroup
				all.Go(func() {
					if err := maker(c); err != nil && !errors.Is(err, verbs.ErrClosed) {
						t.Errorf("%s: %v, expected ErrClosed or none", name, err)
					}
				})
				time.Sleep(time.Duration(round) * 25 * time.Microsecond)
				ok(t, c.Close())
				all.Wait()
			}
			if now := held(t); now != idle {
				t.Errorf("%s left of 60 clients, %s before", now, idle)
			}
		})
	}
}

// makeUntilError creates each kind of object again and again.
func makeUntilError(x *verbs.Context) error {
	pd, err := x.AllocPD()
	for err == nil {
		if _, err = pd.AllocMemory(4096, verbs.LocalWrite); err != nil {
			break
		}
		if _, err = pd.RegisterMemory(make([]byte, 64), verbs.LocalWrite); err != nil {
			break
		}
		if _, err = pd.CreateSRQ(verbs.SRQOptions{}); err != nil {
			break
		}
		var cq *verbs.CQ
		if cq, err = x.CreateCQ(4, nil); err != nil {
			break
		}
		if _, err = x.CreateCompChannel(); err == nil {
			_, err = pd.CreateQP(cq, cq, verbs.QPOptions{})
		}
	}
	return err
}
