// Package session is a Go program's connection with urdmad: where its control
// socket is (places.go), the greeting (greet.go), requests and their answers, one at a time, with the
// descriptors that travel with them (call.go), what is said of a urdmad that does not answer (silence.go), and its end.
//
// The package must not know what requests are about: devices, queue pairs, ids.
package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Session is a connection with urdmad. Its methods may be called from any
// goroutine.
type Session struct {
	control *net.UnixConn
	calling Mutex  // one request and its answer at a time
	seq     uint32 // under calling
	answers chan answer

	silenceTold bool // under calling
	onLost      func()

	dead    atomic.Bool   // before gone is closed
	gone    chan struct{} // closed when urdmad is lost or the session closed
	closed  atomic.Bool   // by Close
	ending  sync.Once
	readers sync.WaitGroup
}

// Dial connects to the first place that answers; ErrNoDaemon if none does. onLost
// is called once, when urdmad is lost or the session closed, from any goroutine.
func Dial(ctx context.Context, places []string, onLost func()) (*Session, error) {
	var dialer net.Dialer
	var all []error
	for _, path := range places {
		conn, err := dialer.DialContext(ctx, "unixpacket", path)
		if err == nil {
			s := over(conn.(*net.UnixConn), onLost)
			s.readers.Go(s.readAnswers)
			return s, nil
		}
		if ctx.Err() != nil || errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
			return nil, fmt.Errorf("verbs: connecting to urdmad: %w", err)
		}
		all = append(all, err)
	}
	return nil, fmt.Errorf("%w: %w", ErrNoDaemon, errors.Join(all...))
}

func over(control *net.UnixConn, onLost func()) *Session {
	return &Session{control: control, onLost: onLost, answers: make(chan answer, 1), gone: make(chan struct{}),
		calling: NewMutex()}
}

// Gone is closed when urdmad is lost or the session closed.
func (s *Session) Gone() <-chan struct{} { return s.gone }

// Dead reports whether that has happened, or is just happening.
func (s *Session) Dead() bool { return s.dead.Load() }

// EndError says how the session ended: ErrClosed or ErrGone.
func (s *Session) EndError() error {
	if s.closed.Load() {
		return ErrClosed
	}
	return ErrGone
}

// Lose ends the session: urdmad is gone, or broke the protocol.
func (s *Session) Lose() {
	s.ending.Do(func() {
		s.dead.Store(true)
		close(s.gone)
		s.control.Close()
		s.onLost()
	})
}

// Close ends the session; ErrClosed if it was closed before.
func (s *Session) Close() error {
	if s.closed.Swap(true) {
		return ErrClosed
	}
	s.Lose()
	return nil
}

// Wait waits until nothing reads from urdmad any more, after Close.
func (s *Session) Wait() { s.readers.Wait() }
