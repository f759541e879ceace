package watch

import (
	"errors"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"urdma/urdmad/attach/tap"
	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/urdmad/control/objects"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/connect"
	"urdma/urdmad/core/engine"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// addrFrom4 makes an Addr from an IPv4 address and a port number.
func addrFrom4(ip [4]byte, port uint16) abi.Addr {
	a, _ := abi.AddrFrom(netip.AddrPortFrom(netip.AddrFrom4(ip), port)) // an IPv4 address has no zone to refuse
	return a
}

// owned is the owner of an id's connection.
type owned struct{ id *cm.ID }

func (o owned) Owner() *cm.ID { return o.id }

// TestCaptureFilter: each field of the filter by itself, and the frames that a stranger may see.
func TestCaptureFilter(t *testing.T) {
	e := engine.New(engine.Config{})
	us, them := [4]byte{10, 9, 0, 1}, [4]byte{10, 9, 0, 2}
	at := func(ip [4]byte, port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.AddrFrom4(ip), port) }
	manager, _ := connect.New(e, cm.Config{Addrs: []netip.Addr{netip.AddrFrom4(us)}, Timeout: 1, MaxDepth: 1})
	stranger := os.Getuid() + 1
	mine := sessionOf(os.Getuid(), 100)
	theirs := sessionOf(stranger, 200)
	listener := manager.Create(objects.Owner{Session: theirs}, nil)
	if err := manager.Bind(listener, netip.AddrPortFrom(netip.AddrFrom4(us), 7471)); err != nil {
		t.Fatal(err)
	}
	if err := manager.Listen(listener, 1); err != nil {
		t.Fatal(err)
	}
	connection := func(x *control.Session) *qp.Connection {
		return &qp.Connection{Owner: owned{manager.Create(objects.Owner{Session: x}, nil)}}
	}
	sights := map[string]tap.Sight{
		"mine":      {Conn: connection(mine), Our: at(us, 50000), Peer: at(them, 50001)},
		"theirs":    {Conn: connection(theirs), Our: at(us, 50002), Peer: at(them, 50003), Dev: 1},
		"request":   {Our: at(us, 7471), Peer: at(them, 50003)},
		"elsewhere": {Our: at(us, 7472), Peer: at(them, 50004)},
		"ARP":       {Our: at(us, 0), Peer: at(them, 0)},
		"foreign":   {Foreign: true, Our: at([4]byte{10, 9, 0, 77}, 0), Peer: at(them, 0)},
		"broken":    {},
	}
	any := abi.CaptureRequest{Device: abi.NoDevice}
	with := func(change func(f *abi.CaptureRequest)) abi.CaptureRequest { f := any; change(&f); return f }
	for _, c := range []struct {
		name   string
		uid    int
		filter abi.CaptureRequest
		sees   []string
	}{
		{"everything", os.Getuid(), any, []string{"mine", "theirs", "request", "elsewhere", "ARP", "broken"}},
		{"all", os.Getuid(), with(func(f *abi.CaptureRequest) { f.Flags = abi.CaptureAll }),
			[]string{"mine", "theirs", "request", "elsewhere", "ARP", "foreign", "broken"}},
		{"device", os.Getuid(), with(func(f *abi.CaptureRequest) { f.Device = 1 }), []string{"theirs"}},
		{"pid", os.Getuid(), with(func(f *abi.CaptureRequest) { f.PID = 200 }), []string{"theirs", "request"}},
		{"QP nobody has", os.Getuid(), with(func(f *abi.CaptureRequest) { f.QPN = 7 }), nil},
		{"their host", os.Getuid(), with(func(f *abi.CaptureRequest) { f.Host = addrFrom4(them, 0) }),
			[]string{"mine", "theirs", "request", "elsewhere", "ARP"}},
		{"port number", os.Getuid(), with(func(f *abi.CaptureRequest) { f.Host.PortBE = [2]byte{50003 >> 8, 50003 & 255} }),
			[]string{"theirs", "request"}},
		{"our host, their port number", os.Getuid(), with(func(f *abi.CaptureRequest) {
			f.Host = addrFrom4(us, 50003)
		}), nil},
		{"a stranger", stranger, any, []string{"theirs", "request"}},
		{"a stranger who wants all", stranger, with(func(f *abi.CaptureRequest) { f.Flags = abi.CaptureAll }),
			[]string{"theirs", "request"}},
		{"a stranger who wants mine", stranger, with(func(f *abi.CaptureRequest) { f.PID = 100 }), nil},
		{"nobody", account.Nobody, any, nil},
	} {
		filter := &capture{w: &worker{Worker: &control.Worker{CM: manager}},
			viewer: &account.Owner{UID: c.uid, Admin: c.uid == os.Getuid()}, filter: c.filter}
		want := map[string]bool{}
		for _, name := range c.sees {
			want[name] = true
		}
		for name, s := range sights {
			if got := filter.wants(&s); got != want[name] {
				t.Errorf("%s: %s is shown: %v, expected %v", c.name, name, got, want[name])
			}
		}
	}
}

