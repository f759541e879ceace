package control

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"urdma/dpdk/loopback"
	"urdma/inject"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/engine"
	"urdma/urdmad/core/events"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// breakable is a server with programs of two users, and who asks for faults.
type breakable struct {
	*Worker
	mine, theirs *Session
}

func newBreakable() *breakable {
	b := &breakable{Worker: &Worker{Engine: engine.New(engine.Config{}), Wake: func() {}, Borrow: func(fn func()) bool { fn(); return true }}}
	s := &Server{Workers: []*Worker{b.Worker}, Log: slog.New(slog.DiscardHandler), Devices: []Device{{Name: "urdma0", Of: "urdma0", Number: 1}}}
	b.Engine.AddPort(loopback.Open("urdma0", [6]byte{2, 0, 0, 0, 0, 1}, 1500, netip.Addr{}), netif.Address{Prefix: netip.MustParsePrefix("198.18.0.1/24")})
	add := func(uid, pid int) *Session {
		x := sessionOf(uid, pid)
		x.s, x.w, x.ready, x.client, x.objects = s, b.Worker, true, &engine.Client{}, map[uint32]Object{}
		b.attach(x)
		return x
	}
	b.mine, b.theirs = add(os.Getuid(), 100), add(os.Getuid()+1, 200)
	return b
}

// says has a session ask for faults.
func (b *breakable) says(x *Session, own bool, text string) error {
	statements, err := inject.Parse(text)
	if err != nil {
		return err
	}
	return x.script(statements, own).begin()
}

// sends has so many sends of a session taken, and returns the statuses that they fail with.
func (b *breakable) sends(x *Session, n int) (failed []uint32) {
	q := &qp.QP{Config: qp.Config{Client: &x.client.Client}, QPN: 0x7e}
	for range n {
		if f := x.client.Faults; f != nil {
			if status := f.Send(q, abi.WRSend, 8); status != 0 {
				failed = append(failed, status)
			}
		}
	}
	b.goesOn()
	return failed
}

// goesOn has timers run, and what waits for them.
func (b *breakable) goesOn() {
	b.Engine.Clock.Run(b.Engine.Clock.Now)
	b.mine.s.running.Wait()
}

// TestInjectOwners: who breaks whose.
func TestInjectOwners(t *testing.T) {
	const rule = "send status=FATAL_ERR count=all"
	for _, c := range []struct {
		name         string
		own          bool
		text         string
		admin        error
		mine, theirs int // failed sends of those two if an admin asks
		user         error
		byUser       int // failed sends of theirs if their user asks; mine never fail
	}{
		{name: "all", text: rule, mine: 2, theirs: 2, byUser: 2},
		{name: "own", own: true, text: rule, mine: 2, byUser: 2},
		{name: "pid", text: rule + " pid=200", theirs: 2, byUser: 2},
		{name: "another's pid", text: rule + " pid=100", mine: 2, user: syscall.ESRCH},
		{name: "nobody's pid", text: rule + " pid=300", admin: syscall.ESRCH, user: syscall.ESRCH},
		{name: "queue pair", text: rule + " qp=7f", admin: syscall.ENOENT, user: syscall.ENOENT},
		{name: "port", text: "port urdma0 GID_CHANGE", user: syscall.EPERM},
		{name: "link", text: "port urdma0 down", user: syscall.EPERM},
		{name: "own link", own: true, text: "port urdma0 down", admin: syscall.EPERM, user: syscall.EPERM},
		{name: "wire", text: "wire urdma0 loss=1%", admin: syscall.EOPNOTSUPP, user: syscall.EPERM},
		{name: "own wire", own: true, text: "wire urdma0 loss=1%", admin: syscall.EPERM, user: syscall.EPERM},
		{name: "no wire", text: "wire urdma1 loss=1%", admin: syscall.ENODEV, user: syscall.ENODEV},
		{name: "no port", text: "port urdma1 down", admin: syscall.ENODEV, user: syscall.ENODEV},
		{name: "device", text: "device urdma0"},
		{name: "object", text: "cq 5", admin: syscall.ENOENT, user: syscall.ENOENT},
		{name: "post", text: "call ibv_post_send errno=ENOMEM", admin: syscall.EOPNOTSUPP, user: syscall.EOPNOTSUPP},
		{name: "nothing is left of what is refused", text: rule + "; cq 5", admin: syscall.ENOENT, user: syscall.ENOENT},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBreakable()
			b.mine.Owner.Admin = true
			if err := b.says(b.mine, c.own, c.text); !errors.Is(err, c.admin) {
				t.Errorf("an admin: %v, expected %v", err, c.admin)
			}
			if mine, theirs := len(b.sends(b.mine, 2)), len(b.sends(b.theirs, 2)); mine != c.mine || theirs != c.theirs {
				t.Errorf("an admin broke %d and %d sends, expected %d and %d", mine, theirs, c.mine, c.theirs)
			}
			b = newBreakable()
			if err := b.says(b.theirs, c.own, c.text); !errors.Is(err, c.user) {
				t.Errorf("a user: %v, expected %v", err, c.user)
			}
			if mine, theirs := len(b.sends(b.mine, 2)), len(b.sends(b.theirs, 2)); mine != 0 || theirs != c.byUser {
				t.Errorf("a user broke %d sends of another's and %d of the own, expected 0 and %d", mine, theirs, c.byUser)
			}
		})
	}
}

