package roce_test

import (
	"encoding/binary"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/wire"
	"urdma/wire/ibcm"
	"urdma/wire/roce"
)

// damage changes the headers of some packets, and corrects the CRC.
func damage(w *enginetest.World, qpn uint32) linked.Path {
	var sums roce.Sums
	return linked.Path{Drop: func(_ uint64, frame []byte) bool {
		var f wire.Frame
		if f.Parse(frame, len(frame)) != nil || f.Proto != wire.ProtoUDP || w.Rand.IntN(3) > 0 {
			return false
		}
		payload := frame[f.PayloadOff : f.PayloadOff+f.PayloadLen]
		for range 1 + w.Rand.IntN(4) {
			payload[w.Rand.IntN(min(len(payload), roce.MaxHeaderLen))] = byte(w.Rand.Uint32())
		}
		if w.Rand.IntN(2) == 0 { // with the right queue pair
			binary.BigEndian.PutUint32(payload[4:], qpn)
		}
		sums.Put(frame[wire.EthernetLen:f.PayloadOff], payload)
		wire.SetUDPChecksum(frame[:f.PayloadOff+f.PayloadLen])
		return false
	}}
}

// TestDamaged: packets of a connection whose headers were changed, with a right CRC, crash no host and write to no
// other memory.
func TestDamaged(t *testing.T) {
	for seed := range uint64(30) {
		w := enginetest.New(t, enginetest.Options{Seed: 100 + seed, RoCE: true})
		n := enginetest.ConnectedPairIn(w, false, 7)
		n.Exchange(3000)
		guard := n.QB.Client.Register(1<<16, 0)
		w.SetPath(damage(w, n.QB.Q.QPN))
		for i := range 20 {
			n.QB.PostRecv(uint64(i), n.MB.SGE(0, 5000))
			n.QA.Post(enginetest.Send(1), n.MA.SGE(0, 3000))
			n.QA.Post(enginetest.Read(2, n.MB, 0), n.MA.SGE(1<<19, 3000))
			n.QA.Post(enginetest.FetchAdd(3, n.MB, 0, 1), n.MA.SGE(1<<19, 8))
			w.Pass(5 * time.Millisecond)
			n.QA.Send.Poll()
			n.QB.Recv.Poll()
		}
		for i, b := range guard.Bytes {
			if b != 0 {
				t.Fatalf("seed %d: memory without rights was written at %d", seed, i)
			}
		}
	}
}

// TestDamagedDatagrams is TestDamaged for queue pairs of types UD and UC.
func TestDamagedDatagrams(t *testing.T) {
	for name, pair := range map[string]func(*testing.T, bool,
		enginetest.Options) *enginetest.DatagramPair{"UD": enginetest.NewUDPair, "UC": enginetest.NewUCPair} {
		t.Run(name, func(t *testing.T) {
			u := pair(t, false, enginetest.Options{RoCE: true})
			guard := u.QB.Client.Register(1<<16, 0)
			u.SetPath(damage(u.World, u.QB.Q.QPN))
			posted := 0
			for i := range 500 {
				if posted < 32 {
					u.QB.PostRecv(uint64(i), u.MB.SGE(0, 5000))
					posted++
				}
				w := u.ToB(uint64(i))
				if name == "UC" {
					w = enginetest.Write(uint64(i), u.MB, 0)
					if i%2 == 0 {
						w = enginetest.Send(uint64(i))
					}
				}
				u.QA.Post(w, u.MA.SGE(0, 1000))
				u.Pass(time.Millisecond)
				u.QA.Send.Poll()
				posted -= len(u.QB.Recv.Poll())
			}
			for i, b := range guard.Bytes {
				if b != 0 {
					t.Fatalf("memory without rights was written at %d", i)
				}
			}
		})
	}
}

