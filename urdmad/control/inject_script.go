package control

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"urdma/inject"
	"urdma/urdmad/clock"
	"urdma/urdmad/impair"
	"urdma/urdmad/qp"
	"urdma/verbs/abi"
)

// This file is urdma inject: who may have what go wrong, and when it does.

// script is the statements of one request, which may take time.
type script struct {
	in     *injections
	w      *Worker
	by     *Session
	number uint32 // of the next rule
	own    bool
	left   []inject.Statement
	first  uint32 // rule that it made
	posts  []abi.PostFault
	strict *inject.Rule // of urdma exec --strict; nil: none
	all    *progress
	waited bool // its beginning is over
}

// progress is how far the workers have come with a script, which each carries out by itself: it
// may come to a statement after another one's client has ended its wait, or never.
type progress struct {
	mu   sync.Mutex
	done map[*inject.Statement]bool // for a port or a device: one worker has carried it out for all
	told map[*inject.Statement]bool // it is counted and in the log
}

func newProgress() *progress {
	return &progress{done: map[*inject.Statement]bool{}, told: map[*inject.Statement]bool{}}
}

// first adds a statement to one of the sets, and reports whether it was not there.
func (p *progress) first(set map[*inject.Statement]bool, one *inject.Statement) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := set[one]
	set[one] = true
	return !was
}

// everywhere carries out a statement for a port at each worker, if none has come to it yet: fn
// at the others, soon, and here, where its error counts.
func (s *script) everywhere(one *inject.Statement, fn func(*script) error) error {
	if s.own {
		return fn(s)
	}
	if !s.all.first(s.all.done, one) {
		return nil
	}
	for _, w := range s.by.s.Workers {
		if w == s.w {
			continue
		}
		at := *s
		at.w, at.in, at.left = w, &w.injected, nil
		w.Engine.Do(func() {
			at.in.s, at.in.w = at.by.s, w
			_ = fn(&at) // what is wrong with it there is so here, too
		})
		w.Wake()
	}
	return fn(s)
}

// inject answers INJECT.
func (x *Session) inject(m *abi.InjectRequest, r *reply) error {
	text, _, _ := bytes.Cut(m.Text[:], []byte{0})
	statements, err := inject.Parse(string(text))
	switch own := m.Flags&abi.InjectOwn != 0; {
	case err != nil:
		return fmt.Errorf("control: inject: %w: %w", err, syscall.EINVAL)
	case m.Flags&^abi.InjectOwn != 0, own && !x.ready:
		return fmt.Errorf("control: INJECT with flags %#x: %w", m.Flags, syscall.EINVAL)
	}
	s := &script{by: x, own: m.Flags&abi.InjectOwn != 0, left: statements, all: newProgress()}
	if err := s.lookAtSubnet(); err != nil {
		return err
	}
	if err := s.beginEverywhere(); err != nil {
		return err
	}
	resp := abi.InjectResponse{Number: s.first}
	if r := s.strict; r != nil {
		x.strict = r.Strict
		resp.Strict, resp.StrictSeed = r.Strict.Behaviours, r.Seed
	}
	resp.Posts = uint32(copy(resp.Post[:], s.posts))
	*r = respond(&resp)
	return nil
}

// lookAtSubnet finds what the subnet will refuse, before anything happens: to ask it takes longer than a
// worker waits. A link that no port of ours has is the subnet's.
func (s *script) lookAtSubnet() error {
	for i := range s.left {
		one := &s.left[i]
		if one.Object == "link" && s.by.s.portNamed(one.ID) < 0 && s.by.s.Subnet != nil {
			one.Verb, one.At, one.Up = inject.Link, one.ID, one.Event == abi.EventPortActive
		}
		if one.Verb != inject.Errors && one.Verb != inject.Rename && one.Verb != inject.Link {
			continue
		}
		var err error
		switch {
		case !s.by.Owner.Admin || s.own:
			err = fmt.Errorf("the subnet is its administrator's to break: %w", syscall.EPERM)
		case s.by.s.Subnet == nil:
			err = fmt.Errorf("this urdmad has no subnet: %w", syscall.ENODEV)
		default:
			err = s.by.s.Subnet(one, true)
		}
		if err != nil {
			return fmt.Errorf("control: inject %q: %w", one.Text, err)
		}
	}
	return nil
}

