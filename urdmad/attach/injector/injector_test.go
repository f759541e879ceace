package injector

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"urdma/dpdk/loopback"
	"urdma/inject"
	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/engine"
	"urdma/urdmad/core/events"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// breakable is a worker with programs of two users, and a client that injects errors.
type breakable struct {
	*worker
	mine, theirs *client
	scripts
}

// scripts are the functions with which scripts continue when run is called: the test has one thread.
type scripts []func()

func (s *scripts) add(fn func()) { *s = append(*s, fn) }

func (s *scripts) run() {
	for len(*s) > 0 {
		fn := (*s)[0]
		*s = (*s)[1:]
		fn()
	}
}

// newWorker makes a worker that executes calls at once.
func newWorker() *control.Worker {
	e := engine.New(engine.Config{})
	e.AddPort(loopback.Open("urdma0", [6]byte{2, 0, 0, 0, 0, 1}, 1500, netip.Addr{}),
		netif.Address{Prefix: netip.MustParsePrefix("198.18.0.1/24")})
	return &control.Worker{Engine: e, Wake: func() {}, Borrow: func(fn func()) bool { fn(); return true }}
}

func newServer(workers ...*control.Worker) *control.Server {
	return &control.Server{Workers: workers, Log: slog.New(slog.DiscardHandler),
		Devices: []control.Device{{Name: "urdma0", Of: "urdma0", Number: 1}}}
}

func newBreakable() *breakable {
	w := newWorker()
	n := newInjector(newServer(w), Config{})
	b := &breakable{worker: n.workers[w]}
	n.run = b.scripts.add
	b.mine, b.theirs = b.comes(os.Getuid(), 100), b.comes(os.Getuid()+1, 200)
	return b
}

// comes adds a client.
func (w *worker) comes(uid, pid int) *client {
	x := &control.Session{}
	x.Owner.UID, x.Owner.PID = uid, pid
	c := &client{x: x, qp: &qp.Client{}}
	w.add(c)
	return c
}

// says lets a client inject errors.
func (b *breakable) says(c *client, own bool, text string) error {
	statements, err := inject.Parse(text)
	if err != nil {
		return err
	}
	only := c
	if !own {
		only = nil
	}
	return b.n.script(c.x.Owner.Identity(), only, statements).begin()
}

// sends carries out n sends of a client, and returns the statuses of those that fail.
func (b *breakable) sends(c *client, n int) (failed []uint32) {
	for range n {
		if c.qp.Interceptor != nil {
			if status := c.status(&passing{point: inject.Send, qpn: 0x7e, code: abi.WRSend}); status != 0 {
				failed = append(failed, status)
			}
		}
	}
	b.goesOn()
	return failed
}

// goesOn runs timers, and the scripts that wait for them.
func (b *breakable) goesOn() {
	b.Engine.Clock.Run(b.Engine.Clock.Now)
	b.scripts.run()
}

