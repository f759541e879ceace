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

// Queue is an io.Writer that never blocks: lines that its destination does not
// take in time are counted and dropped. Close it, or its last lines may be lost.
type Queue struct {
	to    io.Writer
	lines chan []byte
	lost  atomic.Uint64
	done  chan struct{}
	once  sync.Once
}

// NewQueue starts the goroutine that writes.
func NewQueue(to io.Writer) *Queue {
	q := &Queue{to: to, lines: make(chan []byte, queued), done: make(chan struct{})}
	go q.run()
	return q
}

// Write takes one line.
func (q *Queue) Write(b []byte) (int, error) {
	select {
	case q.lines <- append([]byte(nil), b...):
	default:
		q.lost.Add(1)
	}
	return len(b), nil
}

func (q *Queue) run() {
	defer close(q.done)
	for b := range q.lines {
		if b == nil { // from Close
			return
		}
		_, _ = q.to.Write(b) // there is nowhere to say that it failed
		if n := q.lost.Swap(0); n > 0 {
			_, _ = fmt.Fprintf(q.to, "urdmad: %d log lines lost: nobody took them in time\n", n)
		}
	}
}

// Close waits until the lines are written, but not for ever. Later ones are
// lost.
func (q *Queue) Close() {
	q.once.Do(func() {
		limit := time.NewTimer(closeTime)
		defer limit.Stop()
		select {
		case q.lines <- nil:
		case <-limit.C:
			return
		}
		select {
		case <-q.done:
		case <-limit.C:
		}
	})
}