// TestWrongCRC: a packet with a wrong CRC is dropped and counted, and sent again.
func TestWrongCRC(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 4, RoCE: true})
	n := enginetest.ConnectedPairIn(w, false, 7)
	spoilt := 0
	w.SetPath(linked.Path{Drop: func(i uint64, frame []byte) bool {
		var f wire.Frame
		if i%5 == 0 && f.Parse(frame, len(frame)) == nil && f.Proto == wire.ProtoUDP {
			frame[f.PayloadOff+f.PayloadLen-1] ^= 1
			wire.SetUDPChecksum(frame[:f.PayloadOff+f.PayloadLen])
			spoilt++
		}
		return false
	}})
	n.Exchange(20_000)
	if got := w.A.Engine.RoCE.Stats.WrongICRC + w.B.Engine.RoCE.Stats.WrongICRC; spoilt == 0 || got != uint64(spoilt) {
		t.Errorf("%d wrong CRCs counted, %d were sent", got, spoilt)
	}
}

// forge sends host A a packet as host B could send it: b is the transport header with the rest of the
// packet.
func forge(w *enginetest.World, s *enginetest.Stranger, b []byte) {
	var sums roce.Sums
	frame := s.Datagram(roce.Port, roce.Port, append(b, make([]byte, roce.ICRCLen)...))
	sums.Put(frame[wire.EthernetLen:wire.UDPHeaderLen], frame[wire.UDPHeaderLen:])
	wire.SetUDPChecksum(frame)
	w.B.Port.Inject(frame)
	w.Pass(time.Millisecond)
}

// TestForgedRequests: packets to a queue pair of ours from its peer's address, but with another PSN than the next
// request's, neither establish an accepted connection nor cause an answer, unless the PSN is near.
func TestForgedRequests(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 8, RoCE: true})
	w.SetPath(lose(ibcm.RTU, 1000))
	ca, cb := w.A.NewClient(), w.B.NewClient()
	a, b := ca.NewQP(nil), cb.NewQP(nil)
	ca.Listen(7000, 4)
	cb.Connect(cb.Resolve(w.A.Addr, 7000), b, enginetest.Param(4, ""))
	ca.Accept(ca.Event(cm.EventConnectRequest, time.Second).Child, a, enginetest.Param(4, ""))
	cb.Event(cm.EventEstablished, time.Second)
	s := w.Stranger()
	stats := &w.A.Engine.RoCE.Stats.RC
	send := func(ahead int) {
		h := roce.Header{Opcode: roce.WriteOnly, PKey: roce.DefaultPKey, Dst: wire.QPN(a.Q.QPN),
			PSN: roce.PSN(a.Q.Attr.RQPSN).Add(uint32(ahead)), AckReq: true}
		buf := make([]byte, roce.MaxHeaderLen)
		forge(w, s, buf[:h.Put(buf)])
	}
	for _, ahead := range []int{1, 1 << 15, 1 << 16, 1 << 20, -1, -1 << 10, -1 << 22} {
		said := stats.NAKSaid
		send(ahead)
		if ev, ok := ca.Next(); ok {
			t.Errorf("PSN %d ahead: %v", ahead, ev.Kind)
		}
		if ahead >= 1<<16 && stats.NAKSaid != said {
			t.Errorf("PSN %d ahead draws a NAK", ahead)
		}
	}
	if stats.NAKSaid != 1 {
		t.Errorf("%d NAKs, expected one for all that come before the next request", stats.NAKSaid)
	}
	send(0)
	ca.Event(cm.EventEstablished, time.Second)
}

// TestForgedAnswers: a stranger who guesses the ID of a connection request, but not its transaction ID, can
// neither end nor accept the connection.
func TestForgedAnswers(t *testing.T) {
	for name, m := range map[string]ibcm.Message{"REJ": {Kind: ibcm.REJ, Reason: ibcm.ConsumerDefined},
		"REP": {Kind: ibcm.REP, QPN: 7}, "MRA": {Kind: ibcm.MRA, Timeout: 31}} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New(t, enginetest.Options{Seed: 9, RoCE: true})
			ca := w.A.NewClient()
			id := ca.Resolve(w.B.Addr, 7000)
			s := w.Stranger()
			var asked ibcm.Message
			const heads = roce.BTHLen + 8
			w.SetPath(linked.Path{Drop: func(_ uint64, frame []byte) bool {
				return len(frame) > wire.UDPHeaderLen+heads && asked.Kind == 0 &&
					asked.Parse(frame[wire.UDPHeaderLen+heads:]) == nil
			}})
			ca.Connect(id, ca.NewQP(nil), enginetest.Param(4, ""))
			w.Pass(time.Millisecond)
			if asked.Kind != ibcm.REQ {
				t.Fatal("nothing was asked for")
			}
			m.Remote, m.Local = asked.Local, 99
			answer := func(tid uint64) {
				m.TID = tid
				b := make([]byte, heads+ibcm.Len)
				h := roce.Header{Opcode: roce.UD | roce.SendOnly, PKey: roce.DefaultPKey, Dst: ibcm.QP, QKey: ibcm.QKey,
					Src: ibcm.QP}
				if err := m.Put(b[h.Put(b):]); err != nil {
					t.Fatal(err)
				}
				forge(w, s, b)
			}
			answer(asked.TID ^ 1<<40)
			if ev, ok := ca.Next(); ok {
				t.Errorf("another transaction: %v", ev.Kind)
			}
			answer(asked.TID)
			if _, ok := ca.Next(); ok == (m.Kind == ibcm.MRA) {
				t.Errorf("the request's transaction: an event: %t", ok)
			}
		})
	}
}

