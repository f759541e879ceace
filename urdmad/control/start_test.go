package control_test

import (
	"net"
	"testing"

	"urdma/inspect"
	"urdma/urdmad/attach/injector"
	snapshots "urdma/urdmad/attach/snapshot"
	"urdma/urdmad/attach/watch"
	"urdma/urdmad/control"
	"urdma/urdmad/control/controltest"
	"urdma/verbs/abi"
)

// running is a urdmad's inside on a loopback port.
type running struct {
	server    *control.Server
	snapshots *snapshots.Taker
	socket    string
}

func start(t testing.TB, change ...func(*control.Server)) *running {
	t.Helper()
	var s *snapshots.Taker
	r := controltest.Start(t, func(r *controltest.Running) {
		for _, c := range change {
			c(r.Server)
		}
		v, n := watch.Attach(r.Server, nil), injector.Attach(r.Server, injector.Config{})
		s = snapshots.Attach(r.Server, snapshots.Config{Loop: func(int) inspect.Loop { return inspect.Loop{} },
			Parts: []snapshots.Part{n.Show, v.Show}})
	})
	return &running{r.Server, s, r.Socket}
}

// client speaks the control protocol.
type client struct{ conn *net.UnixConn }

func dial(socket string) (*client, error) {
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: socket, Net: "unixpacket"})
	return &client{conn}, err
}

// call sends a request and decodes the response; descriptors are dropped.
func call[Q, R any](c *client, kind abi.Type, q Q) (r R, err error) {
	return callWith[Q, R](c, kind, q)
}

// callWith sends descriptors along.
func callWith[Q, R any](c *client, kind abi.Type, q Q, send ...int) (r R, err error) {
	return controltest.Call[Q, R](c.caller(), kind, q, send...)
}

func (c *client) caller() *controltest.Caller { return &controltest.Caller{UnixConn: c.conn} }

// startEquipped is start, with a client that has made its objects.
func startEquipped(t *testing.T, setUp ...func(*control.Server)) (*running, *client) {
	t.Helper()
	r := start(t, setUp...)
	c, err := dial(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.makeObjects(); err != nil {
		t.Fatal(err)
	}
	return r, c
}

// makeObjects makes one of each.
func (c *client) makeObjects() error { return c.caller().MakeObjects() }

func fetch(socket string) ([]byte, error) {
	s, err := inspect.Open(socket)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.FetchJSON()
}
