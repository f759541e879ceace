package control

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"urdma/reason"
	"urdma/urdmad/control/memfd"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// Administration is what a Server asks of the daemon for ADMIN. Each returns what was done,
// in words, and may be called from any goroutine.
type Administration struct {
	Reload   func() (string, error)
	LogLevel func(level string) (string, error)
}

// admin does what a user tells urdmad to.
func (x *Session) admin(m *abi.AdminRequest, r *Reply) error {
	text, err := x.administer(m)
	if err != nil {
		return err
	}
	fd, err := memfd.Text("urdma-answer", []byte(text))
	if err != nil {
		return err
	}
	*r = Respond(&abi.InspectResponse{Bytes: uint64(len(text))}, fd)
	r.Done = func() { _ = unix.Close(fd) } // the caller has its copy
	return nil
}

var errNotAdmin = fmt.Errorf("control: only urdmad's user and root may do that: %w", syscall.EPERM)

func (x *Session) administer(m *abi.AdminRequest) (string, error) {
	s := x.s
	switch m.Op {
	case abi.AdminEndQP:
		return s.endPair(x, m.Object)
	case abi.AdminEndClient:
		return s.endClient(x, m.Object)
	case abi.AdminReload:
		if x.Owner.Admin && s.Admin.Reload != nil {
			return refusedText(s.Admin.Reload())
		}
		return "", errNotAdmin
	case abi.AdminLogLevel:
		if x.Owner.Admin && s.Admin.LogLevel != nil {
			level, _, _ := bytes.Cut(m.Text[:], []byte{0})
			return refusedText(s.Admin.LogLevel(string(level)))
		}
		return "", errNotAdmin
	}
	return "", fmt.Errorf("control: ADMIN of operation %d: %w", m.Op, syscall.EOPNOTSUPP)
}

// refusedText has the caller read why nothing was done; an errno would not say it.
func refusedText(done string, err error) (string, error) {
	if err != nil {
		return abi.AdminRefused + err.Error(), nil
	}
	return done, nil
}

// errNone says that there is no such object, or none that the caller may see.
var errNone = errors.New("control: there is none, or it belongs to another user")

// endPair moves a queue pair to the error state.
func (s *Server) endPair(x *Session, number uint64) (done string, err error) {
	err = fmt.Errorf("%w: queue pair %06x: %w", errNone, number, syscall.ENOENT)
	for _, w := range s.Workers {
		w.Do(func() {
			if number != uint64(uint32(number)) {
				return
			}
			q := w.Engine.QPs.Pair(uint32(number))
			if q == nil {
				return
			}
			if y := w.SessionOf(q.Client); y != nil && x.Owner.Sees(&y.Owner) {
				q.Fail(qp.EventFatal, reason.ByUser)
				done, err = fmt.Sprintf("queue pair %06x of %s is in the error state", number, y.name), nil
			}
		})
	}
	if err == nil {
		s.Log.Warn("a queue pair was ended by a user", "qpn", uint32(number), "by_pid", x.Owner.PID, "by_uid", x.Owner.UID)
	}
	return done, err
}

// endClient hangs up on a client.
func (s *Server) endClient(x *Session, id uint64) (done string, err error) {
	err = fmt.Errorf("%w: client %d: %w", errNone, id, syscall.ENOENT)
	var end *Session
	for _, w := range s.Workers {
		w.Do(func() {
			for _, y := range w.attached {
				if y.id == id && x.Owner.Sees(&y.Owner) {
					end = y
				}
			}
		})
	}
	if end == nil {
		return "", err
	}
	s.Log.Warn("a client was ended by a user", "client", end.name, "by_pid", x.Owner.PID, "by_uid", x.Owner.UID)
	end.conn.Close() // what it had goes as if it had ended
	return fmt.Sprintf("client %d, %s, is closed", id, end.name), nil
}