// TestInjectTCPLink: what goes over the kernel's TCP is not said to be down while it goes on;
// programs may still be told so.
func TestInjectTCPLink(t *testing.T) {
	b := newBreakable()
	b.mine.Owner.Admin = true
	b.Engine.CarryOverTCP(0, nil, 0, false)
	for text, want := range map[string]error{"port urdma0 down": syscall.EOPNOTSUPP, "port urdma0 up": nil, "port urdma0 PORT_ERR": nil} {
		if err := b.says(b.mine, false, text); !errors.Is(err, want) {
			t.Errorf("%s: %v, expected %v", text, err, want)
		}
	}
}

// TestInjectEnds: a rule ends by its count, its time, its process's end and by hand, and
// then nobody is asked.
func TestInjectEnds(t *testing.T) {
	for _, c := range []struct {
		text string
		end  func(b *breakable)
	}{
		{"send status=FATAL_ERR count=2", func(*breakable) {}},
		{"send status=FATAL_ERR count=3 for=1s", func(b *breakable) {
			b.Engine.Clock.Now += clock.Time(2e9)
			b.goesOn()
		}},
		{"send status=FATAL_ERR count=all pid=100", func(b *breakable) { b.injected.gone(b.mine) }},
		{"send status=FATAL_ERR count=all", func(b *breakable) {
			if err := b.says(b.mine, false, "clear 1"); err != nil {
				t.Error(err)
			}
		}},
	} {
		b := newBreakable()
		b.mine.Owner.Admin = true
		if err := b.says(b.mine, false, c.text); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(b.sends(b.mine, 2)); got != "[19 19]" {
			t.Errorf("%q: %s", c.text, got)
		}
		c.end(b)
		if len(b.injected.rules) != 0 || len(b.injected.ended) != 1 || b.mine.client.Faults != nil {
			t.Errorf("%q: %d rules are left, %d ended", c.text, len(b.injected.rules), len(b.injected.ended))
		}
	}
	b := newBreakable()
	if err := b.says(b.mine, false, "clear 1"); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("the end of no rule: %v", err)
	}
}

// TestScenario: statements behind after and wait happen in their turn.
func TestScenario(t *testing.T) {
	b := newBreakable()
	if err := b.says(b.mine, true, "after send nth=3; send status=FATAL_ERR; wait 1s; send status=GENERAL_ERR"); err != nil {
		t.Fatal(err)
	}
	if got := b.sends(b.mine, 3); got != nil { // the third lets the next statement happen
		t.Errorf("before its time: %v", got)
	}
	if got := fmt.Sprint(b.sends(b.mine, 2)); got != "[19]" {
		t.Errorf("after three sends: %v", got)
	}
	b.Engine.Clock.Now += clock.Time(1e9)
	b.goesOn()
	if got := fmt.Sprint(b.sends(b.mine, 2)); got != "[21]" {
		t.Errorf("after another second: %v", got)
	}
}

