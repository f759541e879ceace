// Package session is a Go program's session with urdmad: finding its control socket (places.go), HELLO
// (greet.go), requests and responses, one at a time, with their descriptors (call.go), a log line if urdmad
// does not answer (silence.go), and the end of the session.
//
// The package must not know the objects of requests: devices, queue pairs, ids.
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

// Session is a session with urdmad. Its methods may be called from any goroutine.
type Session struct {
	control *net.UnixConn
	calling Mutex  // held from a request until its response
	seq     uint32 // guarded by calling
	answers chan answer

	silenceReported bool // guarded by calling
	onLost          func()

	dead    atomic.Bool   // set before gone is closed
	gone    chan struct{} // closed when urdmad is lost or the session is closed
	closed  atomic.Bool   // set by Close
	ending  sync.Once
	readers sync.WaitGroup
}

// Dial connects to the first path where urdmad answers; ErrNoDaemon if none does. onLost is called once, from
// any goroutine, when urdmad is lost or the session is closed.
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

// Gone returns a channel that is closed when urdmad is lost or the session is closed.
func (s *Session) Gone() <-chan struct{} { return s.gone }

// Dead reports whether urdmad is lost or the session closed; it may be true just before Gone is closed.
func (s *Session) Dead() bool { return s.dead.Load() }

// EndError returns how the session ended: ErrClosed or ErrGone.
func (s *Session) EndError() error {
	if s.closed.Load() {
		return ErrClosed
	}
	return ErrGone
}

// Lose ends the session because urdmad has ended or violated the protocol.
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

// Wait waits, after Close, until no goroutine reads from urdmad any more.
func (s *Session) Wait() { s.readers.Wait() }
