package mpa_test

import (
	"testing"
	"time"

	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/handshake"
	"urdma/wire"
)

// TestOlderRevision: a peer that does not accept revision 2 is asked again with revision 1, once.
func TestOlderRevision(t *testing.T) {
	older := wire.MPA{Reply: true, Reject: true, Revision: 1}
	for name, refuse := range map[string]func(p *peer){
		"a reply of revision 1": func(p *peer) { p.frame(&older) },
		"the end of the stream": func(p *peer) { _ = p.conn.Close() },
		"reset":                 (*peer).reset,
	} {
		for _, takes := range []bool{true, false} {
			t.Run(map[bool]string{true: name, false: name + ", twice"}[takes], func(t *testing.T) {
				w := world(t, enginetest.Options{})
				l := listening(w)
				c := w.A.NewClient()
				id := c.Resolve(w.B.Addr, port)
				c.Connect(id, c.NewQP(nil), enginetest.Param(4, "hello"))
				p := l.accept()
				if m := p.reply(false); m.Revision != 2 || string(m.PrivateData) != "hello" {
					t.Fatalf("first request %+v", m)
				}
				refuse(p)
				p = l.accept()
				if m := p.reply(false); m.Revision != 1 || m.Enhanced || m.Extension || m.Long || string(m.PrivateData) != "hello" {
					t.Fatalf("second request %+v", m)
				}
				if !takes {
					refuse(p)
					c.Event(cm.EventRejected, time.Minute)
					w.Pass(time.Second)
					_ = l.SetDeadline(time.Now().Add(time.Millisecond))
					if _, err := l.Accept(); err == nil {
						t.Error("asked three times")
					}
					return
				}
				p.frame(&wire.MPA{Reply: true, Revision: 1, PrivateData: []byte("welcome")})
				if ev := c.Event(cm.EventEstablished, time.Minute); string(ev.Param.PrivateData) != "welcome" {
					t.Errorf("%+v", ev.Param)
				}
			})
		}
	}
}

// TestRejectIsFinal: a request that the peer's program rejected is not repeated.
func TestRejectIsFinal(t *testing.T) {
	for name, m := range map[string]wire.MPA{
		"revision 2":               {Revision: 2, Enhanced: true},
		"revision 2, not enhanced": {Revision: 2},
		"private data":             {Revision: 1, PrivateData: []byte("no")},
	} {
		t.Run(name, func(t *testing.T) {
			w := world(t, enginetest.Options{})
			l := listening(w)
			c := w.A.NewClient()
			c.Connect(c.Resolve(w.B.Addr, port), c.NewQP(nil), enginetest.Param(4, ""))
			p := l.accept()
			p.reply(false)
			m.Reply, m.Reject = true, true
			p.frame(&m)
			if ev := c.Event(cm.EventRejected, time.Minute); string(ev.Param.PrivateData) != string(m.PrivateData) ||
				ev.Reason != handshake.ByConsumer {
				t.Errorf("%+v", ev.Param)
			}
		})
	}
}

// TestSlowProgram: a program may take its time to answer as long as its host is there, the peer's and ours.
func TestSlowProgram(t *testing.T) {
	t.Run("the peer's", func(t *testing.T) {
		w := world(t, enginetest.Options{})
		l := listening(w)
		c := w.A.NewClient()
		c.Connect(c.Resolve(w.B.Addr, port), c.NewQP(nil), enginetest.Param(4, ""))
		p := l.accept()
		p.reply(false)
		w.Pass(time.Minute)
		c.NoEvent()
		p.frame(&wire.MPA{Reply: true, Revision: 2, Enhanced: true, IRD: 4, ORD: 4})
		c.Event(cm.EventEstablished, time.Minute)
	})
	t.Run("a urdmad's", func(t *testing.T) {
		w := world(t, enginetest.Options{})
		a, b := w.A.NewClient(), w.B.NewClient()
		b.Listen(port, 8)
		a.Connect(a.Resolve(w.B.Addr, port), a.NewQP(nil), enginetest.Param(4, ""))
		child := b.Event(cm.EventConnectRequest, time.Minute).Child
		w.Pass(time.Minute)
		a.NoEvent()
		b.Accept(child, b.NewQP(nil), enginetest.Param(4, ""))
		a.Event(cm.EventEstablished, time.Minute)
		b.Event(cm.EventEstablished, time.Minute)
	})
}
