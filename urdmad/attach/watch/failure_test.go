package watch

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"urdma/reason"
	"urdma/urdmad/attach/recorder"
	"urdma/urdmad/control"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// watchAll attaches package watch to clients, which log to a handler.
func watchAll(log slog.Handler, clients ...*enginetest.Client) {
	for _, c := range clients {
		w := &worker{Worker: &control.Worker{Engine: c.Host.Engine}}
		c.E.Watch = &client{watch: &Watch{s: &control.Server{Log: slog.New(log)}}, x: sessionOf(0, 0), w: w}
	}
}

// reasons returns a client's recorded reasons, as number: text.
func reasons(c *enginetest.Client) (out []string) {
	events := watcherOf(&c.E.Client).recorder.Events(func(t clock.Time) int64 { return int64(t) })
	recorder.Sort(events)
	for _, e := range events {
		if e.Kind == abi.TraceReason {
			out = append(out, reason.Number(e.Code).String()+": "+e.Text)
		}
	}
	return out
}

// TestWhy: each mistake has its number in vendor_err, and the recorders of both ends have the cause once, in the
// API's words. The requester learns nothing about memory that it did not name, if the peer belongs to another user.
func TestWhy(t *testing.T) {
	remote := func(at int, w func(*enginetest.Region) abi.SQE) func(*testing.T, *whyScene) {
		return func(_ *testing.T, s *whyScene) {
			wr := w(s.theirs)
			wr.RemoteAddr += uint64(at)
			s.a.Post(wr, s.mine.SGE(0, 100))
		}
	}
	write := func(r *enginetest.Region) abi.SQE { return enginetest.Write(5, r, 0) }
	for _, c := range []struct {
		name   string
		access uint32
		do     func(*testing.T, *whyScene)
		want   reason.Number
		ours   string // in the requester's text
		theirs string // in the responder's, and in the requester's of the same user on the same host
	}{
		{"no right", abi.AccessLocalWrite | abi.AccessRemoteRead, remote(0, write), 0x0102,
			"IBV_ACCESS_LOCAL_WRITE|IBV_ACCESS_REMOTE_READ", "it has no IBV_ACCESS_REMOTE_WRITE"},
		{"bounds", enginetest.ReadWrite, remote(1000, write), 0x1101, "RDMA Write of 100 bytes", "not inside; region"},
		{"deregistered", enginetest.ReadWrite, func(t *testing.T, s *whyScene) {
			s.theirs.Deregister()
			remote(0, write)(t, s)
		}, 0x1100, "deregistered", "was deregistered"},
		{"key of nothing", enginetest.ReadWrite, func(_ *testing.T, s *whyScene) {
			wr := write(s.theirs)
			wr.RKey = 5
			s.a.Post(wr, s.mine.SGE(0, 100))
		}, 0x1100, "rkey 0x5", "this side refused its peer: a request for 100 bytes at"},
		{"Read", abi.AccessLocalWrite, remote(0, func(r *enginetest.Region) abi.SQE { return enginetest.Read(5, r, 0) }),
			0x0102, "IBV_ACCESS_LOCAL_WRITE", "it has no IBV_ACCESS_REMOTE_READ"},
		{"too long", enginetest.ReadWrite, func(_ *testing.T, s *whyScene) {
			s.b.PostRecv(9, s.theirs.SGE(0, 99))
			s.a.Post(enginetest.Send(5), s.mine.SGE(0, 100))
		}, 0x1205, "room for 99", "this side refused its peer: a message of 100 bytes or more met a receive (wr_id 0x9) with room for 99"},
		{"receive's key", enginetest.ReadWrite, func(_ *testing.T, s *whyScene) {
			sge := s.theirs.SGE(0, 200)
			sge.LKey = 6
			s.b.PostRecv(9, sge)
			s.a.Post(enginetest.Send(5), s.mine.SGE(0, 100))
		}, 0x1000, "receive", "the receive with wr_id 0x9 is wrong"},
		{"lkey of nothing", enginetest.ReadWrite, func(_ *testing.T, s *whyScene) {
			sge := s.mine.SGE(0, 100)
			sge.LKey = 7
			s.a.Post(enginetest.Send(5), sge)
		}, reason.LocalNoRegion, "with lkey 0x7; no region or window has the key 0x7", ""},
		{"read-only sink", enginetest.ReadWrite, func(_ *testing.T, s *whyScene) {
			s.a.Post(enginetest.Read(5, s.theirs, 0), s.a.Client.Register(100, abi.AccessRemoteRead).SGE(0, 100))
		}, reason.LocalNoRight, "with IBV_ACCESS_REMOTE_READ", ""},
		{"behind the region", enginetest.ReadWrite, func(_ *testing.T, s *whyScene) {
			s.a.Post(enginetest.Send(5), s.mine.SGE(4000, 97))
		}, reason.LocalBounds, "Element 0 of the list is 97 bytes", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			enginetest.Both(t, func(t *testing.T, local bool) {
				var log strings.Builder
				w := enginetest.New(t, enginetest.Options{Seed: 91})
				a, b := w.Pair(local, nil)
				watchAll(slog.NewTextHandler(&log, nil), a.Client, b.Client)
				a.Client.E.User, b.Client.E.User = "1000", "1001"
				s := &whyScene{a, b, a.Client.Register(4096, enginetest.ReadWrite), b.Client.Register(1000, c.access)}
				c.do(t, s)
				got := a.Send.Completions(1)
				if got[0].VendorErr != uint32(c.want) || a.Q.Why() != c.want {
					t.Errorf("vendor_err %#x, the queue pair's reason %v, expected %v", got[0].VendorErr, a.Q.Why(), c.want)
				}
				if !strings.Contains(log.String(), `msg="queue pair fails"`) ||
					!strings.Contains(log.String(), "reason="+c.want.String()) {
					t.Errorf("the log does not say why the queue pair fails:\n%s", log.String())
				}
				ours := reasons(a.Client)
				if len(ours) != 1 || !strings.HasPrefix(ours[0], c.want.String()) || !strings.Contains(ours[0], c.ours) {
					t.Errorf("the requester's recorder has %q, expected %v and %q", ours, c.want, c.ours)
				}
				if c.theirs == "" {
					return
				}
				w.Until("the responder fails", 1e9, func() bool { return b.Q.State() == abi.QPSErr })
				theirs := reasons(b.Client)
				if len(theirs) != 1 || !strings.Contains(theirs[0], c.theirs) {
					t.Errorf("the responder's recorder has %q, expected %q", theirs, c.theirs)
				}
				if strings.Contains(ours[0], c.theirs) {
					t.Errorf("the requester, of another user, was told %q", ours)
				}
			})
		})
	}
}

