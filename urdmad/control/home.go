package control

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
)

// This file has the clients that share an XRC domain belong to one worker.

// homes are the workers of the XRC domains that clients share.
type homes struct {
	mu sync.Mutex
	of map[xrcKey]*home
}

type home struct {
	w     *Worker
	uid   int // of the client that opened the domain first
	users int // handles of the domain, and clients about to have one
}

// ofUser is the worker of domains that a user has opened, or nil.
func (h *homes) ofUser(uid int) *Worker {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, at := range h.of {
		if at.uid == uid {
			return at.w
		}
	}
	return nil
}

// enter is the worker of a domain, which is w if nobody has it yet. A user's client asks.
func (h *homes) enter(key xrcKey, w *Worker, uid int) *Worker {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		h.of = map[xrcKey]*home{}
	}
	at := h.of[key]
	if at == nil {
		at = &home{w: w, uid: uid}
		h.of[key] = at
	}
	at.users++
	return at.w
}

// leave undoes one enter.
func (h *homes) leave(key xrcKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at := h.of[key]; at != nil {
		if at.users--; at.users == 0 {
			delete(h.of, key)
		}
	}
}

// comeHome has the client belong to the worker of an XRC domain.
func (x *Session) comeHome(key xrcKey) error {
	w := x.s.homes.enter(key, x.w, x.Owner.UID)
	if w == x.w {
		return nil
	}
	if err := x.moveTo(w); err != nil {
		x.s.homes.leave(key)
		return err
	}
	return nil
}

// moveTo has the client belong to another worker, if nothing of it is at its own: a program
// opens its XRC domains before it makes queues and registers memory.
func (x *Session) moveTo(w *Worker) error {
	old, moves := x.w, false
	old.turn(func() {
		if moves = x.movable(); !moves {
			return
		}
		old.Engine.RemoveClient(x.client)
		old.attached = slices.DeleteFunc(old.attached, func(y *Session) bool { return y == x })
	})
	if !moves {
		return fmt.Errorf("control: the XRC domain is shared with a client of another worker, and this one has objects already; open the domain before all but protection domains: %w", syscall.EBUSY)
	}
	err := w.Watch(x.kick)
	if err == nil {
		_ = old.Unwatch(x.kick) // one that has hung up has left the set already
		old.clients.Add(-1)
		w.clients.Add(1)
		x.w = w
	}
	x.w.turn(func() {
		x.w.Engine.AddClient(x.client, x.bells.Mem)
		x.w.attached = append(x.w.attached, x)
	})
	return err
}

// movable reports whether the client has nothing that a worker knows; on the engine's thread.
func (x *Session) movable() bool {
	for _, v := range x.objects {
		switch o := v.(type) {
		case *pdObject, *fileObject:
		case *contextObject:
			if o.async.Pending() > 0 {
				return false
			}
		case *channelObject:
			if o.socket.Pending() > 0 {
				return false
			}
		case *cmChannelObject:
			if o.socket.Pending() > 0 || len(o.late) > 0 {
				return false
			}
		default:
			return false
		}
	}
	return !slices.ContainsFunc(x.w.injected.rules, func(i *injection) bool { return i.by == x })
}