// TestAlternatePath: a request for an alternate path is refused, and changes nothing.
func TestAlternatePath(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 10, RoCE: true})
	const heads = roce.BTHLen + 8
	var reply, answer ibcm.Message
	w.SetPath(linked.Path{Drop: func(_ uint64, frame []byte) bool {
		var m ibcm.Message
		if len(frame) > wire.UDPHeaderLen+heads && m.Parse(frame[wire.UDPHeaderLen+heads:]) == nil {
			switch m.Kind {
			case ibcm.REP:
				reply = m
			case ibcm.APR:
				answer = m
			}
		}
		return false
	}})
	a, b := w.Pair(false, nil)
	s := w.Stranger()
	payload := make([]byte, heads+ibcm.Len)
	h := roce.Header{Opcode: roce.UD | roce.SendOnly, PKey: roce.DefaultPKey, Dst: ibcm.QP, QKey: ibcm.QKey, Src: ibcm.QP}
	if err := (&ibcm.Message{Kind: ibcm.LAP, TID: 7, Local: reply.Local,
		Remote: reply.Remote}).Put(payload[h.Put(payload):]); err != nil {
		t.Fatal(err)
	}
	forge(w, s, payload)
	if answer.TID != 7 || answer.Status != ibcm.AlternateUnsupported || answer.Remote != reply.Local {
		t.Errorf("answered by %+v", answer)
	}
	if a.Q.Connection() == nil || b.Q.Connection() == nil {
		t.Error("the connection has ended")
	}
}

// TestProgramsManagement: messages that a program sends through its queue pair of type UD never count as
// communication management of its host, whatever the Q_Key.
func TestProgramsManagement(t *testing.T) {
	for _, qkey := range []uint32{ibcm.QKey, 7} {
		w := enginetest.New(t, enginetest.Options{Seed: 8, RoCE: true})
		server, c := w.B.NewClient(), w.A.NewClient()
		server.Listen(7000, 4)
		q, m := c.NewDatagramQP(qkey), c.Register(4096, enginetest.ReadWrite)
		addresses := make([]byte, ibcm.HeaderLen, ibcm.MaxPrivate)
		(&ibcm.Addresses{Src: netip.AddrPortFrom(w.A.Addr, 22), Dst: w.B.Addr}).Put(addresses) // a privileged port
		req := ibcm.Message{Kind: ibcm.REQ, TID: 1, Local: 77, QPN: 99, PSN: 5, Service: ibcm.TCPService(7000),
			PKey: roce.DefaultPKey, PathMTU: 1, Responder: 1, Initiator: 1,
			Src: w.A.Addr.As16(), Dst: w.B.Addr.As16(), Private: addresses}
		if err := req.Put(m.Bytes[:ibcm.Len]); err != nil {
			t.Fatal(err)
		}
		seen := 0
		watch(w, func(_, payload []byte) bool {
			seen++
			return false
		})
		q.Post(enginetest.To(enginetest.Send(1), w.B.Addr, uint32(ibcm.QP), ibcm.QKey), m.SGE(0, ibcm.Len))
		q.Send.Completions(1)
		w.Pass(5 * time.Millisecond)
		if ev, ok := server.Next(); ok {
			t.Errorf("Q_Key %#x: %v of %v, forged by a program", qkey, ev.Kind, ev.Child.View().Peer)
		}
		if leaves := seen > 0; leaves != (qkey == ibcm.QKey) {
			t.Errorf("Q_Key %#x: %d packets left", qkey, seen)
		}
	}
}

