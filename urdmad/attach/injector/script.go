package injector

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"syscall"

	"urdma/inject"
	"urdma/urdmad/attach/impair"
	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// This file carries out the statements of urdma inject, and checks the rights of the user.

// script has the statements of one request. They may take time. One goroutine at a time carries
// them out, each statement at each worker in a turn of that worker: the session's goroutine up to
// the first wait, and another one after each wait.
type script struct {
	n      *Injector
	by     *account.Owner // owner; a copy, because the session may be gone
	own    *client        // the only client affected; nil: all clients that by may see
	number uint32         // number of the next rule
	left   []inject.Statement
	start  bool         // the only client affected has no objects yet
	first  uint32       // its first rule
	asked  uint32       // the rule of which the statement hits asks; 0: none
	hits   uint64       // of that rule
	strict *inject.Rule // rule of urdma exec --strict; nil: none
}

// wait is a wait of a script: for a time, or for the first hit of an "after" rule at any worker.
// It is stored as rules, which are counted, shown and cleared like others.
type wait struct {
	over   atomic.Bool
	number uint32
	rest   script
}

// end continues the script, once; on the engine's thread.
func (w *wait) end() {
	if w.over.CompareAndSwap(false, true) {
		w.rest.n.run(w.goOn)
	}
}

// goOn runs the rest of the script, unless the wait was cleared before. Nobody gets its errors any more.
func (w *wait) goOn() {
	s := &w.rest
	s.n.scripts.Lock()
	defer s.n.scripts.Unlock()
	if !s.end(w.number, w.number+1, "it is over") {
		return
	}
	if err := s.run(); err != nil && !errors.Is(err, errClientEnded) {
		s.n.server.Log.Warn("inject: the scenario ends", "pid", s.by.PID, "error", err)
	}
}

var (
	errClientEnded = errors.New("the client whose script it is has ended")
	errNextTurn    = errors.New("later") // returned by fn of each: call again in the next turn
)

// each runs fn in a turn of each worker, or of the worker of its only client. It returns an error
// only if fn fails at all workers, because an object that a statement names may belong to one of
// them.
func (s *script) each(fn func(w *worker) error) (err error) {
	var workers []*worker
	for _, w := range s.n.server.Workers {
		if s.own == nil || s.own.w.Worker == w {
			workers = append(workers, s.n.workers[w])
		}
	}
	done := false
	for _, w := range workers {
		failed := errNextTurn
		for failed == errNextTurn {
			w.Do(func() {
				if failed = errClientEnded; s.own == nil || !s.own.gone {
					failed = fn(w)
				}
			})
		}
		done = done || failed == nil
		if err == nil {
			err = failed
		}
	}
	if done {
		return nil
	}
	return err
}

// answer answers INJECT.
func (n *Injector) answer(x *control.Session, m *abi.InjectRequest, r *control.Reply) error {
	text, _, _ := bytes.Cut(m.Text[:], []byte{0})
	statements, err := inject.Parse(string(text))
	var own *client
	if m.Flags&(abi.InjectOwn|abi.InjectStart) != 0 {
		own = n.client(x)
	}
	switch {
	case err != nil:
		return fmt.Errorf("inject: %w: %w", err, syscall.EINVAL)
	case m.Flags&^(abi.InjectOwn|abi.InjectStart) != 0, m.Flags != 0 && own == nil:
		return fmt.Errorf("INJECT with flags %#x: %w", m.Flags, syscall.EINVAL)
	}
	s := n.script(x.Owner.Identity(), own, statements)
	s.start = m.Flags&abi.InjectStart != 0
	if err := s.lookAtSubnet(); err != nil {
		return err
	}
	if err := s.begin(); err != nil {
		return err
	}
	resp := abi.InjectResponse{Number: s.first, Asked: s.asked, Hits: s.hits}
	if r := s.strict; r != nil {
		own.limits = r.Strict
		resp.Strict, resp.StrictSeed = r.Strict.Behaviours, r.Seed
	}
	if own != nil {
		own.w.Do(func() { resp.Posts = uint32(copy(resp.Post[:], own.posts())) })
	}
	*r = control.Respond(&resp)
	return nil
}

// script returns a script for an owner; own, if not nil, is the only client affected.
func (n *Injector) script(by *account.Owner, own *client, statements []inject.Statement) *script {
	rules := uint32(len(statements))
	return &script{n: n, by: by, own: own, left: statements, number: n.made.Add(rules) - rules + 1}
}

