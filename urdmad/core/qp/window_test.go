package qp_test

import (
	"bytes"
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
	"urdma/wire"
)

// bindable are the rights of a region to which windows may be bound, and which
// peers cannot reach by itself.
const bindable = abi.AccessLocalWrite | abi.AccessMWBind

// windowScene is two connected queue pairs and a window of b's, bound to the 1000
// bytes from 100 on of a region.
type windowScene struct {
	w      *enginetest.World
	a, b   *enginetest.QP
	mine   *enginetest.Region // of a
	region *enginetest.Region // of b
	window *enginetest.Window
}

const windowAt, windowLen = 100, 1000

func newWindowScene(t *testing.T, local, type2 bool,
	register func(*enginetest.Client, int, uint32) *enginetest.Region) *windowScene {
	w := enginetest.New(t, enginetest.Options{Seed: 90})
	a, b := w.Pair(local, nil)
	s := &windowScene{w: w, a: a, b: b, mine: a.Client.Register(8192, enginetest.ReadWrite),
		region: register(b.Client, 8192, bindable)}
	for i := range s.mine.Bytes {
		s.mine.Bytes[i] = 0xee
	}
	s.window = b.Client.NewWindow(type2)
	s.bind(t, windowAt, windowLen, enginetest.ReadWrite)
	return s
}

func (s *windowScene) bind(t *testing.T, off, n int, access uint32) {
	t.Helper()
	s.b.Post(enginetest.Bind(1, s.window, s.region, off, n, access))
	enginetest.Expect(t, "bind", s.b.Send.Completions(1), []uint64{1}, 0)
}

// through names a place in the window, for work requests of a.
func (s *windowScene) through(w abi.SQE, off int) abi.SQE {
	w.RKey, w.RemoteAddr = uint32(s.window.STag()), s.region.Base()+uint64(off)
	return w
}

// TestWindows: both types, over each kind of memory: what is in the window can be
// written and read, and afterwards not what is outside, nor by another key.
func TestWindows(t *testing.T) {
	for _, type2 := range []bool{false, true} {
		for _, c := range []struct {
			name string
			code wire.TermCode
			post func(s *windowScene) abi.SQE
		}{
			{"before", wire.TermTaggedBounds, func(s *windowScene) abi.SQE {
				return s.through(enginetest.Write(5, s.region, 0),
					windowAt-1)
			}},
			{"behind", wire.TermTaggedBounds, func(s *windowScene) abi.SQE {
				return s.through(enginetest.Write(5, s.region, 0), windowAt+windowLen-9)
			}},
			{"old key", wire.TermTaggedSTag, func(s *windowScene) abi.SQE {
				w := s.through(enginetest.Write(5, s.region, 0), windowAt)
				w.RKey = w.RKey&^0xff | (w.RKey-1)&0xff
				return w
			}},
			{"region", wire.TermProtectionAccess,
				func(s *windowScene) abi.SQE { return enginetest.Write(5, s.region, windowAt) }},
			{"no right", wire.TermProtectionAccess, func(s *windowScene) abi.SQE {
				return s.through(enginetest.FetchAdd(5, s.region, 0, 1), windowAt+4)
			}},
		} {
			t.Run(c.name, func(t *testing.T) {
				enginetest.Memories(t, func(t *testing.T, local bool,
					register func(*enginetest.Client, int, uint32) *enginetest.Region) {
					s := newWindowScene(t, local, type2, register)
					s.a.Post(s.through(enginetest.Write(2, s.region, 0), windowAt), s.mine.SGE(0, windowLen))
					s.a.Post(s.through(enginetest.Read(3, s.region, 0), windowAt), s.mine.SGE(4000, windowLen))
					enginetest.Expect(t, "in the window", s.a.Send.Completions(2), []uint64{2, 3}, 0, 0)
					if n := bytes.Count(s.region.Bytes, []byte{0xee}); n != windowLen || s.region.Bytes[windowAt] != 0xee {
						t.Errorf("%d bytes were written", n)
					}
					s.a.Post(c.post(s), s.mine.SGE(0, 10))
					got := s.a.Send.Completions(1)
					if got[0].Status != abi.StatusRemAccessErr || got[0].VendorErr != uint32(c.code) {
						t.Errorf("%+v, expected a remote access error for %v", got[0], c.code)
					}
				})
			})
		}
	}
}

