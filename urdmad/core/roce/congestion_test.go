package roce_test

import (
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/engine/enginetest"
	ours "urdma/urdmad/core/roce"
	"urdma/wire"
	"urdma/wire/roce"
)

// TestCongestion: packets allow marking. A receiver of marked packets tells the sender, not too often, and
// the sender reduces its window. For the answers to a Read, the requester reduces its window itself.
func TestCongestion(t *testing.T) {
	for name, o := range map[string]enginetest.Options{"IPv4": {}, "IPv6": {IPv6: true}} {
		t.Run(name, func(t *testing.T) {
			o.Seed, o.RoCE, o.RNRRetry = 9, true, 7
			w := enginetest.New(t, o)
			a, b := w.Pair(false, nil)
			ma, mb := a.Client.Register(1<<20, enginetest.ReadWrite), b.Client.Register(1<<20, enginetest.ReadWrite)
			window := func() int {
				s, _ := a.Q.Carrier().(*ours.Conn).Inspect()
				return s.Window
			}
			for range 12 {
				a.Post(enginetest.Write(1, mb, 0), ma.SGE(0, 1<<18))
				a.Send.Completions(1)
			}
			whole := window()
			notices := 0
			w.SetPath(linked.Path{Delay: 50 * time.Microsecond, Drop: func(_ uint64, frame []byte) bool {
				mark(t, frame, &notices)
				return false
			}})
			for name, post := range map[string]func(){"Write": func() { a.Post(enginetest.Write(1, mb, 0), ma.SGE(0, 1<<18)) },
				"Read": func() { a.Post(enginetest.Read(1, mb, 0), ma.SGE(0, 1<<18)) }} {
				began, before := w.Now(), notices
				post()
				a.Send.Completions(1)
				if most := int(w.Now()-began)/50_000 + 1; notices == before || notices-before > most {
					t.Errorf("%s: %d notices, expected 1 to %d", name, notices-before, most)
				}
				if n := window(); n > whole*3/4 {
					t.Errorf("%s: a window of %d packets, it was %d", name, n, whole)
				}
			}
			w.Pass(time.Millisecond)
			if heard := w.A.Engine.RoCE.Stats.CNPHeard + w.B.Engine.RoCE.Stats.CNPHeard; heard != uint64(notices) {
				t.Errorf("%d notices heard of %d", heard, notices)
			}
		})
	}
}

// TestUnacknowledgedCongestion: a receiver of marked packets of type UC or UD tells their sender, not too
// often, and the sender reduces its rate until the notifications end.
func TestUnacknowledgedCongestion(t *testing.T) {
	for name, o := range map[string]enginetest.Options{"IPv4": {RoCE: true}, "IPv6": {RoCE: true, IPv6: true}} {
		t.Run(name, func(t *testing.T) {
			pairs := map[string]*enginetest.DatagramPair{"UC": enginetest.NewUCPair(t, false, o),
				"UD": enginetest.NewUDPair(t, false, o)}
			for kind, u := range pairs {
				const size, count = 1000, 60
				post := func() time.Duration {
					began := u.Now()
					for i := range count {
						w := enginetest.Send(uint64(i))
						if kind == "UD" {
							w = u.ToB(uint64(i))
						}
						u.QB.PostRecv(uint64(i), u.MB.SGE(0, 2000))
						u.QA.Post(w, u.MA.SGE(0, size))
					}
					u.QA.Send.Completions(count)
					u.QB.Recv.Completions(count)
					return time.Duration(u.Now() - began)
				}
				free := post()
				notices := 0
				u.SetPath(linked.Path{Drop: func(_ uint64, frame []byte) bool {
					mark(t, frame, &notices)
					return false
				}})
				for range 10 {
					post()
				}
				held := post()
				told := u.A.Engine.RoCE.Stats.CNPHeard
				if told == 0 || held < 4*free {
					t.Errorf("%s: %d notices; %d messages took %v, not held back %v", kind, told, count, held, free)
				}
				if most := uint64(u.Now()/50_000) + 1; told > most {
					t.Errorf("%s: %d notices, expected %d at most", kind, told, most)
				}
				u.SetPath(linked.Path{})
				u.Pass(time.Second)
				if again := post(); again > 2*free {
					t.Errorf("%s: %v after a second without notices, %v before", kind, again, free)
				}
			}
		})
	}
}

