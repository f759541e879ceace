// Package admin carries out the commands of ADMIN requests: ending queue pairs and clients,
// reloading the configuration, changing the log level.
package admin

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"

	"urdma/reason"
	"urdma/urdmad/control"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// Config has the functions that carry out commands of the daemon. Each returns a description of
// the result, and may be called from any goroutine. nil means that the command is not available.
type Config struct {
	Reload   func() (string, error)
	LogLevel func(level string) (string, error)
}

// Attach makes a server answer ADMIN; it must be called before Serve.
func Attach(s *control.Server, c Config) {
	a := &admin{s, c}
	s.Attach(&control.Hooks{}, map[abi.Type]control.Request{abi.Admin: control.Answer(a.answer)})
}

type admin struct {
	*control.Server
	Config
}

func (a *admin) answer(x *control.Session, m *abi.AdminRequest, r *control.Reply) error {
	text, err := a.administer(x, m)
	if err != nil {
		return err
	}
	*r, err = control.RespondText("urdma-answer", []byte(text))
	return err
}

var errNotAdmin = fmt.Errorf("admin: only urdmad's user and root may do that: %w", syscall.EPERM)

func (a *admin) administer(x *control.Session, m *abi.AdminRequest) (string, error) {
	switch m.Op {
	case abi.AdminEndQP:
		return a.endPair(x, m.Object)
	case abi.AdminEndClient:
		return a.endClient(x, m.Object)
	case abi.AdminReload:
		if x.Owner.Admin && a.Reload != nil {
			return refusedText(a.Reload())
		}
		return "", errNotAdmin
	case abi.AdminLogLevel:
		if x.Owner.Admin && a.LogLevel != nil {
			level, _, _ := bytes.Cut(m.Text[:], []byte{0})
			return refusedText(a.LogLevel(string(level)))
		}
		return "", errNotAdmin
	}
	return "", fmt.Errorf("admin: ADMIN of operation %d: %w", m.Op, syscall.EOPNOTSUPP)
}

// refusedText returns the error as text for the caller to read, because an errno value would not
// explain it.
func refusedText(done string, err error) (string, error) {
	if err != nil {
		return abi.AdminRefused + err.Error(), nil
	}
	return done, nil
}

// errNone reports an object that does not exist, or that the caller may not see.
var errNone = errors.New("admin: there is none, or it belongs to another user")

// endPair moves a queue pair to the error state.
func (a *admin) endPair(x *control.Session, number uint64) (done string, err error) {
	err = fmt.Errorf("%w: queue pair %06x: %w", errNone, number, syscall.ENOENT)
	for _, w := range a.Workers {
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
				done, err = fmt.Sprintf("queue pair %06x of %s is in the error state", number, y.Name()), nil
			}
		})
	}
	if err == nil {
		a.Log.Warn("a queue pair was ended by a user", "qpn", uint32(number), "by_pid", x.Owner.PID, "by_uid", x.Owner.UID)
	}
	return done, err
}

// endClient disconnects a client.
func (a *admin) endClient(x *control.Session, id uint64) (done string, err error) {
	err = fmt.Errorf("%w: client %d: %w", errNone, id, syscall.ENOENT)
	var end *control.Session
	for _, w := range a.Workers {
		w.Do(func() {
			for _, y := range w.Clients() {
				if y.ID() == id && x.Owner.Sees(&y.Owner) {
					end = y
				}
			}
		})
	}
	if end == nil {
		return "", err
	}
	a.Log.Warn("a client was ended by a user", "client", end.Name(), "by_pid", x.Owner.PID, "by_uid", x.Owner.UID)
	end.HangUp()
	return fmt.Sprintf("client %d, %s, is closed", id, end.Name()), nil
}
