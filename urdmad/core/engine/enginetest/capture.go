package enginetest

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"urdma/urdmad/attach/tap"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
	"urdma/wire"
	"urdma/wire/roce"
)

// capture captures everything that a host's ports carry. It runs in every world, because the
// shown frames must be right for any traffic.
type capture struct {
	t     testing.TB
	host  string
	roce  bool // the hosts' protocol is RoCEv2
	w     ring.CaptureWriter
	r     ring.CaptureReader
	begun []ring.Begun
}

func newCapture(t testing.TB, h *Host, isRoCE bool) {
	c := &capture{t: t, host: h.Name, roce: isRoCE}
	l := ring.CaptureLayout(0)
	mem := make([]byte, int(l.DataOffset+l.DataBytes))
	c.w.Init(mem, &l)
	if err := c.r.Init(mem, &l); err != nil {
		t.Fatal(err)
	}
	h.Tap.Add(c)
	t.Cleanup(func() {
		if len(c.begun) != 0 || c.r.Lost() != 0 {
			t.Errorf("capture of host %s: %d frames have not ended, %d are lost", c.host, len(c.begun), c.r.Lost())
		}
	})
}

// Begin is tap.Viewer's.
func (c *capture) Begin(s *tap.Sight) bool {
	if s.Out || s.Local {
		c.check(s)
	}
	b, ok := c.w.Begin(abi.CaptureRecord{Kind: abi.CaptureFrame, FrameBytes: uint32(s.Length)}, s.Frame)
	if ok {
		c.begun = append(c.begun, b)
	}
	return ok
}

// check checks that other programs can parse a frame of ours.
func (c *capture) check(s *tap.Sight) {
	var f wire.Frame
	whole := append(bytes.Clone(s.Frame), make([]byte, s.Length-len(s.Frame))...)
	if err := f.Parse(whole, s.Length); err != nil {
		c.t.Errorf("capture of host %s: %v in %+v", c.host, err, s)
		return
	}
	if f.PayloadOff+f.PayloadLen != s.Length {
		c.t.Errorf("capture of host %s: a frame of %d bytes says that it has %d", c.host, s.Length,
			f.PayloadOff+f.PayloadLen)
	}
	if f.Type == wire.EtherTypeIPv4 && !wire.VerifyIPv4Checksum(s.Frame[f.IPHeaderOff:f.IPHeaderOff+f.IPHeaderLen]) {
		c.t.Errorf("capture of host %s: IPv4 checksum wrong in %+v", c.host, s)
	}
	if f.Proto != wire.ProtoUDP {
		return
	}
	src, dst := f.Addrs()
	if plain(src) != plain(s.Our) || plain(dst) != plain(s.Peer) {
		c.t.Errorf("capture of host %s: a frame from %v to %v is said to be from %v to %v", c.host, src, dst, s.Our, s.Peer)
	}
	if payload := s.Frame[f.PayloadOff:]; c.roce && f.DstPort == roce.Port && f.SrcPort != roce.Port { // not a socket's
		if to := wire.QPN(binary.BigEndian.Uint32(payload[4:]) & uint32(wire.MulticastQPN)); to != wire.GeneralQPN &&
			f.SrcPort != roce.SourcePort(to) {
			c.t.Errorf("capture of host %s: a packet to queue pair %#x comes from port number %d, expected %d", c.host, to,
				f.SrcPort, roce.SourcePort(to))
		}
	}
	if len(s.Frame) == s.Length && f.UDPChecksum != 0 && // 0: left to the port
		!wire.VerifyUDPChecksum(&f, s.Frame[f.PayloadOff-wire.UDPLen:]) {
		c.t.Errorf("capture of host %s: UDP checksum wrong in %+v", c.host, s)
	}
}

// plain is an end with an IPv4 address as such, also where an IPv6 frame maps it.
func plain(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// End is tap.Viewer's.
func (c *capture) End(note string) {
	last := len(c.begun) - 1
	c.w.End(c.begun[last], note)
	c.begun = c.begun[:last]
	for {
		head, _, _, ok, err := c.r.Next()
		if err != nil {
			c.t.Fatalf("capture of host %s: %v", c.host, err)
		}
		if !ok {
			return
		}
		c.r.Release(uint64(head.Bytes))
	}
}