// mark marks packets with data, and counts notifications.
func mark(t *testing.T, frame []byte, notices *int) {
	var f wire.Frame
	var h roce.Header
	if f.Parse(frame, len(frame)) != nil || f.Proto != wire.ProtoUDP {
		return
	}
	if _, err := h.Parse(frame[f.PayloadOff:]); err != nil {
		t.Error(err)
	}
	ip := frame[wire.EthernetLen:]
	switch {
	case h.Opcode == roce.CNP:
		if *notices++; !h.BECN || h.Migrated || f.PayloadLen != roce.BTHLen+16+roce.ICRCLen {
			t.Errorf("a CNP of %d bytes: %+v", f.PayloadLen, h)
		}
	case f.PayloadLen < 500:
	case ip[0]>>4 == 6:
		if ip[1]>>4&3 != 2 {
			t.Errorf("traffic class % x", ip[:2])
		}
		ip[1] |= 3 << 4
	default:
		if ip[1]&3 != 2 {
			t.Errorf("type of service %x", ip[1])
		}
		ip[1] |= 3
		ip[10], ip[11] = 0, 0
		sum := ^wire.Fold(wire.Checksum(0, ip[:wire.IPv4Len]))
		ip[10], ip[11] = byte(sum>>8), byte(sum)
	}
}

// TestTrafficClass: packets of both sides have the traffic class that the connecting program has set, by number or by
// rdma_set_option(3).
func TestTrafficClass(t *testing.T) {
	const class = 0x68
	var seen map[byte]int
	watch := func(w *enginetest.World, transport roce.Opcode) {
		seen = map[byte]int{}
		w.SetPath(linked.Path{Drop: func(_ uint64, frame []byte) bool {
			var f wire.Frame
			if f.Parse(frame, len(frame)) == nil && f.Proto == wire.ProtoUDP &&
				roce.Opcode(frame[f.PayloadOff]).Transport() == transport {
				seen[frame[wire.EthernetLen+1]]++
			}
			return false
		}})
	}
	check := func(what string) {
		t.Helper()
		if len(seen) != 1 || seen[class|2] == 0 {
			t.Errorf("%s: %x", what, seen)
		}
	}
	n := enginetest.NumberPairIn(enginetest.New(t, enginetest.Options{Seed: 3, RoCE: true}), false)
	watch(n.World, roce.RC)
	attr := enginetest.Attempt
	attr.TrafficClass = class
	for _, q := range [][2]*enginetest.QP{{n.QA, n.QB}, {n.QB, n.QA}} {
		q[0].ReadyToReceive(q[1], attr)
		q[0].ReadyToSend(attr)
	}
	n.Exchange(5000)
	check("by number")

	w := enginetest.New(t, enginetest.Options{Seed: 4, RoCE: true})
	watch(w, roce.RC)
	ca, cb := w.A.NewClient(), w.B.NewClient()
	a, b := ca.NewQP(nil), cb.NewQP(nil)
	cb.Listen(7000, 4)
	id := ca.Resolve(w.B.Addr, 7000)
	w.A.Do(func() {
		if err := w.A.CM.SetOption(id, cm.OptionTOS, class); err != nil {
			t.Error(err)
		}
	})
	ca.Connect(id, a, enginetest.Param(4, ""))
	cb.Accept(cb.Event(cm.EventConnectRequest, time.Second).Child, b, enginetest.Param(4, ""))
	ca.Event(cm.EventEstablished, time.Second)
	cb.Event(cm.EventEstablished, time.Second)
	w.NewTraffic(a, b, enginetest.Load{Ops: 20, MaxSize: 5000}).Run(10 * time.Second)
	check("by rdma_cm")

	for _, local := range []bool{false, true} {
		u := enginetest.NewUDPair(t, local, enginetest.Options{Seed: 5, RoCE: true})
		watch(u.World, roce.UD)
		u.QB.PostRecv(1, u.MB.SGE(0, 200))
		m := u.ToB(1)
		m.RKey = class
		u.Send(m, 100)
		u.QB.Recv.Completions(1)
		if !local {
			check("a datagram, by its address handle")
		}
		if room := u.MB.Bytes[wire.GRHLen-wire.IPv4Len:][:wire.IPv4Len]; room[1] != class|2 ||
			!wire.VerifyIPv4Checksum(room) {
			t.Errorf("local %t: the header room has % x", local, room)
		}
	}
}
