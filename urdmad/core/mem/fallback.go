package mem

import (
	"errors"
	"sync"
	"time"
)

// Job is one read or write of client memory through /proc/self/mem. Jobs of a
// Space run one after the other in the order of Submit.
type Job struct {
	Write bool
	Addr  uint64 // in the client's address space
	Buf   []byte // source of a write, destination of a read; the Space's until Done
	// Atomic, if there is one, is carried out at Addr; Buf, WordLen bytes, is what
	// was there. Other jobs of the Space come before or after it.
	Atomic *AtomicOp
	// Done is called on the Space's goroutine with nil or the error (a page the
	// client has unmapped: EIO). It must be quick and must not block.
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

// SetDirect has the worker read and write the client's private memory itself, in
// place of a goroutine, because the client is trusted: a page fault that never ends
// (userfaultfd, FUSE) would hold the worker. Before the first region.
func (s *Space) SetDirect() { s.direct = true }

// Direct reports whether SetDirect was called: the worker calls Do.
func (s *Space) Direct() bool { return s.direct }

// Fallback makes sure the Space's goroutine runs, if it needs one; ErrNoSelfMem if the
// client passed no descriptor.
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

// Submit queues a job; Fallback must have succeeded before. Memory for the
// queue is the only thing it can wait for.
func (s *Space) Submit(j Job) {
	f := s.fallback
	f.mu.Lock()
	f.queue = append(f.queue, j)
	f.mu.Unlock()
	f.cond.Signal()
}

// drainTime bounds Drain: a client can make its own pages block for ever.
const drainTime = 2 * time.Second

// Drain waits until every job submitted before has ended, so that what a client
// deregisters is written no more. The poll loop must not call it.
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

// Leave has every job that has not begun fail: the client has closed its session, so
// its private memory may have other uses, if it lives on.
func (s *Space) Leave() { s.left.Store(true) }

var errLeft = errors.New("mem: the client has left")

// Do carries a job out at once; it does not call Done. An error is that of a page that
// the client does not map, or not with the right (EIO), or of its end (io.EOF).
func (s *Space) Do(j *Job) error {
	if s.left.Load() {
		return errLeft
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