// TestScenarioEnds: a scenario that waits is a rule like others: it is shown, and ends by hand
// and with its own process, and then the rest of it does not happen.
func TestScenarioEnds(t *testing.T) {
	for _, c := range []struct {
		name, waits string
		own         bool
		end         func(b *breakable)
	}{
		{"a time, by hand", "wait 1s", false, func(b *breakable) { _ = b.says(b.mine, false, "clear") }},
		{"a send, by hand", "after send nth=2", false, func(b *breakable) { _ = b.says(b.mine, false, "clear 1") }},
		{"a time, its process", "wait 1s", true, func(b *breakable) { b.injected.gone(b.mine) }},
		{"a send, its process", "after send nth=2", true, func(b *breakable) { b.injected.gone(b.mine) }},
	} {
		b := newBreakable()
		b.mine.Owner.Admin = true
		if err := b.says(b.mine, c.own, c.waits+"; send status=FATAL_ERR count=all"); err != nil {
			t.Fatal(err)
		}
		if len(b.injected.rules) != 1 || b.injected.rules[0].waits == nil {
			t.Errorf("%s: shown are %v", c.name, b.injected.rules)
		}
		c.end(b)
		b.sends(b.mine, 2)
		b.Engine.Clock.Now += clock.Time(2e9)
		b.goesOn()
		if failed := b.sends(b.mine, 2); failed != nil || len(b.injected.rules) != 0 {
			t.Errorf("%s: %v, and there are rules: %v", c.name, failed, b.injected.rules)
		}
		if next := b.Engine.Clock.Next(); next != clock.Never {
			t.Errorf("%s: a timer is left", c.name)
		}
	}
}

// TestInjectConcerns: whom no rule can meet is asked nothing, whatever others have asked for,
// before the client came and after.
func TestInjectConcerns(t *testing.T) {
	b := newBreakable()
	for _, text := range []string{"send status=FATAL_ERR count=all", "receive status=FATAL_ERR count=all pid=200", "call ibv_create_cq errno=ENOMEM", "wait 1h"} {
		if err := b.says(b.theirs, false, text); err != nil {
			t.Fatal(err)
		}
	}
	if b.theirs.client.Faults == nil || !b.theirs.faults.calls.Load() {
		t.Error("a user's own rules don't count")
	}
	late := sessionOf(b.theirs.Owner.UID, 201)
	late.s, late.w, late.client = b.theirs.s, b.Worker, &engine.Client{}
	b.attach(late)
	if got := len(b.sends(late, 2)); got != 2 {
		t.Errorf("%d sends of a client that came later fail, expected 2", got)
	}
	if b.mine.client.Faults != nil || b.mine.faults.calls.Load() {
		t.Error("another user's client is asked")
	}
}

// TestLateEvents: of the events that are kept back on purpose there are not more than so many,
// and none is lost or overtaken.
func TestLateEvents(t *testing.T) {
	b := newBreakable()
	if err := b.says(b.mine, true, "cm delay=1m count=all"); err != nil {
		t.Fatal(err)
	}
	ours, theirs, err := events.Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(theirs)
	c := &EventChannel{object: object{x: b.mine}, Socket: events.NewSocket(ours, nil)}
	sent := 0
	for ; sent < 3*maxLate; sent++ {
		e := &abi.CMEvent{Event: abi.CMAddrResolved, Status: int32(sent)}
		if !c.keptBack(e) {
			b.Engine.QPs.Events.Send(c.Socket, abi.Bytes(e))
		}
		if len(c.late) > maxLate {
			t.Fatalf("%d events are kept back", len(c.late))
		}
	}
	b.Engine.Clock.Now += clock.Time(61e9)
	buf := make([]byte, abi.Size[abi.CMEvent]())
	for i := range sent {
		for {
			n, _, err := unix.Recvfrom(theirs, buf, unix.MSG_DONTWAIT)
			if err == nil {
				if e, ok := abi.Decode[abi.CMEvent](buf[:n]); !ok || e.Status != int32(i) {
					t.Fatalf("event %d: %+v", i, e)
				}
				break
			}
			if b.Engine.Clock.Next() == clock.Never {
				t.Fatalf("event %d never comes", i)
			}
			b.Engine.Clock.Now += clock.Time(1e6)
			b.Engine.Clock.Run(b.Engine.Clock.Now)
		}
	}
	c.keptBack(&abi.CMEvent{Event: abi.CMAddrResolved})
	if c.forgetLate(); b.mine.late != 0 || b.Engine.Clock.Next() != clock.Never {
		t.Error("a channel that is gone leaves a timer")
	}
}

// TestInjectRoom: one user can't have rules, or scenarios that wait, without end.
func TestInjectRoom(t *testing.T) {
	for _, text := range []string{"send status=FATAL_ERR", "wait 24h; clear", "after send; clear"} {
		b := newBreakable()
		b.theirs.Owner.Admin = false
		for range maxUserInjected {
			if err := b.says(b.theirs, false, text); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.says(b.theirs, false, text); !errors.Is(err, syscall.EDQUOT) {
			t.Errorf("%s: one more than may be: %v", text, err)
		}
	}
}