// beginEverywhere begins the script at every worker, or what is for its own client at that
// one's. Rules have the same numbers at all. It is refused if all refuse it: what it names
// may belong to one of them.
func (s *script) beginEverywhere() (err error) {
	workers := s.by.s.Workers
	if s.own {
		workers = []*Worker{s.by.w}
	}
	rules := uint32(len(s.left))
	s.number = s.by.s.injections.Add(rules) - rules + 1
	began, whole := false, *s
	for _, w := range workers {
		at := whole
		at.w, at.in = w, &w.injected
		var refused error
		var begun script
		w.do(func() {
			refused = at.begin()
			begun = at // which may go on before this has returned
		})
		switch {
		case refused == nil && !began:
			began = true
			*s = begun
		case refused != nil && err == nil:
			err = refused
		}
	}
	if began {
		return nil
	}
	return err
}

// begin carries out what comes before the first wait. Nothing is left of a script whose
// beginning is refused.
func (s *script) begin() error {
	s.in.s, s.in.w = s.by.s, s.w
	before, statements := s.number, s.left
	err := s.run()
	if err != nil {
		s.all.mu.Lock()
		for i := range statements { // the next worker may take them
			delete(s.all.told, &statements[i])
		}
		s.all.mu.Unlock()
		s.in.endAll(func(i *injection) bool { return i.number >= before && i.number < s.number }, "refused")
	}
	return err
}

// goOn carries a script on after a wait. Nobody waits for its errors any more.
func (s *script) goOn() {
	if s.own && s.by.ended {
		return
	}
	s.waited = true
	if err := s.run(); err != nil {
		s.by.s.Log.Warn("inject: the scenario ends", "pid", s.by.Owner.PID, "error", err)
	}
}

func (s *script) run() error {
	c := &s.w.Engine.Clock
	for len(s.left) > 0 {
		one := &s.left[0]
		s.left = s.left[1:]
		var err error
		switch one.Verb {
		case inject.Raise:
			err = s.raise(one)
		case inject.Clear:
			err = s.clear(one.Clear)
		case inject.Pause:
			if err = s.room(); err == nil {
				c.Set(clock.NewTimer(s.goOn), c.Now+clock.Time(one.Wait))
			}
			return err
		case inject.After:
			_, err = s.add(one, s)
			return err
		case inject.Apply:
			err = s.apply(one)
		case inject.Errors, inject.Rename, inject.Link:
			if s.w == s.by.s.Workers[0] { // the subnet has one
				err = s.by.s.Subnet(one, false)
			}
		}
		if err != nil {
			return fmt.Errorf("control: inject %q: %w", one.Text, err)
		}
	}
	return nil
}

// apply begins a rule.
func (s *script) apply(one *inject.Statement) error {
	if one.Rule.Point == inject.Strictly && !s.own {
		return fmt.Errorf("a process is strict from its start on (urdma exec --strict, URDMA_STRICT): %w", syscall.EOPNOTSUPP)
	}
	if number := s.number; one.Rule.Point == inject.OnWire && s.waited {
		err := s.everywhere(one, func(at *script) error {
			at.number = number
			_, err := at.add(one, nil)
			return err
		})
		s.number = number + 1 // where another worker has made the rule, too
		return err
	}
	i, err := s.add(one, nil)
	if err != nil {
		return err
	}
	switch i.Point {
	case inject.Post:
		return s.refusePosts(&i.Rule)
	case inject.Strictly:
		s.strict = &i.Rule
	}
	return nil
}

// refusePosts hands a rule to the library, which alone can refuse a post.
func (s *script) refusePosts(r *inject.Rule) error {
	if !s.own {
		return fmt.Errorf("posts are refused by the library, which is told at the program's start (urdma exec --inject, URDMA_INJECT): %w", syscall.EOPNOTSUPP)
	}
	if len(s.posts) == abi.InjectPosts {
		return fmt.Errorf("more than %d rules for posts: %w", abi.InjectPosts, syscall.EDQUOT)
	}
	s.posts = append(s.posts, abi.PostFault{Call: uint32(inject.PostNumber(r.Function)), Error: uint32(r.Errno), Nth: max(r.Nth, 1), Count: r.Count,
		Chance: uint64(r.P * (1 << 32)), Seed: r.Seed})
	return nil
}

