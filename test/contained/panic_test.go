package contained_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"urdma/reason"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// TestMain runs the tests in a network namespace of their own.
func TestMain(m *testing.M) { os.Exit(enginetest.RunWithLo(m)) }

// bug is an observer that panics at the first event of a kind, in the midst of what the core does.
type bug struct {
	at  uint32
	met int
}

var errBug = errors.New("a bug")

func (b *bug) Event(e *abi.TraceEvent) {
	if e.Kind == b.at && b.met == 0 {
		b.met++
		panic(errBug)
	}
}

func (b *bug) Failed(*qp.QP, *qp.Failure) {}

// TestPanic: a panic while a client's queue pair is served, on each wire and at each side, ends that client and no
// other; its peer learns that the connection ended.
func TestPanic(t *testing.T) {
	wires := map[string]struct {
		opt   enginetest.Options
		local bool
	}{
		"trp":      {},
		"tcp":      {opt: enginetest.Options{TCP: true}},
		"roce":     {opt: enginetest.Options{RoCE: true}},
		"samehost": {local: true},
	}
	places := map[string]struct {
		kind   uint32
		passes bool // on the passive side
	}{
		"post": {abi.TraceSend, false}, "completion": {abi.TraceCompletion, false},
		"receive": {abi.TraceReceive, true}, "placed": {abi.TracePlaced, true},
	}
	for wire, v := range wires {
		for place, p := range places {
			t.Run(wire+"/"+place, func(t *testing.T) {
				if v.opt.TCP && !enginetest.HasLo() {
					t.Skip("no network namespace")
				}
				var log bytes.Buffer
				v.opt.Seed, v.opt.Panics, v.opt.Log = 5, 1, slog.NewTextHandler(&log, nil)
				w := enginetest.New(t, v.opt)
				a, b := w.Pair(v.local, nil)
				x, y := w.Pair(v.local, nil)
				source, sink := a.Client.Register(8192, enginetest.ReadWrite), b.Client.Register(8192, enginetest.ReadWrite)
				victim, peer := a, b
				if p.passes {
					victim, peer = b, a
				}
				bug := &bug{at: p.kind}
				c := victim.Client
				c.Host.Do(func() { c.E.Watch, c.E.WatchAll = bug, true })
				b.PostRecv(1, sink.SGE(0, 8192))
				a.Post(enginetest.Send(1), source.SGE(0, 8192))
				w.NewTraffic(x, y, enginetest.Load{Ops: 50, MaxSize: 20000}).Run(5 * time.Second)
				ended := c
				if v.local { // the sender's turn does it all
					ended, victim, peer = a.Client, a, b
				}
				if n := ended.Host.Engine.Stats.Panics; bug.met != 1 || n != 1 || len(ended.Faults) != 1 {
					t.Fatalf("%d panics, %d of them contained; the client was reported %d times", bug.met, n, len(ended.Faults))
				}
				if victim.Q.State() != abi.QPSErr || victim.Q.Why() != reason.Bug {
					t.Errorf("the queue pair is in state %d, because of %v", victim.Q.State(), victim.Q.Why())
				}
				for _, word := range []string{errBug.Error(), "panic_test.go", "please report"} {
					if !strings.Contains(log.String(), word) {
						t.Errorf("the log has no %q: %s", word, log.String())
					}
				}
				ended.Remove(victim)
				peer.Client.Event(abi.CMDisconnected, 10*time.Second)
				w.NewTraffic(x, y, enginetest.Load{Ops: 50, MaxSize: 20000}).Run(5 * time.Second)
			})
		}
	}
}

// TestPanicOfAll: a panic that does not concern one client alone is passed on, and so ends the process.
func TestPanicOfAll(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 5})
	w.Pair(false, nil)
	defer func() {
		if r := recover(); r != errBug { //nolint:errorlint // the very value
			t.Errorf("recovered %v", r)
		}
		if n := w.A.Engine.Stats.Panics; n != 0 {
			t.Errorf("%d panics were contained", n)
		}
	}()
	w.A.Engine.Do(func() { panic(errBug) })
	w.Turn()
	t.Error("the turn went on")
}