// TestBindErrors: what InfiniBand forbids fails as a memory management error and
// leaves the window as it was.
func TestBindErrors(t *testing.T) {
	bind := func(s *windowScene) abi.SQE {
		return enginetest.Bind(7, s.window, s.region, 0, 100, enginetest.ReadWrite)
	}
	for _, c := range []struct {
		name  string
		type2 bool
		make  func(s *windowScene) abi.SQE
	}{
		{"type 2 is bound already", true, bind},
		{"type 2 to nothing", true, func(s *windowScene) abi.SQE {
			return enginetest.Bind(7, s.window, s.region, 0, 0, enginetest.ReadWrite)
		}},
		{"longer than the region", false, func(s *windowScene) abi.SQE {
			return enginetest.Bind(7, s.window, s.region, 1, 8192, enginetest.ReadWrite)
		}},
		{"wraps", false, func(s *windowScene) abi.SQE {
			w := bind(s)
			w.CompareAdd = ^uint64(0)
			return w
		}},
		{"region without the right", false, func(s *windowScene) abi.SQE {
			return enginetest.Bind(7, s.window, s.b.Client.Register(4096, enginetest.ReadWrite), 0, 100, enginetest.ReadWrite)
		}},
		{"region that may not be written", false, func(s *windowScene) abi.SQE {
			return enginetest.Bind(7, s.window, s.b.Client.Register(4096, abi.AccessMWBind), 0, 100, abi.AccessRemoteWrite)
		}},
		{"another client's region", false, func(s *windowScene) abi.SQE {
			return enginetest.Bind(7, s.window, s.b.Client.Host.NewClient().Register(4096, bindable), 0, 100,
				enginetest.ReadWrite)
		}},
		{"another client's window", false, func(s *windowScene) abi.SQE {
			return enginetest.Bind(7, s.b.Client.Host.NewClient().NewWindow(false), s.region, 0, 100, enginetest.ReadWrite)
		}},
		{"a window in a window", false, func(s *windowScene) abi.SQE {
			w := bind(s)
			w.ImmOrSTag = uint32(s.window.STag())
			return w
		}},
		{"a region as window", false, func(s *windowScene) abi.SQE {
			w := bind(s)
			w.RKey = uint32(s.region.STag)
			return w
		}},
		{"no such window", false, func(s *windowScene) abi.SQE {
			w := bind(s)
			w.RKey ^= 1 << 20
			return w
		}},
		{"invalidate type 1", false, func(s *windowScene) abi.SQE {
			return enginetest.Invalidate(7, abi.WRLocalInv,
				s.window.STag())
		}},
		{"invalidate a region", false, func(s *windowScene) abi.SQE {
			return enginetest.Invalidate(7, abi.WRLocalInv,
				s.region.STag)
		}},
		{"invalidate the wrong key", true, func(s *windowScene) abi.SQE {
			return enginetest.Invalidate(7, abi.WRLocalInv, s.window.STag()^1)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newWindowScene(t, true, c.type2, (*enginetest.Client).Register)
			before := s.window.Bound()
			s.b.Post(c.make(s))
			s.b.PostRecv(8)
			enginetest.Expect(t, "refused", s.b.Send.Completions(1), []uint64{7}, abi.StatusMWBindErr)
			enginetest.Expect(t, "receive", s.b.Recv.Completions(1), []uint64{8}, abi.StatusWRFlushErr)
			if s.b.Q.State() != abi.QPSErr || s.window.Bound() != before || s.region.Windows() != 1 {
				t.Errorf("state %d, bound to %v", s.b.Q.State(), s.window.Bound())
			}
		})
	}
}

