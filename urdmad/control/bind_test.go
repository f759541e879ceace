package control_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"urdma/urdmad/control"
	"urdma/verbs/abi"
)

// binder is a client with an event channel.
func binder(t *testing.T, r *running) (*client, func() error) {
	t.Helper()
	c, err := dial(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.conn.Close() })
	if _, err := call[abi.HelloRequest, abi.HelloResponse](c, abi.Hello,
		abi.HelloRequest{ABIVersion: abi.Version}); err != nil {
		t.Fatal(err)
	}
	ch, err := call[abi.Header, abi.HandleMessage](c, abi.CMCreateChannel, abi.Header{})
	if err != nil {
		t.Fatal(err)
	}
	return c, func() error {
		id, err := call[abi.CMCreateIDRequest, abi.HandleMessage](c, abi.CMCreateID,
			abi.CMCreateIDRequest{Channel: ch.Handle, PS: abi.PSTCP})
		if err != nil {
			return err
		}
		_, err = call[abi.CMBindRequest, abi.CMBound](c, abi.CMBind,
			abi.CMBindRequest{ID: id.Handle, Addr: control.AddrFrom4([4]byte{198, 18, 0, 1}, 7471)})
		return err
	}
}

// patience is how long bind waits for a session that ends: sessionEndTimeout of package objects.
const patience = 10 * time.Second

// TestBindInUse: a port number that a living program holds is refused at once,
// and one whose holder has just gone can be had at once.
func TestBindInUse(t *testing.T) {
	r, least := start(t), time.Hour
	for range 30 {
		holder, hold := binder(t, r)
		if err := hold(); err != nil {
			t.Fatalf("after a holder that has gone: %v", err)
		}
		other, bind := binder(t, r)
		begun := time.Now()
		if err := bind(); !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatalf("in use: %v", err)
		}
		least = min(least, time.Since(begun))
		holder.conn.Close()
		if err := bind(); err != nil {
			t.Fatalf("after a holder that has gone: %v", err)
		}
		other.conn.Close()
	}
	if least >= patience {
		t.Errorf("each refusal took %v or longer", least)
	}
}
