package mem

import (
	"errors"
	"sync"
	"time"
)

// Job is one read or write of client memory through /proc/self/mem. Jobs of a Space run one after the
// other, in the order of Submit.
type Job struct {
	Write bool
	Addr  uint64 // in the client's address space
	Buf   []byte // source of a write, destination of a read; belongs to the Space until Done
	// Atomic, if not nil, is executed at Addr; Buf, WordLen bytes long, receives the original value. It is
	// atomic with respect to other jobs of the Space.
	Atomic *AtomicOp
	// Check, if not nil, is called before the access, and its error is the job's.
	Check func(addr uint64, n int, write bool) error
	// Done is called on the Space's goroutine with nil or the error (EIO if the client has unmapped a
	// page). It must be quick and must not block.
	Done func(error)
}

// fallback is the goroutine that may block on a client's pages.
type fallback struct {
	mu     sync.Mutex
	cond   *sync.Cond
	queue  []Job
	ending bool
	space  *Space
}

// SetDirect makes the worker access the client's private memory itself, without a goroutine, because the
// client is trusted: a page fault that never ends (userfaultfd, FUSE) would block the worker. Call it
// before the first region.
func (s *Space) SetDirect() { s.direct = true }

// Direct reports whether SetDirect was called; if so, the worker calls Do.
func (s *Space) Direct() bool { return s.direct }

// Fallback starts the Space's goroutine if it needs one; ErrNoSelfMem if the client passed no descriptor.
func (s *Space) Fallback() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.selfMem == nil || s.closed {
		return ErrNoSelfMem
	}
	if s.fallback == nil && !s.direct {
		f := &fallback{space: s}
		f.cond = sync.NewCond(&f.mu)
		s.fallback = f
		go f.run()
	}
	return nil
}

// Job returns a job that reads to buf at va, which Contains has accepted; with Write set, it writes.
func (r *Region) Job(va uint64, buf []byte) Job {
	return Job{Addr: r.ClientAddr(va), Buf: buf, Check: r.Check}
}

// Submit queues a job; Fallback must have succeeded before. It blocks at most to allocate memory for the
// queue.
func (s *Space) Submit(j Job) {
	f := s.fallback
	f.mu.Lock()
	f.queue = append(f.queue, j)
	f.mu.Unlock()
	f.cond.Signal()
}

// drainTime bounds Drain: a client can make accesses to its pages block for ever.
const drainTime = 2 * time.Second

// Drain waits until every job submitted before has ended, so that memory which a client deregisters is no
// longer written. The poll loop must not call it.
func (s *Space) Drain() {
	s.mu.Lock()
	f := s.fallback
	s.mu.Unlock()
	if f == nil {
		return
	}
	done := make(chan struct{})
	s.Submit(Job{Write: true, Done: func(error) { close(done) }})
	select {
	case <-done:
	case <-time.After(drainTime):
	}
}

func (f *fallback) stop() {
	f.mu.Lock()
	f.ending = true
	f.mu.Unlock()
	f.cond.Signal()
}

func (f *fallback) run() {
	for {
		jobs, ok := f.take()
		if !ok {
			return
		}
		for _, j := range jobs {
			j.Done(f.space.Do(&j))
		}
	}
}

func (f *fallback) take() ([]Job, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.queue) == 0 && !f.ending {
		f.cond.Wait()
	}
	jobs := f.queue
	f.queue = nil
	return jobs, len(jobs) > 0
}

// Leave makes all jobs fail that have not begun: the client has closed its session, so a process that
// continues may use its private memory for other purposes.
func (s *Space) Leave() { s.left.Store(true) }

var errLeft = errors.New("mem: the client has left")

// Do executes a job immediately; it does not call Done. The error is EIO if the client does not map a page,
// or not with the necessary rights, and io.EOF if the client has ended.
func (s *Space) Do(j *Job) error {
	if s.left.Load() {
		return errLeft
	}
	if j.Check != nil {
		if err := j.Check(j.Addr, len(j.Buf), j.Write); err != nil {
			return err
		}
	}
	if j.Write {
		_, err := s.selfMem.WriteAt(j.Buf, int64(j.Addr))
		return err
	}
	if _, err := s.selfMem.ReadAt(j.Buf, int64(j.Addr)); err != nil || j.Atomic == nil {
		return err
	}
	word := [WordLen]byte(j.Buf)
	j.Atomic.applyTo(word[:])
	_, err := s.selfMem.WriteAt(word[:], int64(j.Addr))
	return err
}
