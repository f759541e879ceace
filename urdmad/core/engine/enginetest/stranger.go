package enginetest

import (
	"time"

	"urdma/dpdk/port"
	"urdma/urdmad/core/cm"
	"urdma/wire"
)

// Stranger is a peer made of bare packets. It replaces host B and sends any packet that a test
// wants.
type Stranger struct {
	w   *World
	IP  wire.IPv4
	MAC wire.MAC
	// Got has the received datagrams that were not taken, oldest first.
	Got []Datagram
	// Frames has the other received frames, except ARP requests for the stranger's address, which
	// are answered.
	Frames [][]byte
}

// Datagram is a UDP datagram with a TRP header.
type Datagram struct {
	Frame   wire.Frame
	Payload []byte // TRP header and what follows
}

// Stranger replaces host B by a Stranger.
func (w *World) Stranger() *Stranger {
	w.B.Stop()
	return &Stranger{w: w, IP: w.B.IP, MAC: wire.MAC(w.B.Port.Info().MAC)}
}

// SendFrame sends bytes as a frame; it ignores frames shorter than a port accepts.
func (s *Stranger) SendFrame(b []byte) {
	if len(b) < port.EtherHeaderLen {
		return
	}
	var p [1]port.Packet
	if s.w.B.Port.Queue(0).Alloc(p[:]) == 0 {
		s.w.T.Fatal("no transmit buffer for the stranger")
	}
	p[0].Data = p[0].Data[:copy(p[0].Data, b)]
	s.w.B.Port.Queue(0).Tx(p[:])
	s.w.B.Port.Queue(0).Flush()
}

// Datagram returns a frame with a UDP datagram for host A.
func (s *Stranger) Datagram(sport, dport uint16, payload []byte) []byte {
	var h wire.UDPHeader
	h.Init(s.MAC, wire.MAC(s.w.A.Port.Info().MAC), s.IP, s.w.A.IP, sport, dport)
	b := make([]byte, wire.UDPHeaderLen+len(payload))
	h.Put(b, len(payload), 1)
	copy(b[wire.UDPHeaderLen:], payload)
	wire.SetUDPChecksum(b)
	return b
}

// Receive takes the frames that have come.
func (s *Stranger) Receive() {
	var p [16]port.Packet
	for {
		n := s.w.B.Port.Queue(0).Rx(p[:])
		for i := range p[:n] {
			s.frame(append([]byte(nil), p[i].Data...))
		}
		s.w.B.Port.Queue(0).Free(p[:n])
		if n == 0 {
			return
		}
	}
}

func (s *Stranger) frame(b []byte) {
	var f wire.Frame
	if err := f.Parse(b, len(b)); err != nil {
		s.w.T.Errorf("host A sent a frame that is no frame: %v", err)
		return
	}
	var a wire.ARP
	switch {
	case f.Type == wire.EtherTypeARP && s.arp(b[f.PayloadOff:], &a):
	case f.Proto == wire.ProtoUDP && f.Type == wire.EtherTypeIPv4:
		s.Got = append(s.Got, Datagram{Frame: f, Payload: b[f.PayloadOff : f.PayloadOff+f.PayloadLen]})
	default:
		s.Frames = append(s.Frames, b)
	}
}

func (s *Stranger) arp(b []byte, a *wire.ARP) bool {
	if _, err := a.Parse(b); err != nil || a.Op != wire.ARPRequest || a.TargetIP != s.IP {
		return false
	}
	out := make([]byte, 64)
	at := wire.PutEthernet(out, a.SenderMAC, s.MAC, wire.EtherTypeARP)
	r := wire.ARP{Op: wire.ARPReply, SenderMAC: s.MAC, SenderIP: s.IP, TargetMAC: a.SenderMAC, TargetIP: a.SenderIP}
	s.SendFrame(out[:at+r.Put(out[at:])])
	return true
}

// Await runs turns of host A until a matching datagram comes. That datagram and the earlier ones
// are taken.
func (s *Stranger) Await(what string, fits func(*Datagram) bool) (d Datagram) {
	s.w.T.Helper()
	s.w.Until(what, 5*time.Second, func() bool {
		s.Receive()
		for i := range s.Got {
			if fits(&s.Got[i]) {
				d, s.Got = s.Got[i], s.Got[i+1:]
				return true
			}
		}
		return false
	})
	return d
}

// Op returns the TRP opcode.
func (d *Datagram) Op() wire.TRPOp { return wire.TRPOp(d.Payload[8] >> 4) }

