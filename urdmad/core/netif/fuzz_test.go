package netif

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"testing"

	"urdma/test/linked"
	"urdma/urdmad/core/clock"
	"urdma/wire"
)

// FuzzFrame: after any frame of a stranger, the interface still returns a good datagram.
func FuzzFrame(f *testing.F) {
	r := newRig(f, linked.Options{})
	f.Add(r.datagram("seed"))
	echo := make([]byte, wire.EthernetLen+wire.IPv4Len+wire.ICMPEchoLen)
	buildEcho(echo, r.far.MAC(), r.n.MAC())
	f.Add(echo)
	f.Add([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1})
	f.Add(decoded(f, longIGMP))
	query := make([]byte, wire.IGMPFrameLen)
	(&wire.IGMP{Type: wire.IGMPQuery}).Put(query, r.far.MAC(), wire.IPv4{10, 0, 0, 9})
	f.Add(query)
	f.Fuzz(func(t *testing.T, frame []byte) {
		r := newRig(t, linked.Options{Buffers: 2048})
		r.n.Join(netip.MustParseAddr("239.1.2.3"))
		r.survives(frame, r.datagram("good"))
	})
}

// FuzzFrame6 is FuzzFrame for IPv6, with an address that is in use or is still being probed.
func FuzzFrame6(f *testing.F) {
	r := newRig6(f)
	f.Add(r.datagram6("seed"), false)
	f.Add(r.echo6(their6, our6), false)
	ndp := func(p wire.NDP, src, dst netip.Addr) {
		b := make([]byte, wire.NDPFrameLen)
		b = b[:p.Put(b, r.far.MAC(), r.n.MAC(), src.As16(), dst.As16())]
		f.Add(b, false)
		f.Add(b, true)
	}
	none, all := netip.IPv6Unspecified(), netip.AddrFrom16(wire.AllNodes)
	ndp(wire.NDP{Type: wire.ICMPv6Solicit, Target: our6.As16(), MAC: r.far.MAC(), HasMAC: true}, their6, our6)
	ndp(wire.NDP{Type: wire.ICMPv6Solicit, Target: our6.As16()}, none, netip.AddrFrom16(wire.SolicitedNode(our6.As16())))
	ndp(wire.NDP{Type: wire.ICMPv6Advertise, Target: our6.As16(), MAC: wire.MAC{2, 9, 9, 9, 9, 9}, HasMAC: true,
		Override: true}, our6, all)
	ndp(wire.NDP{Type: wire.ICMPv6Advertise, Target: their6.As16(), MAC: wire.MAC{2, 9, 9, 9, 9, 9}, HasMAC: true,
		Solicited: true}, their6, our6)
	for _, long := range []string{longMLD, longSolicit} {
		f.Add(decoded(f, long), false)
	}
	options := bytes.Clone(r.datagram6("behind options"))
	at := wire.EthernetLen + wire.IPv6Len
	options = append(options[:at:at], append([]byte{wire.ProtoUDP, 1, 1, 12, 13: 0, 15: 0}, options[at:]...)...)
	options[20], options[19] = 60, options[19]+16
	f.Add(options, false)
	f.Fuzz(func(t *testing.T, frame []byte, tentative bool) {
		r, _ := pair6(t)
		if !tentative {
			r.far.Announce()
			r.claim()
		}
		r.n.Join(netip.MustParseAddr("ff15::1234"))
		r.survives(frame, r.datagram6("good"))
	})
}

func decoded(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// survives passes a stranger's frame to the interface, as it is and with right checksums, each followed by a good
// datagram. The datagram must be returned, unless the interface has lost its address, which only a claim to it may
// cause. The tables must stay small.
func (r *rig) survives(frame, good []byte) {
	if len(frame) < wire.EthernetLen {
		return // no port sends such
	}
	frame = bytes.Clone(frame[:min(len(frame), 1514)])
	for range 2 {
		r.raw(frame)
		r.raw(good)
		r.pass()
		got := drain(r.n)
		if r.n.neighbours.table.Duplicate() {
			if !claims(frame) {
				r.Errorf("the address was lost to % x", frame)
			}
		} else if len(got) == 0 || got[len(got)-1] != "good" {
			r.Errorf("handed up %q", got)
		}
		if len(r.n.groups.due) > 0 {
			r.Errorf("%d reports wait", len(r.n.groups.due))
		}
		r.clock.Now += clock.Second
		setChecksums(frame)
	}
}

// claims reports a message of neighbour discovery.
func claims(b []byte) bool {
	var f wire.Frame
	return f.Parse(b, len(b)) == nil && f.Proto == wire.ProtoICMPv6 && f.PayloadLen > 0 &&
		(b[f.PayloadOff] == wire.ICMPv6Solicit || b[f.PayloadOff] == wire.ICMPv6Advertise)
}

// setChecksums corrects the checksums of a frame, if it has any.
func setChecksums(b []byte) {
	var f wire.Frame
	if f.Parse(b, len(b)) != nil || f.Type != wire.EtherTypeIPv4 && f.Type != wire.EtherTypeIPv6 {
		return
	}
	put := func(at int, pseudo, over []byte) {
		binary.BigEndian.PutUint16(b[at:], 0)
		sum := wire.Checksum(wire.Checksum(0, pseudo), over)
		binary.BigEndian.PutUint16(b[at:], ^wire.Fold(sum))
	}
	if f.Type == wire.EtherTypeIPv4 {
		put(f.IPHeaderOff+10, nil, b[f.IPHeaderOff:f.IPHeaderOff+f.IPHeaderLen])
	}
	from, end := f.PayloadOff, f.PayloadOff+f.PayloadLen
	pseudo := append(append([]byte{}, f.Src6[:]...), f.Dst6[:]...)
	switch {
	case f.Proto == wire.ProtoUDP && f.Type == wire.EtherTypeIPv6:
		from -= wire.UDPLen
		put(from+6, append(pseudo, 0, 0, byte((end-from)>>8), byte(end-from), 0, 0, 0, f.Proto), b[from:end])
	case f.Proto == wire.ProtoUDP:
		binary.BigEndian.PutUint16(b[from-2:], 0) // none
	case f.PayloadLen < 4:
	case f.Proto == wire.ProtoICMPv6 && f.Type == wire.EtherTypeIPv6:
		put(from+2, append(pseudo, 0, 0, byte((end-from)>>8), byte(end-from), 0, 0, 0, f.Proto), b[from:end])
	case f.Proto == wire.ProtoICMP, f.Proto == wire.ProtoIGMP:
		put(from+2, nil, b[from:end])
	}
}