// lookAtSubnet finds statements that the subnet would refuse, before anything happens, because
// the subnet cannot refuse later.
func (s *script) lookAtSubnet() error {
	for i := range s.left {
		one := &s.left[i]
		if one.Verb != inject.Errors {
			continue
		}
		var err error
		switch {
		case !s.by.Admin || s.own != nil:
			err = fmt.Errorf("the subnet is its administrator's to break: %w", syscall.EPERM)
		case s.n.Subnet == nil:
			err = fmt.Errorf("this urdmad has no subnet: %w", syscall.ENODEV)
		default:
			err = s.n.Subnet(one, true)
		}
		if err != nil {
			return fmt.Errorf("inject %q: %w", one.Text, err)
		}
	}
	return nil
}

// begin carries out the statements before the first wait. If one is refused, nothing of the
// script remains.
func (s *script) begin() error {
	s.n.scripts.Lock()
	defer s.n.scripts.Unlock()
	before := s.number
	err := s.run()
	if err != nil {
		s.end(before, s.number, "refused")
	}
	return err
}

// run carries out the statements up to the next wait.
func (s *script) run() error {
	for len(s.left) > 0 {
		one := &s.left[0]
		s.left = s.left[1:]
		waits := false
		var err error
		switch one.Verb {
		case inject.Raise:
			err = s.raise(one)
		case inject.Clear:
			err = s.clear(one.Number)
		case inject.Hits:
			err = s.count(one.Number)
		case inject.Apply:
			err = s.apply(one)
		case inject.Pause, inject.After:
			waits, err = true, s.wait(one)
		case inject.Errors:
			err = s.n.Subnet(one, false)
		}
		switch {
		case err != nil:
			return fmt.Errorf("inject %q: %w", one.Text, err)
		case waits:
			return nil
		}
	}
	return nil
}

// wait makes the rules for the next wait.
func (s *script) wait(one *inject.Statement) error {
	r := one.Rule
	if one.Verb == inject.Pause { // a pause matches no event; one worker's clock is enough
		r = inject.Rule{For: one.Wait}
	}
	until := &wait{number: s.number, rest: *s}
	until.rest.number++
	made := false
	err := s.each(func(w *worker) error {
		if made && one.Verb == inject.Pause {
			return nil
		}
		err := s.make(w, one.Text, r, until)
		made = made || err == nil
		return err
	})
	if err == nil {
		s.begins(one)
	}
	return err
}

// begins records that a rule was made.
func (s *script) begins(one *inject.Statement) {
	s.n.server.Log.Info("inject: begins", "number", s.number, "statement", one.Text, "pid", s.by.PID, "uid", s.by.UID)
	if s.first == 0 {
		s.first = s.number
	}
	s.number++
}

// apply activates a rule.
func (s *script) apply(one *inject.Statement) error {
	switch r := &one.Rule; {
	case r.Point == inject.Strictly && !s.start:
		return fmt.Errorf("a process is strict from its start on (urdma exec --strict, URDMA_STRICT): %w", syscall.EOPNOTSUPP)
	case r.Point == inject.Strictly:
		s.strict = r
	case r.Point == inject.Post && s.own == nil:
		return fmt.Errorf("posts are refused by the library, which their own program tells "+
			"(urdma exec --inject, URDMA_INJECT, urdma_inject.h): %w", syscall.EOPNOTSUPP)
	}
	if err := s.each(func(w *worker) error { return s.make(w, one.Text, one.Rule, nil) }); err != nil {
		return err
	}
	s.begins(one)
	return nil
}

// posts returns the client's rules for posts. Its library applies them, because only the library can refuse a post.
func (c *client) posts() (all []abi.PostFault) {
	for _, i := range c.at[inject.Post] {
		all = append(all, abi.PostFault{Number: i.number, Call: uint32(inject.PostNumber(i.Function)),
			Error: uint32(i.Errno), Nth: max(i.Nth, 1), Count: i.Count, Chance: uint64(i.P * (1 << 32)), Seed: i.Seed})
	}
	return all
}

// room returns an error if no further rule may be made.
func (s *script) room(w *worker) error {
	own := 0
	for _, i := range w.rules {
		if i.by.UID == s.by.UID {
			own++
		}
	}
	if len(w.rules) >= maxRules || own >= maxUserRules && !s.by.Admin {
		return fmt.Errorf("%d rules of user %d, %d of all: %w", own, s.by.UID, len(w.rules), syscall.EDQUOT)
	}
	return nil
}

