package control_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"urdma/urdmad/control"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// inDomain opens the XRC domain of a file.
func inDomain(t *testing.T, c *client, file *os.File, flags uint32) uint32 {
	t.Helper()
	h, err := callWith[abi.OpenXRCDRequest, abi.HandleMessage](c, abi.OpenXRCD,
		abi.OpenXRCDRequest{Context: 1, OFlags: flags}, int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return h.Handle
}

// TestXRCOutlives: what one client made in an XRC domain and another holds, too,
// stays when the first goes; its own queues go with it, and with the last handle
// the domain.
func TestXRCOutlives(t *testing.T) {
	r := start(t)
	file, err := os.Create(filepath.Join(t.TempDir(), "domain"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var clients [2]*client
	var domains [2]uint32
	for i := range clients {
		if clients[i], err = dial(r.socket); err != nil {
			t.Fatal(err)
		}
		if err := clients[i].makeObjects(); err != nil {
			t.Fatal(err)
		}
		domains[i] = inDomain(t, clients[i], file, unix.O_CREAT)
	}
	a, b := clients[0], clients[1]
	if _, err := call[abi.CreateSRQRequest, abi.SRQResponse](a, abi.CreateSRQ,
		abi.CreateSRQRequest{PD: 2, MaxWR: 4, MaxSGE: 1,
			SRQType: abi.SRQTypeXRC, XRCD: domains[0], CQ: 4}); err != nil {
		t.Fatal(err)
	}
	made, err := call[abi.CreateQPRequest, abi.QPResponse](a, abi.CreateQP,
		abi.CreateQPRequest{QPType: abi.QPTypeXRCRecv, XRCD: domains[0]})
	if err != nil {
		t.Fatal(err)
	}
	opened, err := call[abi.OpenQPRequest, abi.HandleMessage](b, abi.OpenQP,
		abi.OpenQPRequest{XRCD: domains[1], QPNum: made.QPN})
	if err != nil {
		t.Fatal(err)
	}
	a.conn.Close()
	awaitClients(t, r, 1)
	if _, err := call[abi.HandleMessage, abi.QueryQPResponse](b, abi.QueryQP, opened); err != nil {
		t.Errorf("the queue pair that is still held: %v", err)
	}
	if _, err := modifyTo(b, opened.Handle, abi.QPMaskState|abi.QPMaskPort|abi.QPMaskPKeyIndex|abi.QPMaskAccessFlags,
		abi.QPAttr{QPState: abi.QPSInit, PortNum: 1}); err != nil {
		t.Error(err)
	}
	b.refuses(t, abi.CloseXRCD, domains[1], syscall.EBUSY)
	b.takes(t, abi.DestroyQP, opened.Handle)
	if _, err := call[abi.OpenQPRequest, abi.HandleMessage](b, abi.OpenQP,
		abi.OpenQPRequest{XRCD: domains[1], QPNum: made.QPN}); err == nil {
		t.Error("the queue pair outlives its last reference")
	}
	b.takes(t, abi.CloseXRCD, domains[1])
	if _, err := callWith[abi.OpenXRCDRequest, abi.HandleMessage](b, abi.OpenXRCD, abi.OpenXRCDRequest{Context: 1},
		int(file.Fd())); err == nil {
		t.Error("the domain outlives its last handle")
	}
}

// TestTargetGone: a feature is told once that a queue pair for receiving is gone, as one of the
// client that made it, whoever held it last.
func TestTargetGone(t *testing.T) {
	type told struct {
		client uint64
		qpn    uint32
	}
	var gone []told
	hooks := control.Hooks{Gone: func(x *control.Session, v any) {
		if q, ok := v.(*qp.QP); ok {
			gone = append(gone, told{x.ID(), q.QPN})
		}
	}}
	r, a := startEquipped(t, func(s *control.Server) { s.Attach(&hooks, nil) })
	b, err := dial(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.makeObjects(); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "domain"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	xrcd := inDomain(t, a, file, unix.O_CREAT)
	q, err := call[abi.CreateQPRequest, abi.QPResponse](a, abi.CreateQP, abi.CreateQPRequest{QPType: abi.QPTypeXRCRecv,
		PD: abi.NoHandle, SendCQ: abi.NoHandle, RecvCQ: abi.NoHandle, SRQ: abi.NoHandle, XRCD: xrcd})
	if err != nil {
		t.Fatal(err)
	}
	opened, err := call[abi.OpenQPRequest, abi.HandleMessage](b, abi.OpenQP,
		abi.OpenQPRequest{XRCD: inDomain(t, b, file, 0), QPNum: q.QPN})
	if err != nil {
		t.Fatal(err)
	}
	a.takes(t, abi.DestroyQP, q.Handle)
	b.takes(t, abi.DestroyQP, opened.Handle)
	w := r.server.Workers[0]
	w.Do(func() {
		if want := (told{w.Clients()[0].ID(), q.QPN}); len(gone) != 1 || gone[0] != want {
			t.Errorf("told of %v, expected of %v", gone, want)
		}
	})
}

// TestOpenedTargets: however often a queue pair is opened, it is one queue pair of its
// port (64 there are), and goes on to be one when who made it goes.
func TestOpenedTargets(t *testing.T) {
	r := start(t)
	file, err := os.Create(filepath.Join(t.TempDir(), "domain"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	member := func() (*client, uint32) {
		c, err := dial(r.socket)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.makeObjects(); err != nil {
			t.Fatal(err)
		}
		return c, inDomain(t, c, file, unix.O_CREAT)
	}
	target := func(c *client, d uint32) (abi.QPResponse, error) {
		return call[abi.CreateQPRequest, abi.QPResponse](c, abi.CreateQP,
			abi.CreateQPRequest{QPType: abi.QPTypeXRCRecv, XRCD: d})
	}
	a, da := member()
	made, err := target(a, da)
	if err != nil {
		t.Fatal(err)
	}
	b, db := member()
	opened := uint32(0)
	for range 200 {
		h, err := call[abi.OpenQPRequest, abi.HandleMessage](b, abi.OpenQP, abi.OpenQPRequest{XRCD: db, QPNum: made.QPN})
		if err != nil {
			t.Fatal(err)
		}
		opened = h.Handle
	}
	a.conn.Close()
	awaitClients(t, r, 1)
	b.takes(t, abi.DestroyQP, opened)
	left := 0
	for ; left < 100; left++ {
		if _, err := target(b, db); err != nil {
			break
		}
	}
	if left != 64-2 { // one of makeObjects, and the one that is opened
		t.Errorf("room for %d queue pairs, expected 62", left)
	}
}

// TestXRCFileIsARight: who may not open a file gets no part in its domain, neither by
// a descriptor that only names it (O_PATH) nor by a file of his own that has got
// the inode number of one that is gone.
func TestXRCFileIsARight(t *testing.T) {
	r := start(t)
	c, err := dial(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.makeObjects(); err != nil {
		t.Fatal(err)
	}
	open := func(fd int) error {
		_, err := callWith[abi.OpenXRCDRequest, abi.HandleMessage](c, abi.OpenXRCD, abi.OpenXRCDRequest{Context: 1}, fd)
		return err
	}
	name := filepath.Join(t.TempDir(), "domain")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	inDomain(t, c, file, unix.O_CREAT)
	named, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if open(named) == nil {
		t.Error("a descriptor with no right to the file opened its domain")
	}
	unix.Close(named)
	if err := open(int(file.Fd())); err != nil {
		t.Errorf("the file itself: %v", err)
	}
	file.Close()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		other, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if open(int(other.Fd())) == nil {
			t.Error("another file opened the domain of one that is gone")
		}
		other.Close()
		os.Remove(name)
	}
}

func (c *client) takes(t *testing.T, kind abi.Type, handle uint32) {
	t.Helper()
	c.refuses(t, kind, handle, 0)
}

// refuses makes a request whose answer is its status.
func (c *client) refuses(t *testing.T, kind abi.Type, handle uint32, want syscall.Errno) {
	t.Helper()
	h, err := call[abi.HandleMessage, abi.Header](c, kind, abi.HandleMessage{Handle: handle})
	if err != nil || syscall.Errno(h.Status) != want {
		t.Errorf("%v: %v, %v, expected %v", kind, err, syscall.Errno(h.Status), want)
	}
}
