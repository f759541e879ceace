package mpa_test

import (
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

// talk is an engine's queue pair whose peer answers each Write by a Write.
type talk struct {
	*testing.T
	w        *enginetest.World
	p        *peer
	q        *enginetest.QP
	src, dst *enginetest.Region
	begun    int // Writes posted
}

func newTalk(t *testing.T) *talk {
	w := world(t, enginetest.Options{})
	p, q, _ := connected(w, request(), enginetest.Param(4, ""))
	c := talk{T: t, w: w, p: p, q: q, src: q.Client.Register(64, rw), dst: q.Client.Register(64, rw)}
	c.answer() // ends the head start
	return &c
}

// ask posts and sends Writes of 8 bytes.
func (c *talk) ask(n int) {
	c.Helper()
	for range n {
		c.begun++
		c.q.Post(abi.SQE{WRID: uint64(c.begun), Opcode: abi.WRRDMAWrite, Flags: abi.SendSignaled, RKey: 7}, c.src.SGE(0, 8))
	}
	for range n {
		c.p.segment()
	}
}

func (c *talk) answer() {
	c.Helper()
	b := make([]byte, wire.TaggedLen+8)
	d := wire.DDP{Tagged: true, Last: true, Op: wire.OpWrite, STag: wire.STag(c.dst.STag), TO: c.dst.Base()}
	d.Put(b)
	c.p.send(c.p.fpdu(b))
}

// completed checks that n Writes have completed successfully since the last call.
func (c *talk) completed(n int, when string) {
	c.Helper()
	got := c.q.Send.Poll()
	for _, e := range got {
		if e.Status != abi.StatusSuccess {
			c.Errorf("%s: request %d ended with status %d", when, e.WRID, e.Status)
		}
	}
	if len(got) != n {
		c.Fatalf("%s: %d completions, expected %d", when, len(got), n)
	}
}

// pingPong lets the peer answer until completions wait for its answers.
func (c *talk) pingPong() {
	c.Helper()
	for range 5 {
		c.ask(1)
		c.answer()
	}
	c.completed(5, "ping-pong has begun")
}

// TestCompletionsWaitForAnswers: in ping-pong a send completes together with the peer's answer, unless the
// answer takes long or another send is outstanding; the end of the connection never makes it fail.
func TestCompletionsWaitForAnswers(t *testing.T) {
	t.Run("no ping-pong", func(t *testing.T) {
		c := newTalk(t)
		for range 8 {
			c.ask(1)
			c.completed(1, "sent")
			c.w.Pass(time.Millisecond)
			c.answer()
		}
	})
	t.Run("answered", func(t *testing.T) {
		c := newTalk(t)
		c.pingPong()
		for range 3 {
			c.ask(1)
			c.w.Pass(20 * time.Microsecond)
			c.completed(0, "sent")
			c.answer()
			c.completed(1, "answered")
		}
	})
	t.Run("not answered", func(t *testing.T) {
		c := newTalk(t)
		c.pingPong()
		for range 2 {
			c.ask(1)
			c.completed(0, "sent")
			c.w.Pass(300 * time.Microsecond)
			c.completed(1, "not answered")
			c.answer()
		}
		c.ask(1)
		c.completed(1, "ping-pong is over")
	})
	t.Run("several", func(t *testing.T) {
		c := newTalk(t)
		c.pingPong()
		c.ask(2)
		c.completed(2, "sent")
	})
	t.Run("one more", func(t *testing.T) {
		c := newTalk(t)
		c.pingPong()
		c.ask(1)
		c.completed(0, "sent")
		c.ask(1)
		c.completed(2, "both sent")
	})
	t.Run("disconnected", func(t *testing.T) {
		c := newTalk(t)
		c.pingPong()
		c.ask(1)
		c.completed(0, "sent")
		_ = c.p.conn.Close()
		c.w.Pass(50 * time.Microsecond)
		c.completed(1, "the peer is gone")
	})
}