// room says whether another rule may be made.
func (s *script) room() error {
	own := 0
	for _, i := range s.in.rules {
		if i.by.Owner.UID == s.by.Owner.UID {
			own++
		}
	}
	if len(s.in.rules) >= maxInjections || own >= maxUserInjected && !s.by.Owner.Admin {
		return fmt.Errorf("%d rules of user %d, %d of all: %w", own, s.by.Owner.UID, len(s.in.rules), syscall.EDQUOT)
	}
	return nil
}

// add makes a rule; waits, if it is not nil, goes on when it hits.
func (s *script) add(one *inject.Statement, waits *script) (*injection, error) {
	if err := errors.Join(s.room(), s.mayName(&one.Rule)); err != nil {
		return nil, err
	}
	var dev int
	if one.Rule.Point == inject.OnWire {
		var err error
		if dev, err = s.wireOf(one.Rule.Wire.Port); err != nil {
			return nil, err
		}
	}
	n, e := s.in, s.w.Engine
	i := &injection{Draw: inject.NewDraw(one.Rule), number: s.number, text: one.Text, by: s.by, own: s.own, waits: waits, since: e.Now(), dev: dev}
	if i.Point == inject.OnWire {
		i.stage = impair.NewStage(*i.Wire, i.Seed)
		n.impair(dev, i.stage)
	}
	s.number++
	if s.first == 0 {
		s.first = i.number
	}
	n.rules = append(n.rules, i)
	n.changed()
	if i.For > 0 {
		i.expiry = clock.NewTimer(func() { n.end(i, "its time is over") })
		e.Clock.Set(i.expiry, e.Now()+clock.Time(i.For))
	}
	if s.all.first(s.all.told, one) {
		s.by.s.Log.Info("inject: begins", "number", i.number, "statement", i.text, "pid", s.by.Owner.PID, "uid", s.by.Owner.UID)
	}
	return i, nil
}

// mayName says whether the script's owner may name a process or a queue pair.
func (s *script) mayName(r *inject.Rule) error {
	if r.PID != 0 && !slices.ContainsFunc(s.clients(), func(x *Session) bool { return x.Owner.PID == r.PID }) {
		return fmt.Errorf("no process %d that is yours uses urdmad: %w", r.PID, syscall.ESRCH)
	}
	if r.QPN != 0 {
		if _, err := s.pair(r.QPN); err != nil {
			return err
		}
	}
	return nil
}

// clients are those whose things the script may break.
func (s *script) clients() (all []*Session) {
	for _, x := range s.w.attached {
		if s.own && x == s.by || !s.own && s.by.Owner.Sees(&x.Owner) {
			all = append(all, x)
		}
	}
	return all
}

// pair is the queue pair of a number.
func (s *script) pair(n uint32) (*qp.QP, error) {
	q := s.w.Engine.QPs.Pair(n)
	if q == nil || !slices.ContainsFunc(s.clients(), func(x *Session) bool { return &x.client.Client == q.Client }) {
		return nil, fmt.Errorf("no queue pair %06x that is yours: %w", n, syscall.ENOENT)
	}
	return q, nil
}

// clear ends a rule, or all that the script's owner may end.
func (s *script) clear(number uint32) error {
	found := s.in.endAll(func(i *injection) bool {
		return (number == 0 || i.number == number) && (s.by.Owner.Sees(&i.by.Owner)) && (!s.own || i.by == s.by)
	}, "cleared")
	if number != 0 && !found {
		return fmt.Errorf("no rule %d that is yours: %w", number, syscall.ENOENT)
	}
	return nil
}

// pause delays a session's request; not longer than its client lives.
func (x *Session) pause(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end) && !x.hungUp(); {
		time.Sleep(min(time.Until(end), 10*time.Millisecond))
	}
}
