package mpa_test

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/connect"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/wire"
)

// TestSockets: every socket of an id counts against the id's program until it is closed, and a program at its limit
// gets an error.
func TestSockets(t *testing.T) {
	w := world(t, enginetest.Options{})
	a, b := w.A.NewClient(), w.B.NewClient()
	expect := func(c *enginetest.Client, n int) {
		t.Helper()
		w.Until("sockets to be counted", 10*time.Second, func() bool { return c.Sockets == n })
	}
	l := b.Listen(port, 8)
	expect(b, 1)
	ask := func() (*cm.ID, *enginetest.QP) {
		id, q := a.Resolve(w.B.Addr, port), a.NewQP(nil)
		a.Connect(id, q, enginetest.Param(4, ""))
		return id, q
	}
	id, q := ask()
	child := b.Event(cm.EventConnectRequest, time.Minute).Child
	expect(a, 1)
	expect(b, 2)
	y := b.NewQP(nil)
	b.Accept(child, y, enginetest.Param(4, ""))
	a.Event(cm.EventEstablished, time.Minute)
	b.Event(cm.EventEstablished, time.Minute)

	b.MaxSockets = 2
	second, q2 := ask()
	if ev := a.Any(time.Minute); ev.Kind != cm.EventRejected && ev.Kind != cm.EventUnreachable {
		t.Errorf("beyond the peer's bound: event %v", ev.Kind)
	}
	third, q3 := a.Resolve(w.B.Addr, port), a.NewQP(nil)
	b.MaxSockets, a.MaxSockets = 0, 1
	w.A.Do(func() {
		if err := w.A.CM.Connect(third, connect.QueuePair(q3.Q), enginetest.Param(4, "")); !errors.Is(err, syscall.ENOMEM) {
			t.Errorf("beyond the bound: %v", err)
		}
	})
	bound := a.NewID()
	w.A.Do(func() {
		if err := w.A.CM.Bind(bound, enginetest.At(w.A.Addr, port)); !errors.Is(err, syscall.ENOMEM) {
			t.Errorf("a listener beyond the bound: %v", err)
		}
	})
	a.Disconnect(id)
	for _, x := range []*enginetest.QP{q, q2, q3, y} {
		x.Destroy()
	}
	for _, x := range []*cm.ID{id, second, third, bound} {
		a.Destroy(x)
	}
	b.Destroy(child)
	b.Destroy(l)
	expect(a, 0)
	expect(b, 0)
}

// TestGoneKeepsNothing: if a peer leaves before the program has answered, its socket is closed.
func TestGoneKeepsNothing(t *testing.T) {
	for name, leave := range map[string]func(p *peer){"reset": (*peer).reset,
		"end": func(p *peer) { _ = p.conn.CloseWrite() }} {
		t.Run(name, func(t *testing.T) {
			w := world(t, enginetest.Options{})
			c := w.A.NewClient()
			c.Listen(port, 8)
			p := dial(w)
			id := p.requested(c, request())
			leave(p)
			w.Until("the socket to be closed", time.Second, func() bool { return c.Sockets == 1 })
			w.A.Do(func() {
				if err := w.A.CM.Reject(id, nil); err != nil {
					t.Error(err)
				}
			})
			w.Pass(5 * time.Second)
			if c.Sockets != 1 {
				t.Errorf("%d sockets after the reject", c.Sockets)
			}
		})
	}
}

// bigBuffers makes sockets that hold megabytes of unread data.
func bigBuffers(t *testing.T) {
	t.Helper()
	const file = "/proc/sys/net/ipv4/tcp_rmem"
	was, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte("4096 8388608 8388608"), 0)
	}
	if err != nil {
		t.Skip("the kernel's buffers can't be made larger here: ", err)
	}
	t.Cleanup(func() { _ = os.WriteFile(file, was, 0) })
}

// TestTurnIsBounded: if megabytes have arrived on many connections, a turn reads some of them and the next turns the
// others.
func TestTurnIsBounded(t *testing.T) {
	if noSockets {
		t.Skip("no network namespace")
	}
	bigBuffers(t)
	const peers, each, fpdu = 40, 1 << 20, 1 << 15
	w := world(t, enginetest.Options{})
	c := w.A.NewClient()
	c.Listen(port, peers)
	send, recv := c.NewCQ(8), c.NewCQ(8)
	dst := c.Register(peers*each, rw)
	few := enginetest.DefaultCap
	few.MaxSendWR, few.MaxRecvWR = 1, 1
	var all []*peer
	for range peers {
		p := dial(w)
		c.Accept(p.requested(c, request()), c.NewQPOn(&few, send, recv), enginetest.Param(4, ""))
		p.reply(true)
		c.Event(cm.EventEstablished, time.Minute)
		all = append(all, p)
	}
	for i, p := range all {
		var b []byte
		for at := 0; at < each; at += fpdu {
			s := make([]byte, wire.TaggedLen+fpdu)
			d := wire.DDP{Tagged: true, Last: true, Op: wire.OpWrite, STag: wire.STag(dst.STag),
				TO: dst.Base() + uint64(i*each+at)}
			d.Put(s)
			s[len(s)-1] = 1 // the counted byte
			b = append(b, p.fpdu(s)...)
		}
		_ = p.conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
		if _, err := p.conn.Write(b); err != nil {
			t.Skip("the kernel takes less: ", err)
		}
	}
	came := func(i int) (n int) {
		for at := i*each + fpdu - 1; at < (i+1)*each; at += fpdu {
			n += int(dst.Bytes[at]) * fpdu
		}
		return n
	}
	const budget, most = 8 << 20, 512 << 10 // of a turn, and of a connection in it
	turns, before := 0, 0
	for ; before < peers*each && turns < 100; turns++ {
		w.A.Engine.Turn(w.Now())
		all, least := 0, each
		for i := range peers {
			n := came(i)
			all += n
			least = min(least, n)
		}
		if all-before > budget+most {
			t.Errorf("a turn took %d bytes", all-before)
		}
		if turns == peers*most/budget && least == 0 {
			t.Errorf("a connection still waits for its first turn")
		}
		before = all
	}
	if before < peers*each {
		t.Errorf("%d bytes came in %d turns", before, turns)
	}
}
