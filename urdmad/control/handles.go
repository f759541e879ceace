package control

import (
	"fmt"
	"syscall"

	"urdma/urdmad/control/account"
	"urdma/urdmad/control/memfd"
	"urdma/urdmad/core/clock"
	"urdma/verbs/abi"
)

// Base is the part common to all objects of a session; each embeds it.
type Base struct {
	Session *Session
	Handle  uint32
	Made    clock.Time
	bill    *account.Amounts // resources counted in its client's account
}

// Object is an object of a session.
type Object interface {
	// Info returns the object's common part.
	Info() *Base
	// Rank says when the object of a client that has ended is removed.
	Rank() Rank
	// End removes such an object from the engine. It returns memory that can be unmapped once the
	// engine no longer uses it, or nil.
	End() *memfd.Shared
}

// Rank orders the removal of the objects of a client that has ended: first queue pairs and ids, so
// that peers learn of the end, and shared receive queues, which other clients' queue pairs may
// use; then the objects that these depended on.
type Rank int

const (
	RankPair Rank = iota
	RankID
	RankSharedQueue
	RankOther
)

// Info implements Object.
func (o *Base) Info() *Base { return o }

// Rank implements Object.
func (o *Base) Rank() Rank { return RankOther }

// End implements Object; there is nothing to remove.
func (o *Base) End() *memfd.Shared { return nil }

// Add gives an object a handle that no live object of this client has; bill has the resources
// taken for it. A connection request adds an object on the engine's thread at any time, possibly
// while the session's goroutine looks up another: hence the lock. Objects are removed and
// iterated on the engine's thread while the session's goroutine waits.
func (x *Session) Add(v Object, bill *account.Amounts) uint32 {
	x.mu.Lock()
	defer x.mu.Unlock()
	for {
		x.next++
		if x.next == abi.NoHandle || x.next >= abi.BatchMade {
			continue
		}
		if _, taken := x.objects[x.next]; !taken {
			x.objects[x.next] = v
			*v.Info() = Base{Session: x, Handle: x.next, Made: x.w.Engine.Now(), bill: bill}
			return x.next
		}
	}
}

// Remove removes an object and gives back its resources; on the engine's thread.
func (o *Base) Remove() {
	o.Session.mu.Lock()
	defer o.Session.mu.Unlock()
	o.Session.Give(o.bill)
	delete(o.Session.objects, o.Handle)
}

// Resized replaces the amounts of a queue of some kind by those of its new ring, and gives the
// old ones back.
func (o *Base) Resized(kind account.Resource, fresh *account.Amounts) {
	fresh[kind], o.bill[kind] = 1, 0
	o.Session.Give(o.bill)
	o.bill = fresh
}

// Find returns the object with a handle if it is of type T.
func Find[T any](x *Session, handle uint32) (T, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if i := int64(handle) - abi.BatchMade; i >= 0 && i < int64(len(x.made)) {
		handle = x.made[i]
	}
	v, ok := x.objects[handle].(T)
	if !ok {
		return v, fmt.Errorf("control: handle %d is none of the client's, or of another kind: %w", handle, syscall.ENOENT)
	}
	return v, nil
}
