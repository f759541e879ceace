package steer

import (
	"bytes"
	"net"
	"net/netip"
	"testing"
	"time"

	"urdma/dpdk/loopback"
	"urdma/dpdk/port"
	"urdma/wire"
	"urdma/wire/ibcm"
	"urdma/wire/roce"
)

// packetFor makes a RoCEv2 packet for a queue pair, with a message of communication management if one is given.
func packetFor(n wire.QPN, m *ibcm.Message) []byte {
	b := make([]byte, roce.MaxHeaderLen+ibcm.Len+roce.ICRCLen)
	h := roce.Header{Opcode: roce.RC | roce.SendOnly, Dst: n, AckReq: true}
	if m != nil {
		h = roce.Header{Opcode: roce.UD | roce.SendOnly, Dst: n, QKey: ibcm.QKey, Src: ibcm.QP}
	}
	size := h.Put(b)
	if m != nil {
		if err := m.Put(b[size:]); err != nil {
			panic(err)
		}
		size += ibcm.Len
	}
	return b[:size+roce.ICRCLen]
}

// TestWhosePacket: each RoCEv2 packet finds its worker, in a frame and over a socket.
func TestWhosePacket(t *testing.T) {
	const workers = 3
	h := NewHub(workers, NewNumbers(workers), func(int) {})
	p := h.Add(loopback.Open("lo", [6]byte{}, 1500, ours), ours, true)
	if !h.numbers.Of(2).Take(7174) {
		t.Fatal("port number 7174 is taken")
	}
	group := netip.MustParseAddr("239.1.2.3")
	for _, c := range []struct {
		name   string
		to     netip.Addr
		packet []byte
		want   int
	}{
		{"a request", ours, packetFor(10, nil), 2},
		{"an acknowledgement's worker", ours, packetFor(7, nil), 1},
		{"one for a connection", ours, packetFor(1, &ibcm.Message{Kind: ibcm.REQ, Local: 4, Service: ibcm.TCPService(7174)}),
			2},
		{"one for a number that nobody has", ours,
			packetFor(1, &ibcm.Message{Kind: ibcm.REQ, Local: 4, Service: ibcm.TCPService(7175)}), 0},
		{"a question for another service", ours, packetFor(1, &ibcm.Message{Kind: ibcm.REQ, Local: 4, Service: 5}), 0},
		{"a reply", ours, packetFor(1, &ibcm.Message{Kind: ibcm.REP, Local: 5, Remote: 4}), 1},
		{"who gives up", ours, packetFor(1, &ibcm.Message{Kind: ibcm.REJ, Local: 5, Reason: ibcm.TimedOut,
			Refused: ibcm.RefusedNone}), everyone},
		{"a question", ours, packetFor(1, &ibcm.Message{Kind: ibcm.SIDRRequest, Local: 4, Service: ibcm.UDPService(7174)}),
			2},
		{"an answer", ours, packetFor(1, &ibcm.Message{Kind: ibcm.SIDRReply, TID: ibcm.AskingTID(1, 7174, 9)}), 2},
		{"another message", ours, packetFor(1, nil), 0},
		{"a datagram to a group", group, packetFor(0xffffff, nil), everyone},
		{"a runt", ours, []byte{1, 2, 3}, 0},
	} {
		frame := packetTo(netip.AddrPortFrom(theirs, 0xc000), netip.AddrPortFrom(c.to, roce.Port), c.packet...)
		if got := p.frame(frame); got != c.want {
			t.Errorf("%s is for worker %d, expected %d", c.name, got, c.want)
		}
		if got := p.payload(c.packet); got != c.want && c.to == ours {
			t.Errorf("%s over a socket is for worker %d, expected %d", c.name, got, c.want)
		}
	}
}

// TestPacketFilter: each packet of a queue pair reaches the socket of its worker.
func TestPacketFilter(t *testing.T) {
	const workers = 3
	p, at := overSockets(t, workers, PacketFilter(workers))
	from, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	for n, want := range map[wire.QPN]int{7: 1, 10: 2, 8: 0, 0xfffffe: 0, 1: 0} {
		b := packetFor(n, nil)
		b[4] = 0xc0 // congestion marks, and reserved bits
		if _, err := from.Write(b); err != nil {
			t.Fatal(err)
		}
		if got := whichQueue(t, p, b); got != want {
			t.Errorf("a packet to queue pair %d reached worker %d, expected %d", n, got, want)
		}
	}
}

// TestDisconnection: a message of communication management that another worker hands over comes after all packets that
// were in the worker's own queue by then, even if these are more than one Rx takes, and after a time if more and more
// arrive.
func TestDisconnection(t *testing.T) {
	const workers, own, id = 2, 7, 5
	under, at := overSockets(t, workers, PacketFilter(workers))
	p := NewHub(workers, NewNumbers(workers), func(int) {}).Add(under, at.Addr(), true)
	data, dreq := packetFor(own, nil), packetFor(ibcm.QP, &ibcm.Message{Kind: ibcm.DREQ, Local: 9, Remote: id})
	if p.payload(data) != 1 || p.payload(dreq) != 1 {
		t.Fatal("the packets are not for worker 1")
	}
	from, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	arrive := func(packets ...[]byte) {
		t.Helper()
		for _, b := range packets {
			if _, err := from.Write(b); err != nil {
				t.Fatal(err)
			}
		}
	}
	disconnect := func() {
		t.Helper()
		arrive(dreq)
		for end := time.Now().Add(time.Minute); p.rings[0][1].full.len() == 0; time.Sleep(time.Millisecond) {
			var none [1]port.Packet
			if p.For(0).Queue(0).Rx(none[:]); time.Now().After(end) {
				t.Fatal("worker 0 hands nothing over")
			}
		}
	}
	next := func() []byte {
		t.Helper()
		q := p.For(1).Queue(0)
		var one [1]port.Packet
		for end := time.Now().Add(time.Minute); q.Rx(one[:]) == 0; {
			if time.Now().After(end) {
				t.Fatal("nothing arrives")
			}
		}
		defer q.Free(one[:])
		return bytes.Clone(one[0].Data)
	}
	arrive(data, data, data)
	disconnect()
	for i, want := range [][]byte{data, data, data, dreq} {
		if got := next(); !bytes.Equal(got, want) {
			t.Fatalf("packet %d is % x, expected % x", i, got, want)
		}
	}
	disconnect()
	arrive(data)
	for n := 0; ; n++ { // the queue always has more
		if arrive(data); bytes.Equal(next(), dreq) {
			break
		}
		if n > 2*backlog {
			t.Fatal("a queue that is never empty lets nobody hand anything over")
		}
	}
}
