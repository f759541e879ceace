package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"urdma/ancillary"
	"urdma/verbs/abi"
)

// answer is one response with its descriptors.
type answer struct {
	body []byte
	fds  []int
	cut  bool // the kernel dropped the descriptors because there was no room for all
}

func (a *answer) drop() {
	CloseAll(a.fds)
	a.fds = nil
}

func (a *answer) header() abi.Header {
	h, _ := abi.Decode[abi.Header](a.body[:abi.Size[abi.Header]()])
	return h
}

// CloseAll closes descriptors.
func CloseAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd) // nothing to do about a failed close
	}
}

// AnyFDs is a wantFDs for callers that check the number of descriptors themselves.
const AnyFDs = -1

// Call sends a request, whose header it fills in, and decodes the response. out may be nil if the response is
// a bare header. On success there are exactly wantFDs descriptors, which the caller owns.
//
// It waits for urdmad only until ctx ends. The object that the request creates is then destroyed when the
// response comes.
func Call[Resp, Req any](ctx context.Context, s *Session, t abi.Type, req *Req, out *Resp, sendFD, wantFDs int) ([]int,
	error) {
	a, err := s.exchange(ctx, t, abi.Bytes(req), sendFD)
	if err != nil {
		return nil, err
	}
	if out != nil {
		copy(abi.Bytes(out), a.body) // also on failure: the response to HELLO contains urdmad's version
	}
	if status := a.header().Status; status != 0 {
		a.drop()
		return nil, refused(t, status)
	}
	if a.cut {
		s.takeBack(t, &a)
		return nil, refused(t, int32(unix.EMFILE))
	}
	if wantFDs != AnyFDs && len(a.fds) != wantFDs || out != nil && len(a.body) < abi.Size[Resp]() {
		a.drop()
		return nil, fmt.Errorf("verbs: %s: response of %d bytes with %d descriptors: %w", t.Text(), len(a.body), len(a.fds),
			unix.EPROTO)
	}
	return a.fds, nil
}

// takeBack destroys the object in a response that nobody will use.
func (s *Session) takeBack(t abi.Type, a *answer) {
	a.drop()
	// all responses that create an object begin in this way
	made, ok := abi.Decode[abi.HandleMessage](a.body[:min(len(a.body), abi.Size[abi.HandleMessage]())])
	switch undo := t.Undo(); {
	case a.header().Status != 0:
	case t.Way() == abi.Moves: // urdmad would not see later posts in the old memory
		s.Lose()
	case undo != abi.None && ok:
		_ = s.CallHandle(undo, made.Handle) // fails only if urdmad has ended, and the object with it
	}
}

// CallHandle makes a request with one object as its parameter and a bare header as response.
func (s *Session) CallHandle(t abi.Type, handle uint32) error {
	_, err := Call[abi.Header](context.Background(), s, t, &abi.HandleMessage{Handle: handle}, nil, -1, 0)
	return err
}

// exchange sends a request and receives its response, one at a time.
func (s *Session) exchange(ctx context.Context, t abi.Type, req []byte, sendFD int) (answer, error) {
	if err := s.calling.Lock(ctx); err != nil {
		return answer{}, err
	}
	if err := s.send(t, req, sendFD); err != nil {
		s.calling.Unlock()
		return answer{}, err
	}
	silent := time.NewTimer(silence)
	defer silent.Stop()
	for {
		select {
		case a := <-s.answers:
			defer s.calling.Unlock()
			return s.expected(a, t)
		case <-s.gone:
			defer s.calling.Unlock()
			s.dropAnswer()
			return answer{}, s.EndError()
		case <-ctx.Done():
			go s.abandon(t)
			return answer{}, ctx.Err()
		case <-silent.C:
			s.reportSilence()
		}
	}
}

// send requires that calling is held, as does waiting for the response.
func (s *Session) send(t abi.Type, req []byte, sendFD int) error {
	if s.dead.Load() {
		return s.EndError()
	}
	s.seq++
	h := abi.Header{Type: t, Length: uint32(len(req)), Seq: s.seq}
	copy(req, abi.Bytes(&h))
	var oob []byte
	if sendFD >= 0 {
		oob = unix.UnixRights(sendFD)
	}
	if _, _, err := s.control.WriteMsgUnix(req, oob, nil); err != nil {
		if sendFD >= 0 && errors.Is(err, unix.EBADF) { // the program has closed the descriptor to send
			return err
		}
		s.Lose()
		return s.EndError()
	}
	return nil
}

// expected returns the response if it belongs to the last request.
func (s *Session) expected(a answer, t abi.Type) (answer, error) {
	if h := a.header(); h.Type != t || h.Seq != s.seq {
		a.drop()
		s.Lose()
		return answer{}, s.EndError()
	}
	return a, nil
}

// abandon waits for a response that the caller no longer waits for. Until it comes no other request can be
// sent.
func (s *Session) abandon(t abi.Type) {
	select {
	case a := <-s.answers:
		a, err := s.expected(a, t)
		s.calling.Unlock()
		if err == nil {
			s.takeBack(t, &a)
		}
	case <-s.gone:
		s.dropAnswer()
		s.calling.Unlock()
	}
}

// dropAnswer discards a response that came when the session ended.
func (s *Session) dropAnswer() {
	select {
	case a := <-s.answers:
		a.drop()
	default:
	}
}

// readAnswers reads the control socket; it runs in its own goroutine, and returns when urdmad has ended.
func (s *Session) readAnswers() {
	defer s.Lose()
	buf := make([]byte, abi.MaxMessage)
	oob := make([]byte, unix.CmsgSpace(4*abi.MaxFDs))
	for {
		n, oobn, flags, _, err := s.control.ReadMsgUnix(buf, oob)
		fds, _ := ancillary.Descriptors(oob[:oobn]) // if they can't be read there are none
		a := answer{body: slices.Clone(buf[:max(n, 0)]), fds: fds}
		if err != nil || n < abi.Size[abi.Header]() {
			a.drop()
			return
		}
		if a.cut = flags&unix.MSG_CTRUNC != 0; a.cut {
			a.drop()
		}
		select {
		case s.answers <- a:
		default: // urdmad sends only responses
			a.drop()
			return
		}
		if s.dead.Load() {
			s.dropAnswer() // the caller may no longer wait
		}
	}
}