// TestNoQueuePairBehindService: if a host answers that there is no queue pair (status 3 of a SIDR_REP), the request
// has failed, and is not repeated.
func TestNoQueuePairBehindService(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 9, RoCE: true})
	ca := w.A.NewClient()
	id := ca.Resolve(w.B.Addr, 7000)
	id.Datagrams = true
	s := w.Stranger()
	var asked ibcm.Message
	const heads = roce.BTHLen + 8
	watch(w, func(_, payload []byte) bool {
		return len(payload) > heads && asked.Kind == 0 && asked.Parse(payload[heads:]) == nil
	})
	w.A.Do(func() {
		if err := w.A.CM.Connect(id, nil, &cm.Param{}); err != nil {
			t.Error(err)
		}
	})
	w.Pass(time.Millisecond)
	if asked.Kind != ibcm.SIDRRequest {
		t.Fatal("nothing was asked for")
	}
	b := make([]byte, heads+ibcm.Len)
	h := roce.Header{Opcode: roce.UD | roce.SendOnly, PKey: roce.DefaultPKey, Dst: ibcm.QP, QKey: ibcm.QKey, Src: ibcm.QP}
	if err := (&ibcm.Message{Kind: ibcm.SIDRReply, TID: asked.TID, Local: asked.Local,
		Status: 3}).Put(b[h.Put(b):]); err != nil {
		t.Fatal(err)
	}
	forge(w, s, b)
	if ev := ca.Event(cm.EventUnreachable, 10*time.Millisecond); ev.Err != syscall.ECONNREFUSED || ev.Reason != 3 {
		t.Errorf("%+v", ev)
	}
}

// TestReusedCommID: a request with the communication ID of a connection but another transaction ID does not
// belong to the connection: it gets an answer of its own.
func TestReusedCommID(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 11, RoCE: true})
	const heads = roce.BTHLen + 8
	var request, answer ibcm.Message
	w.SetPath(linked.Path{Drop: func(_ uint64, frame []byte) bool {
		var m ibcm.Message
		if len(frame) > wire.UDPHeaderLen+heads && m.Parse(frame[wire.UDPHeaderLen+heads:]) == nil {
			if m.Kind == ibcm.REQ && request.Kind == 0 {
				request = m
				request.Private = append([]byte(nil), m.Private...)
			}
			answer = m
		}
		return false
	}})
	ca, cb := w.A.NewClient(), w.B.NewClient()
	ca.Listen(7000, 4)
	cb.Connect(cb.Resolve(w.A.Addr, 7000), cb.NewQP(nil), enginetest.Param(4, ""))
	ca.Accept(ca.Event(cm.EventConnectRequest, time.Second).Child, ca.NewQP(nil), enginetest.Param(4, ""))
	cb.Event(cm.EventEstablished, time.Second)
	s := w.Stranger()
	for tid, want := range map[uint64]ibcm.Message{request.TID: {Kind: ibcm.REP},
		request.TID ^ 1<<40: {Kind: ibcm.REJ, Reason: ibcm.StaleConnection}} {
		request.TID, answer = tid, ibcm.Message{}
		payload := make([]byte, heads+ibcm.Len)
		h := roce.Header{Opcode: roce.UD | roce.SendOnly, PKey: roce.DefaultPKey, Dst: ibcm.QP, QKey: ibcm.QKey, Src: ibcm.QP}
		if err := request.Put(payload[h.Put(payload):]); err != nil {
			t.Fatal(err)
		}
		forge(w, s, payload)
		if want.Kind == ibcm.REP && answer.Kind == 0 {
			continue // the connection continues: no repetition is needed
		}
		if answer.TID != tid || answer.Kind != want.Kind || answer.Reason != want.Reason {
			t.Errorf("transaction %#x: %v, reason %d, of transaction %#x", tid, answer.Kind, answer.Reason, answer.TID)
		}
	}
}