// TestWindowOfOneQueuePair: a window of type 2 is for the peer of the queue pair
// that bound it, one of type 1 for all of the protection domain.
func TestWindowOfOneQueuePair(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		for _, type2 := range []bool{false, true} {
			s := newWindowScene(t, local, type2, (*enginetest.Client).Register)
			other, otherB := s.a.Client.NewQP(nil), s.b.Client.NewQP(nil)
			enginetest.Join(other, otherB, 4)
			other.Post(s.through(enginetest.Write(2, s.region, 0), windowAt), s.mine.SGE(0, 10))
			got := other.Send.Completions(1)
			if want := map[bool]uint32{true: uint32(wire.TermTaggedStream)}[type2]; got[0].VendorErr != want {
				t.Errorf("type 2 %v: %+v, expected the cause %#x", type2, got[0], want)
			}
		}
	})
}

// TestZeroBased: an address in the window counts from its beginning.
func TestZeroBased(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		s := newWindowScene(t, local, false, (*enginetest.Client).Register)
		s.bind(t, windowAt, windowLen, enginetest.ReadWrite|abi.AccessZeroBased)
		w := s.through(enginetest.Write(2, s.region, 0), 0)
		w.RemoteAddr = 7
		s.a.Post(w, s.mine.SGE(0, 1))
		enginetest.Expect(t, "write", s.a.Send.Completions(1), []uint64{2}, 0)
		if at := bytes.IndexByte(s.region.Bytes, 0xee); at != windowAt+7 {
			t.Errorf("written at %d", at)
		}
	})
}

// TestUnbind: each way of unbinding a window, after which its STag names nothing
// and its region can be deregistered.
func TestUnbind(t *testing.T) {
	for name, unbind := range map[string]func(t *testing.T, s *windowScene){
		"to nothing": func(t *testing.T, s *windowScene) { s.bind(t, 0, 0, 0) },
		"local": func(t *testing.T, s *windowScene) {
			s.b.Post(enginetest.Invalidate(3, abi.WRLocalInv, s.window.STag()))
			enginetest.Expect(t, "local invalidate", s.b.Send.Completions(1), []uint64{3}, 0)
		},
		"remote": func(t *testing.T, s *windowScene) {
			s.b.PostRecv(4)
			s.a.Post(enginetest.Invalidate(3, abi.WRSendWithInv, s.window.STag()))
			enginetest.Expect(t, "send", s.a.Send.Completions(1), []uint64{3}, 0)
			got := s.b.Recv.Completions(1)
			if got[0].WCFlags != abi.WCWithInv || got[0].ImmOrSTag != uint32(s.window.STag()) {
				t.Errorf("completion %+v", got[0])
			}
		},
		"dealloc": func(t *testing.T, s *windowScene) { s.window.Remove() },
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Memories(t, func(t *testing.T, local bool,
				register func(*enginetest.Client, int, uint32) *enginetest.Region) {
				s := newWindowScene(t, local, name == "local" || name == "remote", register)
				stag := s.window.STag()
				unbind(t, s)
				if s.window.Bound() != nil || s.region.Windows() != 0 {
					t.Errorf("bound to %v, the region counts %d", s.window.Bound(), s.region.Windows())
				}
				w := s.through(enginetest.Write(5, s.region, 0), windowAt)
				w.RKey = uint32(stag)
				s.a.Post(w, s.mine.SGE(0, 10))
				if got := s.a.Send.Completions(1); got[0].VendorErr != uint32(wire.TermTaggedSTag) {
					t.Errorf("%+v, expected that the STag names nothing", got[0])
				}
			})
		})
	}
}

// TestBindInItsTurn: binds stand in one line with other work: a Send behind one
// tells the peer of a window that is bound, a fence waits for Reads, and all of it
// waits for the connection only as far as it must.
func TestBindInItsTurn(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		s := newWindowScene(t, local, true, (*enginetest.Client).Register)
		theirs := s.a.Client.Register(1<<20, enginetest.ReadWrite)
		sink := s.b.Client.Register(1<<20, enginetest.ReadWrite)
		s.b.Post(enginetest.Read(2, theirs, 0), sink.SGE(0, 1<<20))
		fenced := enginetest.Invalidate(3, abi.WRLocalInv, s.window.STag())
		fenced.Flags |= abi.SendFence
		s.b.Post(fenced)
		s.w.Step()
		if s.window.Bound() == nil {
			t.Error("a fenced invalidation did not wait for the Read")
		}
		again := enginetest.Bind(4, s.window, s.region, 0, 10, enginetest.ReadWrite)
		s.b.Post(again)
		enginetest.Expect(t, "in order", s.b.Send.Completions(3), []uint64{2, 3, 4}, 0, 0, 0)
		if b := s.window.Bound(); b == nil || b.Length() != 10 || uint32(s.window.STag()) != again.RKey {
			t.Errorf("bound to %+v", b)
		}
	})
}

