package control

import (
	"fmt"
	"syscall"

	"urdma/urdmad/control/account"
	"urdma/urdmad/core/clock"
	"urdma/verbs/abi"
)

// object is the part common to all objects of a session.
type object struct {
	x      *Session
	handle uint32
	at     clock.Time       // time of creation
	bill   *account.Amounts // resources counted in its client's account
}

func (o *object) base() *object { return o }

// Object is an object of a session.
type Object interface {
	base() *object
	Info() Info
}

// add gives an object a handle that no live object of this client has; bill has the resources
// taken for it. A connection request adds an object on the engine's thread at any time, possibly
// while the session's goroutine looks up another: hence the lock. Objects are removed and
// iterated on the engine's thread while the session's goroutine waits.
func (x *Session) add(v Object, bill *account.Amounts) uint32 {
	x.mu.Lock()
	defer x.mu.Unlock()
	for {
		x.next++
		if x.next == abi.NoHandle || x.next >= abi.BatchMade {
			continue
		}
		if _, taken := x.objects[x.next]; !taken {
			x.objects[x.next] = v
			*v.base() = object{x: x, handle: x.next, at: x.w.Engine.Now(), bill: bill}
			return x.next
		}
	}
}

// remove removes an object and gives back its resources; on the engine's thread.
func (o *object) remove() {
	o.x.mu.Lock()
	defer o.x.mu.Unlock()
	o.x.Give(o.bill)
	delete(o.x.objects, o.handle)
}

// resized replaces the amounts of a queue of some kind by those of its new ring, and gives the
// old ones back.
func (o *object) resized(kind account.Resource, fresh *account.Amounts) {
	fresh[kind], o.bill[kind] = 1, 0
	o.x.Give(o.bill)
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
