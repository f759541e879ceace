package control

import (
	"fmt"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"urdma/urdmad/core/qp"
)

// XRCDomain is an XRC domain. It belongs to one client, or is shared by those clients of one
// worker that can open its file.
type XRCDomain struct {
	*qp.Domain
	shared *sharing // nil: it belongs to one client
}

// sharing is the additional state of a shared domain; the lock in sharedDomains guards it.
type sharing struct {
	key   DomainKey
	w     *Worker // worker of all clients of the domain
	uid   int     // user ID of the first client
	users int     // number of handles, of all clients
}

// sharedDomains has the shared XRC domains of all workers.
type sharedDomains struct {
	mu sync.Mutex
	of map[DomainKey]*XRCDomain
}

// DomainKey names a shared domain: the first port of its device, and its file, by properties that
// all processes see alike.
type DomainKey struct {
	Dev           int
	Device, Inode uint64
}

// Enter finds or makes the domain of a file for a client of user uid and worker w, and counts one
// handle. A domain belongs to one worker, so a client of another worker is refused.
func (s *sharedDomains) Enter(key DomainKey, flags uint32, uid int, w *Worker, workers []*Worker) (*XRCDomain, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.of[key]
	switch {
	case d == nil && flags&unix.O_CREAT == 0:
		return nil, fmt.Errorf("control: no O_CREAT, and the file has no XRC domain: %w", syscall.EAGAIN)
	case d == nil:
		d = &XRCDomain{qp.NewDomain(), &sharing{key: key, w: w, uid: uid}}
		if s.of == nil {
			s.of = map[DomainKey]*XRCDomain{}
		}
		s.of[key] = d
	case flags&unix.O_EXCL != 0:
		return nil, fmt.Errorf("control: O_EXCL, and the file has an XRC domain: %w", syscall.EINVAL)
	case d.shared.w != w:
		return nil, fmt.Errorf("control: the XRC domain has clients of worker %d, and this program belongs to worker %d; programs of user %d that start while the domain is open belong to the former: %w",
			slices.Index(workers, d.shared.w), slices.Index(workers, w), d.shared.uid, syscall.EBUSY)
	}
	d.shared.users++
	return d, nil
}

// Leave undoes one Enter.
func (s *sharedDomains) Leave(d *XRCDomain) {
	if d.shared == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.shared.users--; d.shared.users == 0 {
		delete(s.of, d.shared.key)
	}
}

// workerOf returns the worker of the shared domains that a user has opened, or nil.
func (s *sharedDomains) workerOf(uid int) *Worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.of {
		if d.shared.uid == uid {
			return d.shared.w
		}
	}
	return nil
}
