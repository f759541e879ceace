package connect_test

import (
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/wire"
)

// asker is an id that has a route to a port number.
func asker(c *enginetest.Client, ip netip.Addr, port uint16) *cm.ID {
	id := c.Resolve(ip, port)
	id.Datagrams = true
	return id
}

// ask asks for the queue pair of the port number.
func ask(t *testing.T, c *enginetest.Client, id *cm.ID, private string) {
	t.Helper()
	c.Host.Do(func() {
		if err := c.Host.CM.Connect(id, nil, &cm.Param{PrivateData: []byte(private), QPN: 77}); err != nil {
			t.Error(err)
		}
	})
}

func name(t *testing.T, c *enginetest.Client, id *cm.ID, private string) {
	t.Helper()
	c.Host.Do(func() {
		if err := c.Host.CM.Accept(id, nil, &cm.Param{PrivateData: []byte(private), QPN: 5, QKey: 0x01234567}); err != nil {
			t.Error(err)
		}
	})
}

// TestService: a listening program answers with the queue pair for its port number, also if packets are lost. Each
// question reaches the program once.
func TestService(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		for _, lost := range []wire.TRPOp{wire.OpData, wire.OpResolve, wire.OpResolved} {
			w := enginetest.New(t, enginetest.Options{Seed: 20})
			ca, cb := ends(w, local)
			cb.Listen(7000, 4).Datagrams = true
			id := asker(ca, cb.Host.Addr, 7000)
			w.SetPath(dropFirst(lost, 2))
			long := strings.Repeat("p", 180)
			ask(t, ca, id, long)
			ev := cb.Event(cm.EventConnectRequest, time.Second)
			if string(ev.Param.PrivateData) != long || ev.Param.QPN != 77 {
				t.Errorf("asked %+v", ev.Param)
			}
			name(t, cb, ev.Child, strings.Repeat("q", 250))
			got := ca.Event(cm.EventEstablished, time.Second)
			if got.Param.QPN != 5 || got.Param.QKey != 0x01234567 || len(got.Param.PrivateData) != 250 ||
				got.Peer.Port() != 7000 {
				t.Errorf("answered %+v", got)
			}
			w.Pass(10 * time.Second)
			ca.NoEvent()
			cb.NoEvent()
			ca.Destroy(id)
			cb.Destroy(ev.Child)
		}
	})
}

// TestServiceRefused: there is no listener, or one for connections, or the program refuses; and a listener
// for datagrams accepts no connections.
func TestServiceRefused(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 21})
		ca, cb := ends(w, local)
		cb.Listen(7001, 4)
		l := cb.Listen(7002, 4)
		l.Datagrams = true
		for port := uint16(7000); port <= 7002; port++ {
			ask(t, ca, asker(ca, cb.Host.Addr, port), "")
			if port == 7002 {
				ev := cb.Event(cm.EventConnectRequest, time.Second)
				cb.Host.Do(func() { _ = cb.Host.CM.Reject(ev.Child, []byte("no")) })
			}
			ev := ca.Event(cm.EventUnreachable, time.Second)
			if ev.Err != syscall.ECONNREFUSED || (string(ev.Param.PrivateData) == "no") != (port == 7002) {
				t.Errorf("port %d: %+v", port, ev)
			}
		}
		ca.Connect(ca.Resolve(cb.Host.Addr, 7002), ca.NewQP(nil), enginetest.Param(1, ""))
		ca.Event(cm.EventRejected, time.Second)
		cb.NoEvent()
	})
}

// TestServiceSilence: a request to a host that doesn't answer ends without leaving state; requests beyond
// the backlog are answered later.
func TestServiceSilence(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 22, ConnectTimeout: 3 * time.Second})
		ca, cb := ends(w, local)
		l := cb.Listen(7000, 1)
		l.Datagrams = true
		first, second := asker(ca, cb.Host.Addr, 7000), asker(ca, cb.Host.Addr, 7000)
		ask(t, ca, first, "1")
		ask(t, ca, second, "2")
		one := cb.Event(cm.EventConnectRequest, time.Second)
		w.Pass(500 * time.Millisecond)
		cb.NoEvent()
		name(t, cb, one.Child, "")
		ca.Event(cm.EventEstablished, time.Second)
		two := cb.Event(cm.EventConnectRequest, 2*time.Second)
		if !local {
			w.SetPath(dropFirst(wire.OpResolved, 1<<30))
			ev := ca.Event(cm.EventUnreachable, 10*time.Second)
			if ev.Err != syscall.ETIMEDOUT || ev.ID != second {
				t.Errorf("%+v", ev)
			}
		}
		name(t, cb, two.Child, "too late")
		if local {
			ca.Event(cm.EventEstablished, time.Second)
		}
		w.Pass(10 * time.Second)
		ca.NoEvent()
		for _, id := range []*cm.ID{first, second} {
			ca.Destroy(id)
		}
		for _, id := range []*cm.ID{one.Child, two.Child, l} {
			cb.Destroy(id)
		}
		w.Pass(time.Minute)
		for _, h := range []*enginetest.Host{w.A, w.B} {
			if n := h.CM.Len(); n != 0 {
				t.Errorf("host %s: %d entries are left", h.Name, n)
			}
		}
	})
}