// TestInjectOwners: which user may inject errors into whose programs.
func TestInjectOwners(t *testing.T) {
	const rule = "send status=FATAL_ERR count=all"
	for _, c := range []struct {
		name         string
		own          bool
		text         string
		admin        error
		mine, theirs int // failed sends of those two if an administrator injects
		user         error
		byUser       int // failed sends of theirs if their user injects; mine never fail
	}{
		{name: "all", text: rule, mine: 2, theirs: 2, byUser: 2},
		{name: "own", own: true, text: rule, mine: 2, byUser: 2},
		{name: "pid", text: rule + " pid=200", theirs: 2, byUser: 2},
		{name: "another's pid", text: rule + " pid=100", mine: 2, user: syscall.ESRCH},
		{name: "nobody's pid", text: rule + " pid=300", admin: syscall.ESRCH, user: syscall.ESRCH},
		{name: "queue pair", text: rule + " qp=7f", admin: syscall.ENOENT, user: syscall.ENOENT},
		{name: "port", text: "port urdma0 GID_CHANGE", user: syscall.EPERM},
		{name: "link", text: "port urdma0 down", user: syscall.EPERM},
		{name: "own port", own: true, text: "port urdma0 GID_CHANGE"},
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
			b.mine.x.Owner.Admin = true
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

// TestInjectTCPLink: a link over the kernel's TCP is not reported as down while its data passes; programs may get the
// event all the same.
func TestInjectTCPLink(t *testing.T) {
	b := newBreakable()
	b.mine.x.Owner.Admin = true
	b.Engine.CarryOverTCP(0, nil, 0, false)
	for text, want := range map[string]error{
		"port urdma0 down": syscall.EOPNOTSUPP, "port urdma0 up": nil, "port urdma0 PORT_ERR": nil,
	} {
		if err := b.says(b.mine, false, text); !errors.Is(err, want) {
			t.Errorf("%s: %v, expected %v", text, err, want)
		}
	}
}

// TestInjectEnds: a rule ends by its count, its time, its process's end and by hand; then no client has an
// Interceptor.
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
		{"send status=FATAL_ERR count=all pid=100", func(b *breakable) { b.remove(b.mine) }},
		{"send status=FATAL_ERR count=all", func(b *breakable) {
			if err := b.says(b.mine, false, "clear 1"); err != nil {
				t.Error(err)
			}
		}},
	} {
		b := newBreakable()
		b.mine.x.Owner.Admin = true
		if err := b.says(b.mine, false, c.text); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(b.sends(b.mine, 2)); got != "[19 19]" {
			t.Errorf("%q: %s", c.text, got)
		}
		c.end(b)
		if len(b.rules) != 0 || len(b.ended) != 1 || b.mine.qp.Interceptor != nil {
			t.Errorf("%q: %d rules are left, %d ended", c.text, len(b.rules), len(b.ended))
		}
	}
	b := newBreakable()
	if err := b.says(b.mine, false, "clear 1"); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("the end of no rule: %v", err)
	}
}

// hitsOf returns how often a rule has hit, as a client is told.
func (b *breakable) hitsOf(c *client, own bool, number uint32) (uint64, error) {
	s := b.n.script(c.x.Owner.Identity(), c, []inject.Statement{{Verb: inject.Hits, Number: number}})
	if !own {
		s.own = nil
	}
	err := s.begin()
	return s.hits, err
}

// TestInjectHits: a client's own rule can be asked for its hits, and counts as a rule, until the client clears it;
// then nothing can. Other clients get no answer, other users none about any rule.
func TestInjectHits(t *testing.T) {
	b := newBreakable()
	if err := b.says(b.mine, true, "send status=FATAL_ERR nth=2"); err != nil {
		t.Fatal(err)
	}
	other := b.comes(os.Getuid(), 101)
	other.x.Owner.Admin = true
	for sent, want := range []uint64{0, 0, 1, 1} {
		if got, err := b.hitsOf(b.mine, true, 1); err != nil || got != want {
			t.Errorf("after %d sends: %d hits, %v, expected %d", sent, got, err, want)
		}
		b.sends(b.mine, 1)
	}
	if len(b.rules) != 1 || b.mine.qp.Interceptor != nil {
		t.Errorf("%d rules, and an Interceptor: %v", len(b.rules), b.mine.qp.Interceptor)
	}
	for _, c := range []struct {
		name   string
		client *client
		own    bool
		want   error
	}{
		{"an admin", other, false, nil},
		{"another client", other, true, syscall.ENOENT},
		{"another user", b.theirs, false, syscall.ENOENT},
	} {
		if _, err := b.hitsOf(c.client, c.own, 1); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, expected %v", c.name, err, c.want)
		}
	}
	if err := b.says(other, true, "clear 1"); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("another client clears it: %v", err)
	}
	if err := b.says(b.mine, true, "clear 1"); err != nil || len(b.rules) != 0 {
		t.Errorf("cleared: %v, %d rules", err, len(b.rules))
	}
	if err := b.says(b.mine, true, "clear 1"); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("cleared again: %v", err)
	}
}

// TestInjectPairEnds: a rule for a queue pair ends with it, so that the next one with its number is spared.
func TestInjectPairEnds(t *testing.T) {
	for _, own := range []bool{false, true} {
		b := newBreakable()
		b.mine.x.Owner.Admin = true
		q := &qp.QP{}
		q.QPN = 0x7e
		sends := inject.Rule{Point: inject.Send, Code: inject.AnyCode, QPN: 0x7e, Status: 19}
		s := b.n.script(b.mine.x.Owner.Identity(), nil, nil)
		i := &rule{Draw: inject.NewDraw(sends), number: 1, by: s.by, own: own}
		if own {
			i.client = b.mine
		}
		b.make(i)
		if got := fmt.Sprint(b.sends(b.mine, 1)); got != "[19]" {
			t.Errorf("own %v: %s", own, got)
		}
		b.n.gone(b.mine.x, q)
		if got := b.sends(b.mine, 1); got != nil {
			t.Errorf("own %v, for the next queue pair: %v", own, got)
		}
		if got, err := b.hitsOf(b.mine, own, 1); err != nil || got != 1 {
			t.Errorf("own %v: %d hits, %v", own, got, err)
		}
	}
}

