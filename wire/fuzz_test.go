package wire

import (
	"bytes"
	"reflect"
	"testing"
)

// Every fuzz target checks two things: no input makes a parser panic, and what a parser accepts is unchanged after
// it is written and read again.

// fuzzCodec runs v's parser on b; fresh makes an empty value of the same type.
func fuzzCodec(t *testing.T, fresh func() codec, b []byte) {
	v := fresh()
	n, err := v.Parse(b)
	if err != nil {
		return
	}
	if n < 0 || n > len(b) {
		t.Fatalf("Parse took %d of %d bytes", n, len(b))
	}
	// The payload of an ICMP echo stays in b.
	out := bytes.Clone(b)
	m := v.Put(out)
	again := fresh()
	if k, err := again.Parse(out); err != nil || k != n || m > n {
		t.Fatalf("% x: wrote %d, read %d %v, want %d", b, m, k, err, n)
	}
	if !reflect.DeepEqual(v, again) {
		t.Fatalf("% x:\nfirst  %+v\nsecond %+v", b, v, again)
	}
}

// fuzzWith registers seeds in spaced hex and runs the target.
func fuzzWith(f *testing.F, fresh func() codec, seeds ...string) {
	for _, s := range seeds {
		f.Add(unhex(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) { fuzzCodec(t, fresh, b) })
}

func FuzzDDP(f *testing.F) {
	for _, c := range golden {
		f.Add(unhex(f, c.hex))
	}
	fuzzWith(f, func() codec { return &DDP{} }, sendHeader, readHeader, writeHeader)
}

func FuzzReadRequest(f *testing.F) {
	fuzzWith(f, func() codec { return &ReadRequest{} },
		"f9fd6e00 0000555a125f0540 00000066 dc99b800 000055df2e180145", "")
}

func FuzzAtomicRequest(f *testing.F) {
	fuzzWith(f, func() codec { return &AtomicRequest{} },
		"00000002 00000007 cafe0001 0000555500000008 0000000000000001 ffffffffffffffff 0123456789abcdef 00000000ffffffff")
}

func FuzzAtomicResponse(f *testing.F) {
	fuzzWith(f, func() codec { return &AtomicResponse{} }, "00000007 0123456789abcdef")
}

func FuzzImmediate(f *testing.F) {
	fuzzWith(f, func() codec { return new(Immediate) }, "0123456700000000")
}

func FuzzARP(f *testing.F) { fuzzWith(f, func() codec { return &ARP{} }, arpWho) }

func FuzzICMPEcho(f *testing.F) {
	f.Add(echoFrame(13)[34:])
	fuzzWith(f, func() codec { return &ICMPEcho{} }, "0800f7ff00000000")
}

func FuzzTerminate(f *testing.F) {
	for _, c := range siwTerminates {
		f.Add(unhex(f, c.hex))
		f.Add(asRFC(unhex(f, c.hex)))
	}
	fuzzWith(f, func() codec { return &Terminate{} }, "02070000", "02062000", "0206a000 0030")
}

func FuzzTRP(f *testing.F) {
	f.Add(unhex(f, "fffffffe 00000003 0fff 8000 deadbeef"))
	f.Add(unhex(f, "11223344 00000000 1000"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var v, again TRP
		n, err := v.Parse(b)
		if err != nil {
			return
		}
		out := make([]byte, n)
		if m := v.Put(out); m != n || !bytes.Equal(out, b[:n]) {
			t.Fatalf("% x written as % x", b[:n], out)
		}
		if _, err := again.Parse(out); err != nil || again != v {
			t.Fatalf("%v\nfirst  %+v\nsecond %+v", err, v, again)
		}
	})
}

func FuzzTRPConnect(f *testing.F) {
	f.Add(unhex(f, plainBody))
	f.Add(unhex(f, plainBody+extBlock))
	f.Add(unhex(f, "0000 0001 0001 7552 01 ff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var v, again TRPConnect
		if v.Parse(b) != nil {
			return
		}
		if len(v.PrivateData) != cap(v.PrivateData) {
			t.Fatal("an append to the private data would overwrite the packet")
		}
		_ = v.Ext.Check()
		out := make([]byte, v.Len())
		if n, err := v.Put(out); n != len(out) || n > len(b) || err != nil {
			t.Fatalf("Put answers %d %v", n, err)
		}
		if err := again.Parse(out); err != nil || !reflect.DeepEqual(v, again) {
			t.Fatalf("%v\nfirst  %+v\nsecond %+v", err, v, again)
		}
	})
}

func FuzzSackRuns(f *testing.F) {
	f.Add(unhex(f, "00000005 00000007  fffffffe 00000002"), 32)
	f.Add(unhex(f, "00000000 80000000"), 1)
	f.Fuzz(func(t *testing.T, b []byte, room int) {
		dst := make([]SackRun, min(max(room, 0), 64))
		n, err := ParseSackRuns(dst, b)
		if err != nil {
			return
		}
		out := make([]byte, len(b))
		if m := PutSackRuns(out, dst[:n]); m != len(b) || !bytes.Equal(out, b) {
			t.Fatalf("% x written as % x", b, out)
		}
	})
}

func FuzzFrame(f *testing.F) {
	f.Add(unhex(f, roceFrame), 200)
	f.Add(unhex(f, tcpFrame), 0)
	f.Add(udpFrame(10, 1), 0)
	f.Add(withOptions(udpFrame(100, 1), 40), 0)
	f.Add(echoFrame(56), 0)
	f.Add(unhex(f, "ffffffffffff 525400a8282f 0806"+arpWho), 18)
	for _, seed := range []string{udp6Frame, udp6OptionFrame, echo6Request, solicitFrame, advertiseFrame, probeFrame,
		joinFrame} {
		f.Add(unhex(f, seed), 0)
	}
	f.Fuzz(func(t *testing.T, b []byte, more int) {
		checkFrame(t, b, more&0xffff)
	})
}

// checkFrame parses a frame that is more bytes longer than b, if b is long enough for all headers.
func checkFrame(t *testing.T, b []byte, more int) {
	length := len(b)
	if len(b) >= MaxHeaderLen {
		length += more
	}
	var fr, head Frame
	err := fr.Parse(b, length)
	if e := head.Parse(b[:min(len(b), MaxHeaderLen)], length); e != err || err == nil && head != fr {
		t.Fatalf("whole frame: %v %+v\nits head: %v %+v", err, fr, e, head)
	}
	if err != nil {
		return
	}
	if fr.PayloadOff < EthernetLen || fr.PayloadLen < 0 || fr.PayloadOff+fr.PayloadLen > length {
		t.Fatalf("payload %d bytes at %d of a frame of %d", fr.PayloadLen, fr.PayloadOff, length)
	}
	if fr.Type == EtherTypeIPv6 {
		_ = EchoReply(&fr, bytes.Clone(b), vm1MAC)
		if fr.Proto == ProtoUDP && length == len(b) {
			VerifyUDPChecksum(&fr, b[fr.PayloadOff-UDPLen:fr.PayloadOff+fr.PayloadLen])
		}
	}
	if fr.Type == EtherTypeIPv4 {
		VerifyIPv4Checksum(b[fr.IPHeaderOff : fr.IPHeaderOff+fr.IPHeaderLen])
		_ = EchoReply(&fr, bytes.Clone(b), vm1MAC)
		if fr.Proto == ProtoUDP && length == len(b) {
			VerifyUDPChecksum(&fr, b[fr.PayloadOff-UDPLen:fr.PayloadOff+fr.PayloadLen])
		}
	}
}

// FuzzICMPv6 parses b, with its checksum corrected, as the payload of an IPv6 packet and as each kind of message. A
// message of neighbour discovery is written and read again.
func FuzzICMPv6(f *testing.F) {
	for _, seed := range []string{echo6Request, solicitFrame, advertiseFrame, probeFrame, joinFrame} {
		b := unhex(f, seed)
		f.Add(b[14:54], b[54:])
	}
	query := mldQuery(AllNodes)
	f.Add(query[14:54], query[62:])
	f.Fuzz(func(t *testing.T, header, message []byte) {
		if len(header) < 40 || len(message) < 4 || len(message) > 1400 {
			return
		}
		fr := Frame{Type: EtherTypeIPv6, Proto: ProtoICMPv6, TTL: header[7], Src6: IPv6(header[8:24]),
			Dst6: IPv6(header[24:40]), PayloadLen: len(message)}
		putICMPv6Checksum(message, fr.Src6, fr.Dst6)
		if !VerifyICMPv6Checksum(&fr, message) {
			t.Fatalf("% x: checksum found wrong", message)
		}
		var q MLDQuery
		_ = q.Parse(&fr, message)
		var p, again NDP
		if p.Parse(&fr, message) != nil {
			return
		}
		out := make([]byte, NDPFrameLen)
		out = out[:p.Put(out, macA, macB, fr.Src6, fr.Dst6)]
		var g Frame
		if err := g.Parse(out, len(out)); err != nil {
			t.Fatalf("% x: %v", out, err)
		}
		if err := again.Parse(&g, out[g.PayloadOff:]); err != nil || again != p {
			t.Fatalf("%v\nfirst  %+v\nsecond %+v", err, p, again)
		}
	})
}

// FuzzChecksum compares the fast sum, in two pieces, with RFC 1071's.
func FuzzChecksum(f *testing.F) {
	f.Add([]byte{1, 2, 3}, 1)
	f.Add(bytes.Repeat([]byte{0xff}, 129), 64)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		cut = min(max(cut, 0), len(b)) &^ 1
		got := Fold(Checksum(Checksum(0, b[:cut]), b[cut:]))
		if want := slowSum(b); !sameSum(got, want) {
			t.Fatalf("% x cut at %d: %#04x, want %#04x", b, cut, got, want)
		}
	})
}