// make makes a rule at a worker, with the script's next number; until, if not nil, ends once the
// rule hits. It runs in a turn of the worker.
func (s *script) make(w *worker, text string, r inject.Rule, until *wait) error {
	e := w.Engine
	if until != nil && until.over.Load() { // a rule at another worker has hit already
		return nil
	}
	if err := errors.Join(s.room(w), s.mayName(w, &r)); err != nil {
		return err
	}
	if r.Point == inject.Post && len(s.own.at[inject.Post]) == abi.InjectPosts {
		return fmt.Errorf("more than %d rules for posts: %w", abi.InjectPosts, syscall.EDQUOT)
	}
	i := &rule{Draw: inject.NewDraw(r), number: s.number, text: text, by: s.by, own: s.own != nil, client: s.own,
		waits: until, since: e.Now()}
	if i.Point == inject.OnWire {
		var err error
		if i.dev, err = s.wireOf(w, r.Wire.Port); err != nil {
			return err
		}
		i.stage = impair.NewStage(*i.Wire, i.Seed)
		w.impair(i.dev, i.stage)
	}
	w.make(i)
	if i.For > 0 {
		i.expiry = clock.NewTimer(func() {
			if i.Point == 0 {
				until.end()
			} else {
				w.endOne(i, "its time is over")
			}
		})
		e.Clock.Set(i.expiry, e.Now()+clock.Time(i.For))
	}
	return nil
}

// mayName returns an error if the script's owner may not name a process or queue pair.
func (s *script) mayName(w *worker, r *inject.Rule) error {
	if r.PID != 0 && !slices.ContainsFunc(s.clients(w), func(c *client) bool { return c.x.Owner.PID == r.PID }) {
		return fmt.Errorf("no process %d that is yours uses urdmad: %w", r.PID, syscall.ESRCH)
	}
	if r.QPN != 0 {
		if _, err := s.pair(w, r.QPN); err != nil {
			return err
		}
	}
	return nil
}

// mayBreak reports whether the script may affect a client.
func (s *script) mayBreak(c *client) bool { return s.own == c || s.own == nil && s.by.Sees(&c.x.Owner) }

// clients returns the clients of a worker that the script may affect.
func (s *script) clients(w *worker) (all []*client) {
	for _, c := range w.clients {
		if s.mayBreak(c) {
			all = append(all, c)
		}
	}
	return all
}

// pair returns the queue pair with a number.
func (s *script) pair(w *worker, n uint32) (*qp.QP, error) {
	if q := w.Engine.QPs.Pair(n); q != nil {
		if c := w.of[q.Client]; c != nil && s.mayBreak(c) {
			return q, nil
		}
	}
	return nil, fmt.Errorf("no queue pair %06x that is yours: %w", n, syscall.ENOENT)
}

// clear ends a rule, or all rules that the script's owner may end.
func (s *script) clear(number uint32) error {
	found := false
	err := s.each(func(w *worker) error {
		found = w.end(func(i *rule) bool { return (number == 0 || i.number == number) && s.mayAsk(i) }, "cleared") || found
		return nil
	})
	if err == nil && number != 0 && !found {
		return fmt.Errorf("no rule %d that is yours: %w", number, syscall.ENOENT)
	}
	return err
}

// mayAsk reports whether the script's owner may ask for the hits of a rule and end it.
func (s *script) mayAsk(i *rule) bool {
	if s.own != nil {
		return i.client == s.own
	}
	return s.by.Sees(i.by)
}

// count finds out how many events a rule has hit at all workers.
func (s *script) count(number uint32) error {
	return s.each(func(w *worker) error {
		for _, i := range slices.Concat(w.rules, w.ended) {
			if i.number == number && s.mayAsk(i) {
				s.asked, s.hits = number, s.hits+i.hits()
				return nil
			}
		}
		return fmt.Errorf("no rule %d that is yours: %w", number, syscall.ENOENT)
	})
}

// end ends the script's rules with numbers from first up to, not including, next, and reports whether there
// were any.
func (s *script) end(first, next uint32, why string) (found bool) {
	_ = s.each(func(w *worker) error {
		found = w.end(func(i *rule) bool { return i.number >= first && i.number < next }, why) || found
		return nil
	})
	return found
}