// TestWindowOracle: random traffic through windows that are unbound at random
// moments, each in one of its ways; once the program knows, nothing moves.
func TestWindowOracle(t *testing.T) {
	for seed := range enginetest.Seeds(20) {
		enginetest.Memories(t, func(t *testing.T, local bool,
			register func(*enginetest.Client, int, uint32) *enginetest.Region) {
			unbindAtRandom(t, local, 9500+seed, register)
		})
	}
}

func unbindAtRandom(t *testing.T, local bool, seed uint64,
	register func(*enginetest.Client, int, uint32) *enginetest.Region) {
	const size = 1 << 20
	const private = 0x77
	w := enginetest.New(t, enginetest.Options{Seed: seed})
	a, b := w.Pair(local, nil)
	s := &windowScene{w: w, a: a, b: b, mine: a.Client.Register(size, enginetest.ReadWrite),
		region: register(b.Client, size, bindable)}
	for i := range s.mine.Bytes {
		s.mine.Bytes[i] = 0xee
	}
	type2 := w.Rand.IntN(2) == 0
	s.window = b.Client.NewWindow(type2)
	s.bind(t, 0, size, enginetest.ReadWrite)
	for i := range 6 {
		op := []func(uint64, *enginetest.Region, int) abi.SQE{enginetest.Write, enginetest.Read}[w.Rand.IntN(2)]
		s.a.Post(s.through(op(uint64(100+i), s.region, 0), 0), s.mine.SGE(0, 1+w.Rand.IntN(size)))
	}
	for range w.Rand.IntN(300) {
		w.Step()
	}
	s.unbind(w.Rand.IntN(2) == 0, type2)
	w.Until("the window unbound", 10*time.Second, func() bool {
		w.Step()
		return len(b.Send.Poll())+len(b.Recv.Poll()) > 0
	})
	for i := range s.region.Bytes {
		s.region.Bytes[i] = private
	}
	w.Pass(200 * time.Millisecond)
	if n := bytes.Count(s.region.Bytes, []byte{private}); n != size {
		t.Errorf("seed %d: %d bytes were written through a window that is unbound", seed, size-n)
	}
	if n := bytes.Count(s.mine.Bytes, []byte{private}); n != 0 {
		t.Errorf("seed %d: %d bytes were read through a window that is unbound", seed, n)
	}
}

func (s *windowScene) unbind(remote, type2 bool) {
	switch {
	case !type2:
		s.b.Post(enginetest.Bind(1, s.window, s.region, 0, 0, 0))
	case remote:
		s.b.PostRecv(2)
		s.a.Post(enginetest.Invalidate(3, abi.WRSendWithInv, s.window.STag()))
	default:
		s.b.Post(enginetest.Invalidate(1, abi.WRLocalInv, s.window.STag()))
	}
}

// TestManyWindows: keys of one window never meet another's, and the table finds
// each of them.
func TestManyWindows(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 91})
	c := w.A.NewClient()
	seen := map[mem.STag]bool{}
	for range 3000 {
		win := c.NewWindow(true)
		if seen[win.STag()>>8] {
			t.Fatalf("index %#x twice", win.STag()>>8)
		}
		seen[win.STag()>>8] = true
		w.A.Do(func() {
			if got := w.A.Engine.QPs.Regions.Window(win.STag() ^ 0x55); got != win.Window {
				t.Fatalf("%#x finds %v", win.STag(), got)
			}
		})
	}
}
