package logs

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of a Queue.
const (
	queued    = 1024        // lines that wait
	closeTime = time.Second // for the last ones
)

// Queue passes lines on from a goroutine of its own: Put never waits, and lines that
// are not taken in time are counted and dropped. Close it, or its last lines may be
// lost.
type Queue[T any] struct {
	lines chan T
	write func(T)
	miss  func(lines uint64)
	lost  atomic.Uint64
	stop  sync.Once
	over  chan struct{} // closed by Close
	done  chan struct{} // closed when the goroutine has ended
}

// NewQueue has lines written by write, and miss say how many were dropped before the
// next one.
func NewQueue[T any](write func(T), miss func(lines uint64)) *Queue[T] {
	q := &Queue[T]{lines: make(chan T, queued), write: write, miss: miss, over: make(chan struct{}),
		done: make(chan struct{})}
	go q.run()
	return q
}

// Put queues a line.
func (q *Queue[T]) Put(line T) {
	select {
	case q.lines <- line:
	default:
		q.lost.Add(1)
	}
}

func (q *Queue[T]) run() {
	defer close(q.done)
	for {
		select {
		case l := <-q.lines:
			q.writeOne(l)
		case <-q.over:
			for len(q.lines) > 0 {
				q.writeOne(<-q.lines)
			}
			return
		}
	}
}

func (q *Queue[T]) writeOne(line T) {
	q.write(line)
	if n := q.lost.Swap(0); n > 0 {
		q.miss(n)
	}
}

// Close waits until the lines are written, but not for ever. Later ones are lost.
func (q *Queue[T]) Close() {
	q.stop.Do(func() { close(q.over) })
	select {
	case <-q.done:
	case <-time.After(closeTime):
	}
}

// Writer is an io.Writer whose writes, of a line each, wait in a Queue.
type Writer struct{ *Queue[[]byte] }

// NewWriter queues lines for w. There is nowhere to say that writing one failed.
func NewWriter(w io.Writer) Writer {
	return Writer{NewQueue(func(b []byte) { _, _ = w.Write(b) }, func(lines uint64) {
		_, _ = fmt.Fprintf(w, "urdmad: %d log lines lost: nobody took them in time\n", lines)
	})}
}

// Write takes one line.
func (w Writer) Write(b []byte) (int, error) {
	w.Put(append([]byte(nil), b...))
	return len(b), nil
}
