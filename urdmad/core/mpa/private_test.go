package mpa_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/wire"
)

// privates returns private data of every length that fits a frame of the revision; without URDMA_LONG only of few
// lengths.
func privates(revision uint8) (all [][]byte) {
	most := wire.MaxMPAPrivate
	if revision == 2 {
		most -= 4 // for IRD and ORD
	}
	for n := range most + 1 {
		if os.Getenv("URDMA_LONG") == "" && n > 4 && n < most-4 && n%101 != 0 {
			continue
		}
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(n + i)
		}
		all = append(all, b)
	}
	return all
}

// TestPrivateData: private data of every length arrives completely, in both directions, in requests, accepts and
// rejects, with both revisions.
func TestPrivateData(t *testing.T) {
	for _, revision := range []uint8{1, 2} {
		for _, reject := range []bool{false, true} {
			x := &exchange{revision: revision, reject: reject}
			name := fmt.Sprintf("%s, revision %d", map[bool]string{false: "accept", true: "reject"}[reject], revision)
			for who, try := range map[string]func([]byte){"ours": x.answers, "a peer's": x.asks} {
				t.Run(who+" "+name, func(t *testing.T) {
					x.w = world(t, enginetest.Options{NoCapture: true})
					x.c = x.w.A.NewClient()
					x.send, x.recv = x.c.NewCQ(16), x.c.NewCQ(16)
					x.c.Listen(port, 8)
					x.l = listening(x.w)
					for _, b := range privates(revision) {
						try(b)
					}
				})
			}
		}
	}
}

// exchange is a program of host A that connects with a peer again and again.
type exchange struct {
	w          *enginetest.World
	c          *enginetest.Client
	send, recv *enginetest.CQ
	l          listener
	revision   uint8
	reject     bool
}

func (x *exchange) qp() *enginetest.QP { return x.c.NewQPOn(&enginetest.DefaultCap, x.send, x.recv) }

func (x *exchange) equal(what string, got, want []byte) {
	x.w.T.Helper()
	if !bytes.Equal(got, want) {
		x.w.T.Fatalf("%s has private data of %d bytes, expected %d: %x", what, len(got), len(want), got)
	}
}

// answers lets the program answer with the private data that it got.
func (x *exchange) answers(b []byte) {
	x.w.T.Helper()
	p := dial(x.w)
	p.frame(&wire.MPA{Revision: x.revision, Enhanced: x.revision == 2, IRD: 4, ORD: 4, PrivateData: b})
	ev := x.c.Event(cm.EventConnectRequest, time.Minute)
	x.equal("the request", ev.Param.PrivateData, b)
	if x.reject {
		x.w.A.Do(func() { _ = x.w.A.CM.Reject(ev.Child, b) })
		m := p.reply(true)
		x.equal("the reject", m.PrivateData, b)
	} else {
		q := x.qp()
		x.c.Accept(ev.Child, q, enginetest.Param(4, string(b)))
		m := p.reply(true)
		x.equal("the accept", m.PrivateData, b)
		x.c.Event(cm.EventEstablished, time.Minute)
		q.Destroy()
		x.c.Event(cm.EventDisconnected, time.Minute)
	}
	p.reset()
	x.c.Destroy(ev.Child)
}

// asks lets the program send a request with private data, and a peer answer with it.
func (x *exchange) asks(b []byte) {
	x.w.T.Helper()
	id, q := x.c.Resolve(x.w.B.Addr, port), x.qp()
	x.c.Connect(id, q, enginetest.Param(4, string(b[:min(len(b), 508)])))
	p := x.l.accept()
	if x.revision == 1 {
		p.reply(false)
		p.reset()
		p = x.l.accept()
	}
	m := p.reply(false)
	x.equal("the request", m.PrivateData, b[:min(len(b), 508)])
	p.frame(&wire.MPA{Reply: true, Reject: x.reject, Revision: x.revision, Enhanced: x.revision == 2, IRD: 4, ORD: 4,
		PrivateData: b})
	want := cm.EventEstablished
	if x.reject {
		want = cm.EventRejected
	}
	x.equal("the answer", x.c.Event(want, time.Minute).Param.PrivateData, b)
	q.Destroy()
	if !x.reject {
		x.c.Event(cm.EventDisconnected, time.Minute)
	}
	p.reset()
	x.c.Destroy(id)
}
