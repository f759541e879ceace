package capture

import (
	"context"
	"errors"
	"fmt"
	"time"

	"urdma/inspect"
	"urdma/verbs/abi"
)

// Limits end a capture; 0 is no limit.
type Limits struct {
	Frames uint64
	Time   time.Duration
}

// Counts sums up a capture.
type Counts struct {
	Frames, Lost uint64
	Spent        time.Duration // time that urdmad's worker spent on it
}

// ErrGone says that urdmad ended before the capture.
var ErrGone = errors.New("urdmad has ended")

// How long to wait when there are no frames: short at first, because a burst soon fills the ring.
const (
	shortestNap = 500 * time.Microsecond
	longestNap  = 20 * time.Millisecond
)

// run is a running capture.
type run struct {
	from   *inspect.Capture
	to     Sink
	limits Limits
	counts Counts
	told   uint64 // how many of Counts.Lost were reported with a frame
}

// Sink receives the records of a capture: frames, and events if the capture has them (abi.CaptureRecord).
type Sink interface {
	// Write adds a record; lost is the number of records lost just before it.
	Write(r *abi.CaptureRecord, frame, note []byte, lost uint64) error
	// Flush is called when no further record is ready.
	Flush() error
	// Close ends the output; late is the number of records lost after the last one written.
	Close(late uint64) error
}

// Run captures until ctx ends, a limit is reached, or urdmad ends (ErrGone), and closes the sink. Whatever the
// error, the sink has all records captured until then. Run calls begun, which may be nil, as soon as urdmad
// captures.
func Run(ctx context.Context, s *inspect.Source, filter abi.CaptureRequest, to Sink, limits Limits,
	begun func()) (Counts, error) {
	r := &run{to: to, limits: limits}
	var err error
	if r.from, err = s.StartCapture(filter); err != nil {
		return r.counts, errors.Join(err, to.Close(0))
	}
	defer r.from.Close()
	if begun != nil {
		begun()
	}
	if limits.Time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limits.Time)
		defer cancel()
	}
	err = r.loop(ctx)
	r.counts.Lost, r.counts.Spent = r.from.Reader.Lost(), r.from.Reader.Spent()
	if closeErr := to.Close(r.counts.Lost - r.told); err == nil {
		err = closeErr
	}
	return r.counts, err
}

func (r *run) loop(ctx context.Context) error {
	nap := shortestNap
	for ctx.Err() == nil {
		n, err := r.drain()
		if err != nil || r.full() {
			return err
		}
		if n > 0 {
			nap = shortestNap
			continue
		}
		if err := r.to.Flush(); err != nil {
			return err
		}
		if r.from.Gone() {
			_, err := r.drain()
			return errors.Join(ErrGone, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(nap):
		}
		nap = min(2*nap, longestNap)
	}
	if err := r.from.Stop(); err != nil && !r.from.Gone() {
		return err
	}
	_, err := r.drain()
	return err
}

func (r *run) full() bool { return r.limits.Frames > 0 && r.counts.Frames >= r.limits.Frames }

// drain writes the contents of the ring.
func (r *run) drain() (n int, err error) {
	for !r.full() {
		head, frame, note, ok, err := r.from.Reader.Next()
		if err != nil {
			return n, fmt.Errorf("the capture's ring: %w", err)
		}
		if !ok {
			break
		}
		lost := r.from.Reader.Lost() - r.told
		if err := r.to.Write(&head, frame, note, lost); err != nil {
			return n, err
		}
		r.told += lost
		r.from.Reader.Release(uint64(head.Bytes))
		r.counts.Frames++
		n++
	}
	return n, nil
}

// Past writes the records of urdmad's flight recorders that pass the filter, and closes the sink. The filter's
// flags must contain abi.CapturePast.
func Past(s *inspect.Source, filter abi.CaptureRequest, to Sink) (Counts, error) {
	r := &run{to: to}
	var err error
	if r.from, err = s.StartCapture(filter); err != nil {
		return r.counts, errors.Join(err, to.Close(0))
	}
	defer r.from.Close()
	_, err = r.drain()
	r.counts.Lost = r.from.Reader.Lost()
	return r.counts, errors.Join(err, to.Close(r.counts.Lost-r.told))
}