// TestCaptureRoom: one user who does not see everything can't have all captures, and the last place is reserved for a
// user who does.
func TestCaptureRoom(t *testing.T) {
	a, b, admin := &account.Owner{UID: 1000}, &account.Owner{UID: 1001}, &account.Owner{UID: 0, Admin: true}
	for _, c := range []struct {
		running []*account.Owner
		next    *account.Owner
		want    error
	}{
		{nil, a, nil},
		{[]*account.Owner{a}, a, nil},
		{[]*account.Owner{a, a}, a, syscall.EBUSY},
		{[]*account.Owner{a, a}, b, nil},
		{[]*account.Owner{a, a, b}, b, syscall.EBUSY},
		{[]*account.Owner{a, a, b}, admin, nil},
		{[]*account.Owner{admin, admin, admin}, admin, nil},
		{[]*account.Owner{admin, admin, admin}, a, syscall.EBUSY},
		{[]*account.Owner{a, a, b, admin}, admin, syscall.EBUSY},
	} {
		w := &worker{}
		for _, o := range c.running {
			w.captures = append(w.captures, &capture{viewer: o})
		}
		if err := w.captureRoom(c.next); !errors.Is(err, c.want) {
			t.Errorf("user %d beside %d captures: %v, expected %v", c.next.UID, len(c.running), err, c.want)
		}
	}
}

// TestEventsAreTheirOwners: a trace has the events that its viewer may see and has requested; bookmarks pass every
// filter except the user's.
func TestEventsAreTheirOwners(t *testing.T) {
	mine, other, admin := &account.Owner{UID: 1000, PID: 100}, &account.Owner{UID: 1001, PID: 200},
		&account.Owner{Admin: true}
	call, mark := &abi.TraceEvent{Kind: abi.TraceCall, QPN: 5, PID: 100}, &abi.TraceEvent{Kind: abi.TraceMark, PID: 100}
	for _, c := range []struct {
		name   string
		viewer *account.Owner
		filter abi.CaptureRequest
		owner  *account.Owner
		event  *abi.TraceEvent
		want   bool
	}{
		{"my own", mine, abi.CaptureRequest{}, mine, call, true},
		{"another user's", other, abi.CaptureRequest{}, mine, call, false},
		{"nobody's", mine, abi.CaptureRequest{}, nil, call, false},
		{"nobody's, for who sees all", admin, abi.CaptureRequest{}, nil, call, true},
		{"the process", mine, abi.CaptureRequest{PID: 100}, mine, call, true},
		{"another process", mine, abi.CaptureRequest{PID: 101}, mine, call, false},
		{"the queue pair", mine, abi.CaptureRequest{QPN: 5}, mine, call, true},
		{"another queue pair", mine, abi.CaptureRequest{QPN: 6}, mine, call, false},
		{"a bookmark beside a queue pair", mine, abi.CaptureRequest{QPN: 6, PID: 101}, mine, mark, true},
		{"another user's bookmark", other, abi.CaptureRequest{}, mine, mark, false},
	} {
		filter := &capture{viewer: c.viewer, filter: c.filter}
		if got := filter.wantsEvent(c.owner, c.event); got != c.want {
			t.Errorf("%s: shown: %v, expected %v", c.name, got, c.want)
		}
	}
}