// Line is the stranger's end of a connection with a queue pair of host A.
type Line struct {
	S      *Stranger
	Ours   uint16 // UDP ports
	Theirs uint16
	PSN    wire.PSN // of our next segment
	Ack    wire.PSN // what we acknowledge: the next PSN of theirs
	Cookie uint32   // theirs
	Accept wire.TRPConnect
	ID     *cm.ID // host A's
}

// ourCookie is what the stranger chooses.
const ourCookie = 0x57a6e4

// Dial connects to a queue pair of host A, which listens and accepts.
func (s *Stranger) Dial(q *QP, reads uint16) *Line {
	s.w.T.Helper()
	listener := q.Client.Listen(7999, 8)
	l := &Line{S: s, Ours: 40000 + uint16(s.w.Rand.IntN(9000)), PSN: wire.PSN(s.w.Rand.Uint32())}
	s.SendFrame(s.Datagram(l.Ours, 7999, l.Request(reads)))
	ev := q.Client.Event(cm.EventConnectRequest, time.Second)
	l.ID = q.Client.Accept(ev.Child, q, Param(uint8(reads), "yes"))
	d := s.Await("accept", func(d *Datagram) bool { return d.Op() == wire.OpAccept })
	var t wire.TRP
	at, err := t.Parse(d.Payload)
	if err == nil {
		err = l.Accept.Parse(d.Payload[at:])
	}
	if err != nil || !l.Accept.HasExt || t.Ack != l.PSN {
		s.w.T.Fatalf("accept %+v: %v", l.Accept, err)
	}
	l.Theirs, l.Ack, l.Cookie = d.Frame.SrcPort, t.PSN, l.Accept.Ext.Cookie
	l.Send(wire.OpData, l.PSN, nil)
	q.Client.Event(cm.EventEstablished, time.Second)
	q.Client.Destroy(listener)
	return l
}

// Request returns the payload of the connection request.
func (l *Line) Request(reads uint16) []byte {
	b := make([]byte, 600)
	t := wire.TRP{Op: wire.OpRequest, PSN: l.PSN}
	at := t.Put(b)
	c := wire.TRPConnect{IRD: reads, ORD: reads, PrivateData: []byte("stranger"), HasExt: true,
		Ext: wire.TRPExtension{Cookie: ourCookie, QPN: 5, MaxSegment: 1400, RecvWindow: 64}}
	n, err := c.Put(b[at:])
	if err != nil {
		l.S.w.T.Fatal(err)
	}
	return b[:at+n]
}

// Packet returns the payload of a packet of the connection.
func (l *Line) Packet(op wire.TRPOp, psn wire.PSN, body []byte) []byte {
	b := make([]byte, wire.TRPExtLen+len(body))
	t := wire.TRP{PSN: psn, Ack: l.Ack, Op: op, Credits: 64, Flags: wire.FlagAckRequested, Cookie: l.Cookie}
	at := t.Put(b)
	return b[:at+copy(b[at:], body)]
}

// Send sends a packet.
func (l *Line) Send(op wire.TRPOp, psn wire.PSN, body []byte) {
	l.S.SendFrame(l.S.Datagram(l.Ours, l.Theirs, l.Packet(op, psn, body)))
}

// Segment sends the next data segment: a DDP header and data.
func (l *Line) Segment(d wire.DDP, data ...byte) {
	b := make([]byte, wire.UntaggedLen+len(data))
	at := d.Put(b)
	l.Raw(b[:at+copy(b[at:], data)])
}

// Raw sends any bytes as the next data segment.
func (l *Line) Raw(b []byte) {
	l.Send(wire.OpData, l.PSN, b)
	l.PSN = l.PSN.Add(1)
}

// Terminate waits for host A's Terminate and returns it.
func (l *Line) Terminate() (t wire.Terminate) {
	l.S.w.T.Helper()
	l.S.Await("Terminate", func(d *Datagram) bool {
		body := l.Body(d)
		var h wire.DDP
		at, err := h.Parse(body)
		if err != nil || h.Op != wire.OpTerminate {
			return false
		}
		if h.QN != wire.QueueTerminate || h.MSN != 1 || !h.Last {
			l.S.w.T.Errorf("Terminate header %+v", h)
		}
		_, err = t.Parse(body[at:])
		return err == nil
	})
	return t
}

// Body returns the bytes after the TRP header; nil unless it is a data packet.
func (l *Line) Body(d *Datagram) []byte {
	var t wire.TRP
	at, err := t.Parse(d.Payload)
	if err != nil || t.Op != wire.OpData {
		return nil
	}
	return d.Payload[at:]
}
