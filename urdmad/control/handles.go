package control

import (
	"sync"
	"syscall"

	"urdma/urdmad/clock"
	"urdma/urdmad/control/account"
	"urdma/verbs/abi"
)

// handleTable is a client's objects by their handles, and what they take from
// its account.
type handleTable struct {
	account.Account
	s       *Server
	mu      sync.Mutex // guards the rest, see add
	objects map[uint32]any
	bills   map[uint32]*account.Amounts // what the objects take
	next    uint32
}

// created is when an object was made.
type created struct{ at clock.Time }

func (c *created) setCreated(at clock.Time) { c.at = at }

// add gives an object a handle that no live object of this client has; bill is
// what was taken for it. A connection request adds one on the engine's thread at
// any time, also while the session's goroutine looks another up: hence the lock.
// Deletions and walks happen on the engine's thread while the session's
// goroutine waits for them.
func (t *handleTable) add(v any, bill *account.Amounts) uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		t.next++
		if t.next == abi.NoHandle || t.next >= abi.BatchMade {
			continue
		}
		if _, taken := t.objects[t.next]; !taken {
			t.objects[t.next], t.bills[t.next] = v, bill
			if c, ok := v.(interface{ setCreated(clock.Time) }); ok {
				c.setCreated(t.s.Engine.Now())
			}
			return t.next
		}
	}
}

// remove forgets an object and gives back what it took; on the engine's thread.
func (t *handleTable) remove(handle uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if bill := t.bills[handle]; bill != nil {
		t.Give(bill)
	}
	delete(t.objects, handle)
	delete(t.bills, handle)
}

// resized gives back what the smaller or larger ring of a queue, one of kind,
// took before.
func (t *handleTable) resized(handle uint32, kind account.Resource, fresh *account.Amounts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.bills[handle]
	fresh[kind], old[kind] = 1, 0
	t.Give(old)
	t.bills[handle] = fresh
}

// object finds a handle's object if it is of type T.
func object[T any](x *Session, handle uint32) (T, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	v, ok := x.objects[handle].(T)
	if !ok {
		return v, syscall.ENOENT
	}
	return v, nil
}
