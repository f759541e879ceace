package model

import "slices"

// Shrink shortens a program that fails, as long as fails reports that it still fails.
func Shrink(p Program, fails func(Program) bool) Program {
	for changed := true; changed; {
		changed = false
		for n := max(len(p.Calls)/2, 1); n > 0; n /= 2 {
			for i := len(p.Calls) - n; i >= 0; i-- {
				q := p
				q.Calls = slices.Concat(p.Calls[:i], p.Calls[i+n:])
				if q.valid() && fails(q) {
					p, changed = q, true
					i = min(i, len(p.Calls)-n+1)
				}
			}
		}
		for i := range p.Calls {
			for _, c := range simpler(p.Calls[i]) {
				q := p
				q.Calls = slices.Clone(p.Calls)
				q.Calls[i] = c
				if fails(q) {
					p, changed = q, true
					break
				}
			}
		}
	}
	return p
}

// simpler returns simpler versions of a call.
func simpler(c Call) (calls []Call) {
	if c.Next {
		d := c
		d.Next = false
		calls = append(calls, d)
	}
	for i := range c.Sends {
		if len(c.Sends) > 1 {
			d := c
			d.Sends = slices.Delete(slices.Clone(c.Sends), i, i+1)
			calls = append(calls, d)
		}
		if e := c.Sends[i].Elements; len(e) > 1 && !c.Sends[i].atomic() {
			d := c
			d.Sends = slices.Clone(c.Sends)
			d.Sends[i].Elements = e[:1]
			calls = append(calls, d)
		}
	}
	return calls
}

// valid reports whether no send queue gets more requests than it has room for.
func (p *Program) valid() bool {
	var posted [2][2]int
	for _, c := range p.Calls {
		if c.What == "connect" {
			posted[0][c.QP], posted[1][c.QP] = 0, 0
		}
		if posted[c.Side][c.QP] += len(c.Sends); posted[c.Side][c.QP] > depth {
			return false
		}
	}
	return true
}
