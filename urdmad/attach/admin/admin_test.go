package admin_test

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"urdma/inspect"
	"urdma/urdmad/attach/admin"
	"urdma/urdmad/attach/snapshot"
	"urdma/urdmad/control/controltest"
	"urdma/verbs/abi"
)

// administer sends an administrative request, such as urdma end's.
func administer(t *testing.T, socket string, op uint32, object uint64) (string, error) {
	t.Helper()
	s, err := inspect.Open(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return s.Administer(op, object, "")
}

// shown returns urdmad's snapshot.
func shown(t *testing.T, socket string) *inspect.Snapshot {
	t.Helper()
	s, err := inspect.Open(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now, err := s.Fetch()
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// attached attaches administration, and snapshots, which show its effects.
func attached(r *controltest.Running) {
	admin.Attach(r.Server, admin.Config{})
	snapshot.Attach(r.Server, snapshot.Config{})
}

// TestEndPair: an ended queue pair is in the error state; for an unknown number the answer is ENOENT.
func TestEndPair(t *testing.T) {
	r, c := controltest.StartEquipped(t, attached)
	defer c.Close()
	qpn := shown(t, r.Socket).QPs[0].QPN
	for _, other := range []uint64{0, uint64(qpn) + 1, uint64(qpn) | 1<<32, 1<<64 - 1} {
		if _, err := administer(t, r.Socket, abi.AdminEndQP, other); !errors.Is(err, syscall.ENOENT) {
			t.Errorf("queue pair %#x: %v, expected ENOENT", other, err)
		}
	}
	if done, err := administer(t, r.Socket, abi.AdminEndQP, uint64(qpn)); err != nil ||
		!strings.Contains(done, "error state") {
		t.Errorf("%q, %v", done, err)
	}
	if s := shown(t, r.Socket); len(s.QPs) != 1 || s.QPs[0].State != "ERR" {
		t.Errorf("queue pairs %+v, expected one in ERR", s.QPs)
	}
}

// TestEndClient: an ended client loses its connection and all its objects, also if it ends itself.
func TestEndClient(t *testing.T) {
	for _, itself := range []bool{false, true} {
		r, c := controltest.StartEquipped(t, attached)
		id := shown(t, r.Socket).Clients[0].ID
		if _, err := administer(t, r.Socket, abi.AdminEndClient, id+1); !errors.Is(err, syscall.ENOENT) {
			t.Errorf("another client: %v, expected ENOENT", err)
		}
		if itself {
			// the answer may not arrive any more
			_, _ = controltest.Call[abi.AdminRequest, abi.InspectResponse](c, abi.Admin,
				abi.AdminRequest{Op: abi.AdminEndClient, Object: id})
		} else if _, err := administer(t, r.Socket, abi.AdminEndClient, id); err != nil {
			t.Error(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if n, err := c.Read(make([]byte, abi.MaxMessage)); n != 0 || err != nil && !errors.Is(err, io.EOF) &&
			!errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the client reads %d bytes, %v, expected the end", n, err)
		}
		for end := time.Now().Add(time.Minute); len(shown(t, r.Socket).Clients) > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the client is still there")
			}
		}
	}
}

// TestAdministration: the daemon's answer arrives at the client, a refusal, too; an unknown operation is EOPNOTSUPP.
func TestAdministration(t *testing.T) {
	failing := errors.New("there is no file")
	r := controltest.Start(t, func(r *controltest.Running) {
		admin.Attach(r.Server, admin.Config{Reload: func() (string, error) { return "", failing },
			LogLevel: func(l string) (string, error) { return "level <" + l + ">", nil }})
	})
	if _, err := administer(t, r.Socket, abi.AdminReload, 0); !errors.Is(err, inspect.ErrRefused) ||
		!strings.Contains(err.Error(), failing.Error()) {
		t.Errorf("a reload that fails: %v", err)
	}
	if done, err := administer(t, r.Socket, abi.AdminLogLevel, 0); err != nil || done != "level <>" {
		t.Errorf("%q, %v", done, err)
	}
	if _, err := administer(t, r.Socket, 99, 0); !errors.Is(err, syscall.EOPNOTSUPP) {
		t.Errorf("operation 99: %v, expected EOPNOTSUPP", err)
	}
}