// TestInjectPosts: a client gets the list of its rules for posts, of which there are only so many.
func TestInjectPosts(t *testing.T) {
	b := newBreakable()
	for n := range abi.InjectPosts {
		if err := b.says(b.mine, true, "call ibv_post_recv errno=ENOMEM nth=2"); err != nil {
			t.Fatalf("rule %d: %v", n+1, err)
		}
	}
	if err := b.says(b.mine, true, "call ibv_post_recv errno=ENOMEM"); !errors.Is(err, syscall.EDQUOT) {
		t.Errorf("one more: %v", err)
	}
	if err := b.says(b.mine, true, "clear 1"); err != nil {
		t.Fatal(err)
	}
	posts := b.mine.posts()
	if len(posts) != abi.InjectPosts-1 || posts[0] != (abi.PostFault{Number: 2, Call: 1, Error: 12, Nth: 2, Count: 1, Seed: 1}) {
		t.Errorf("%d: %+v", len(posts), posts)
	}
}

// TestScenario: statements after "after" and "wait" are executed in their turn.
func TestScenario(t *testing.T) {
	b := newBreakable()
	const text = "after send nth=3; send status=FATAL_ERR; wait 1s; send status=GENERAL_ERR"
	if err := b.says(b.mine, true, text); err != nil {
		t.Fatal(err)
	}
	if got := b.sends(b.mine, 3); got != nil { // the third send triggers the next statement
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

// TestScenarioEnds: a waiting scenario is treated like a rule: it is listed, and ends by hand and with its own
// process. Then the rest of it is not executed.
func TestScenarioEnds(t *testing.T) {
	for _, c := range []struct {
		name, waits string
		own         bool
		end         func(b *breakable)
	}{
		{"a time, by hand", "wait 1s", false, func(b *breakable) { _ = b.says(b.mine, false, "clear") }},
		{"a send, by hand", "after send nth=2", false, func(b *breakable) { _ = b.says(b.mine, false, "clear 1") }},
		{"a time, its process", "wait 1s", true, func(b *breakable) { b.remove(b.mine) }},
		{"a send, its process", "after send nth=2", true, func(b *breakable) { b.remove(b.mine) }},
	} {
		b := newBreakable()
		b.mine.x.Owner.Admin = true
		if err := b.says(b.mine, c.own, c.waits+"; send status=FATAL_ERR count=all"); err != nil {
			t.Fatal(err)
		}
		if len(b.rules) != 1 || b.rules[0].waits == nil {
			t.Errorf("%s: shown are %v", c.name, b.rules)
		}
		c.end(b)
		b.sends(b.mine, 2)
		b.Engine.Clock.Now += clock.Time(2e9)
		b.goesOn()
		if failed := b.sends(b.mine, 2); failed != nil || len(b.rules) != 0 {
			t.Errorf("%s: %v, and there are rules: %v", c.name, failed, b.rules)
		}
		if next := b.Engine.Clock.Next(); next != clock.Never {
			t.Errorf("%s: a timer is left", c.name)
		}
	}
}

// TestScenarioClearedAsItGoesOn: nothing of a scenario happens after a clear, though its wait was over before.
func TestScenarioClearedAsItGoesOn(t *testing.T) {
	for _, waits := range []string{"wait 1s", "after send"} {
		b := newBreakable()
		b.mine.x.Owner.Admin = true
		if err := b.says(b.mine, false, waits+"; send status=FATAL_ERR count=all"); err != nil {
			t.Fatal(err)
		}
		if c := b.mine; c.qp.Interceptor != nil {
			c.status(&passing{point: inject.Send, qpn: 0x7e, code: abi.WRSend})
		}
		b.Engine.Clock.Now += clock.Time(2e9)
		b.Engine.Clock.Run(b.Engine.Clock.Now)
		if len(b.scripts) != 1 {
			t.Fatalf("%s: %d scripts go on, expected 1", waits, len(b.scripts))
		}
		if err := b.says(b.mine, false, "clear"); err != nil {
			t.Fatal(err)
		}
		b.scripts.run()
		if failed := b.sends(b.mine, 2); failed != nil || len(b.rules) != 0 {
			t.Errorf("%s: %v, and there are rules: %v", waits, failed, b.rules)
		}
	}
}

// TestInjectConcerns: a client to which no rule can apply has no Interceptor, whether the rules came before the
// client or after.
func TestInjectConcerns(t *testing.T) {
	b := newBreakable()
	for _, text := range []string{
		"send status=FATAL_ERR count=all", "receive status=FATAL_ERR count=all pid=200",
		"call ibv_create_cq errno=ENOMEM", "wait 1h",
	} {
		if err := b.says(b.theirs, false, text); err != nil {
			t.Fatal(err)
		}
	}
	if b.theirs.qp.Interceptor == nil || !b.theirs.calls.Load() {
		t.Error("a user's own rules don't count")
	}
	late := b.comes(b.theirs.x.Owner.UID, 201)
	if got := len(b.sends(late, 2)); got != 2 {
		t.Errorf("%d sends of a client that came later fail, expected 2", got)
	}
	if b.mine.qp.Interceptor != nil || b.mine.calls.Load() {
		t.Error("another user's client is asked")
	}
}

// TestLateEvents: the number of delayed events is limited, and none is lost or overtaken.
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
	ch := events.NewSocket(ours, nil)
	sent := 0
	for ; sent < 3*maxLate; sent++ {
		e := &abi.CMEvent{Event: abi.CMAddrResolved, Status: int32(sent)}
		if !b.mine.keepBack(ch, e) {
			b.Engine.QPs.Events.Send(ch, abi.Bytes(e))
		}
		if b.mine.count > maxLate {
			t.Fatalf("%d events are kept back", b.mine.count)
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
	b.mine.keepBack(ch, &abi.CMEvent{Event: abi.CMAddrResolved})
	if b.mine.forget(ch); b.mine.count != 0 || b.Engine.Clock.Next() != clock.Never {
		t.Error("a channel that is gone leaves a timer")
	}
}

// TestInjectRoom: one user can't have any number of rules, or of waiting scenarios.
func TestInjectRoom(t *testing.T) {
	for _, text := range []string{"send status=FATAL_ERR", "wait 24h; clear", "after send; clear"} {
		b := newBreakable()
		b.theirs.x.Owner.Admin = false
		for range maxUserRules {
			if err := b.says(b.theirs, false, text); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.says(b.theirs, false, text); !errors.Is(err, syscall.EDQUOT) {
			t.Errorf("%s: one more than may be: %v", text, err)
		}
	}
}

// TestScenarioOfAnyWorker: a scenario triggered by a client of either worker takes the port down, and up again, on
// both workers, once.
func TestScenarioOfAnyWorker(t *testing.T) {
	for i := range 2 {
		var changes []string
		var waiting scripts
		first, second := newWorker(), newWorker()
		n := newInjector(newServer(first, second), Config{})
		n.run = waiting.add
		workers := []*worker{n.workers[first], n.workers[second]}
		n.CutLink = func(_ int, down bool) {
			changes = append(changes, fmt.Sprint(down))
			for _, w := range workers {
				if _, is := w.cut[cut{}]; is != down {
					t.Errorf("the port is told to be down: %v, and is at a worker: %v", down, is)
				}
			}
		}
		clients := []*client{workers[0].comes(os.Getuid(), 100), workers[1].comes(os.Getuid(), 101)}
		statements, err := inject.Parse("after call ibv_create_cq count=1; port urdma0 down; wait 100ms; port urdma0 up")
		if err != nil {
			t.Fatal(err)
		}
		if err := n.script(&account.Owner{UID: os.Getuid(), Admin: true}, nil, statements).begin(); err != nil {
			t.Fatal(err)
		}
		for _, c := range []*client{clients[i], clients[1-i]} { // the second finds nothing left to do
			if err := c.call(abi.CreateCQ); err != nil {
				t.Error(err)
			}
			waiting.run()
		}
		for _, w := range workers {
			c := &w.Engine.Clock
			c.Now += clock.Time(1e9)
			c.Run(c.Now)
			waiting.run()
		}
		if !slices.Equal(changes, []string{"true", "false"}) {
			t.Errorf("client %d: the port is told to be down: %v, expected true and false", i, changes)
		}
	}
}