// TestServiceSlow: a program may take minutes to answer, as long as its host confirms the question; a late answer is
// repeated, too.
func TestServiceSlow(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 24, ConnectTimeout: 3 * time.Second})
		ca, cb := ends(w, local)
		cb.Listen(7000, 4).Datagrams = true
		id := asker(ca, cb.Host.Addr, 7000)
		ask(t, ca, id, "")
		ev := cb.Event(cm.EventConnectRequest, time.Second)
		w.Pass(5 * time.Minute)
		ca.NoEvent()
		cb.NoEvent()
		w.SetPath(dropFirst(wire.OpResolved, 2))
		name(t, cb, ev.Child, "")
		ca.Event(cm.EventEstablished, 10*time.Second)
		cb.NoEvent()

		again := asker(ca, cb.Host.Addr, 7000)
		ask(t, ca, again, "")
		late := cb.Event(cm.EventConnectRequest, time.Second)
		cb.Host.Do(func() { _ = cb.Host.CM.Reject(late.Child, nil) })
		ca.Event(cm.EventUnreachable, 10*time.Second)
	})
}

// TestServiceSlowOverRoCE: no message of InfiniBand says that a program has not answered a SIDR_REQ yet, so a
// copy of the request gets no answer, and the requester repeats it.
func TestServiceSlowOverRoCE(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 25, RoCE: true})
	ca, cb := ends(w, false)
	cb.Listen(7000, 4).Datagrams = true
	ask(t, ca, asker(ca, cb.Host.Addr, 7000), "")
	ev := cb.Event(cm.EventConnectRequest, time.Second)
	w.Pass(time.Second) // the request is repeated after 50 ms
	ca.NoEvent()
	name(t, cb, ev.Child, "")
	ca.Event(cm.EventEstablished, 10*time.Second)
}

// TestServiceWaitEnds: a question ends after at most an hour, whatever the other host answers.
func TestServiceWaitEnds(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 26, ConnectTimeout: 3 * time.Second})
		ca, cb := ends(w, local)
		cb.Listen(7000, 4).Datagrams = true
		ask(t, ca, asker(ca, cb.Host.Addr, 7000), "")
		cb.Event(cm.EventConnectRequest, time.Second)
		w.Pass(3590 * time.Second)
		ca.NoEvent()
		if ev := ca.Event(cm.EventUnreachable, 15*time.Second); ev.Err != syscall.ETIMEDOUT {
			t.Errorf("ended with %v", ev.Err)
		}
	})
}

// TestServiceShort: a request that is too short for its answer is not answered.
func TestServiceShort(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 23})
	ca, cb := ends(w, false)
	cb.Listen(7000, 4).Datagrams = true
	id := asker(ca, cb.Host.Addr, 7000)
	w.SetPath(linked.Path{Drop: func(_ uint64, frame []byte) bool {
		var f wire.Frame
		if f.Parse(frame, len(frame)) == nil && f.Proto == wire.ProtoUDP && frame[f.PayloadOff+8]>>4 == byte(wire.OpResolve) {
			frame[17]--                 // the IPv4 packet, of which the last byte is padding,
			frame[f.PayloadOff-4+1]--   // and the datagram
			frame[f.PayloadOff-2] = 0   // without a checksum
			frame[f.PayloadOff-1] = 0   //
			frame[24], frame[25] = 0, 0 // and with a right one of the header
			sum := ^wire.Fold(wire.Checksum(0, frame[14:34]))
			frame[24], frame[25] = byte(sum>>8), byte(sum)
		}
		return false
	}})
	ask(t, ca, id, "")
	w.Pass(2 * time.Second)
	cb.NoEvent()
	for why, n := range w.B.Engine.Interface(0).Stats.Dropped {
		if n != 0 {
			t.Errorf("%d packets were dropped for another reason: %s", n, why)
		}
	}
}

// TestServiceFamilies: within one urdmad an id of one address family asks at the loopback address of the other.
func TestServiceFamilies(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		w := enginetest.New(t, enginetest.Options{Seed: 24, Datagrams: true, IPv6: v6})
		ca, cb := ends(w, true)
		other := netip.IPv6Loopback()
		if v6 {
			other = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		}
		cb.ListenAt(netip.IPv6Unspecified(), 7000, 4).Datagrams = true
		id := ca.ResolveFrom(ca.Host.Addr, other, 7000)
		id.Datagrams = true
		ask(t, ca, id, "")
		name(t, cb, cb.Event(cm.EventConnectRequest, time.Second).Child, "")
		ca.Event(cm.EventEstablished, time.Second)
	}
}