// whyScene is two connected queue pairs, and a region on each side.
type whyScene struct {
	a, b         *enginetest.QP
	mine, theirs *enginetest.Region
}

// TestWhyOfOwnUser: programs of one user on one urdmad learn of each other's memory.
func TestWhyOfOwnUser(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 92})
	a, b := w.Pair(true, nil)
	watchAll(slog.DiscardHandler, a.Client, b.Client)
	a.Client.E.User, b.Client.E.User = "1000", "1000"
	mine, theirs := a.Client.Register(100, enginetest.ReadWrite), b.Client.Register(100, abi.AccessLocalWrite)
	a.Post(enginetest.Write(5, theirs, 0), mine.SGE(0, 100))
	a.Send.Completions(1)
	if got := reasons(a.Client); len(got) != 1 || !strings.Contains(got[0], "The peer says: ") ||
		!strings.Contains(got[0], "it has no IBV_ACCESS_REMOTE_WRITE; region") {
		t.Errorf("%q", got)
	}
}

// TestWhyOfOthersMemory: a program that guesses the key of another client's memory, or whose peer guesses it, learns
// no more than about a key of no region.
func TestWhyOfOthersMemory(t *testing.T) {
	for _, gone := range []bool{false, true} {
		for name, post := range map[string]func(a, b *enginetest.QP, secret, mine *enginetest.Region){
			"Read": func(a, _ *enginetest.QP, secret, mine *enginetest.Region) {
				a.Post(enginetest.Read(5, secret, 0), mine.SGE(0, 100))
			},
			"lkey": func(a, _ *enginetest.QP, secret, mine *enginetest.Region) {
				a.Post(enginetest.Send(5), secret.SGE(0, 100))
			},
			"receive": func(a, b *enginetest.QP, secret, mine *enginetest.Region) {
				b.PostRecv(6, secret.SGE(0, 100))
				a.Post(enginetest.Send(5), mine.SGE(0, 100))
			},
		} {
			enginetest.Both(t, func(t *testing.T, local bool) {
				w := enginetest.New(t, enginetest.Options{Seed: 93})
				a, b := w.Pair(local, nil)
				watchAll(slog.DiscardHandler, a.Client, b.Client)
				host := b.Client.Host
				if name == "lkey" {
					host = a.Client.Host
				}
				secret := host.NewClient().Register(12288, enginetest.ReadWrite)
				if gone {
					host.Do(secret.Deregister)
				}
				post(a, b, secret, a.Client.Register(4096, enginetest.ReadWrite))
				a.Send.Completions(1)
				w.Pass(time.Millisecond)
				got := append(reasons(a.Client), reasons(b.Client)...)
				for _, text := range got {
					for _, told := range []string{"12288", "IBV_ACCESS", "deregistered", "protection domain", " s before"} {
						if strings.Contains(text, told) {
							t.Errorf("%s, deregistered %t: %q tells %q", name, gone, text, told)
						}
					}
				}
				if all := strings.Join(got, "\n"); !strings.Contains(all, "no region or window has the key") {
					t.Errorf("%s, deregistered %t: %q", name, gone, all)
				}
			})
		}
	}
}

// TestWhyOfTheOldest: if the lists of several sends are wrong, the reason is about the one that fails.
func TestWhyOfTheOldest(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 94})
	a, b := w.Pair(true, nil)
	watchAll(slog.DiscardHandler, a.Client, b.Client)
	mine := a.Client.Register(100, enginetest.ReadWrite)
	for _, key := range []uint32{7, 8} {
		sge := mine.SGE(0, 100)
		sge.LKey = key
		a.Post(enginetest.Send(5), sge)
	}
	a.Send.Completions(2)
	if got := reasons(a.Client); len(got) != 1 || !strings.Contains(got[0], "lkey 0x7;") {
		t.Errorf("%q, expected one that names lkey 0x7", got)
	}
}
