package ibcm

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

// captured are messages of Linux 6.1 (rdma_cm over rxe), without zeros at their end.
var captured = []struct {
	capture, hex string
	want         Message
	private      string // without zeros
	turns        int    // number of bytes that Put writes differently, from fields that Message lacks
}{
	{"rxe-rping-c3 REQ", `010702030000000000000002d5530bd80010000000000000
		d80b53d5000000000000000001061c06505400fffee0a74400000000000000000000110100000001000000a0a39984a7ffff37f0ffffffff
		00000000000000000000ffff0a09000300000000000000000000ffff0a090002aaab60000040009800000000000000000000000000000000
		000000000000000000000000000000000000000000000000000000000040db500000000000000000000000000a090003000000000000000000
		0000000a090002`,
		Message{Kind: REQ, TID: 0x2d5530bd8, Local: 0xd80b53d5, Service: 0x1061c06, GUID: 0x505400fffee0a744, QPN: 0x11,
			Responder: 1, Initiator: 1,
			PSN: 0xa39984, Retries: 7, PKey: 0xffff, PathMTU: 3, RNRRetry: 7, HopLimit: 64, AckTimeout: 19,
			Src: netip.MustParseAddr("10.9.0.3").As16(), Dst: netip.MustParseAddr("10.9.0.2").As16()},
		"0040db500000000000000000000000000a0900030000000000000000000000000a090002", 3}, // a flow label
	{"rxe-rping-c3 REP", `010702030000000000000002d5530bd80013000000000000
		3e4cc974d80b53d5000000000000110000000000d8af4b00010178e0505400fffea8282f`,
		Message{Kind: REP, TID: 0x2d5530bd8, Local: 0x3e4cc974, Remote: 0xd80b53d5, QPN: 0x11, PSN: 0xd8af4b, Responder: 1,
			Initiator: 1,
			RNRRetry:  7, GUID: 0x505400fffea8282f}, "", 1}, // differs in the delay of acknowledgements
	{"rxe-rping-c3 RTU", "010702030000000000000002d5530bd80014000000000000 d80b53d53e4cc974",
		Message{Kind: RTU, TID: 0x2d5530bd8, Local: 0xd80b53d5, Remote: 0x3e4cc974}, "", 0},
	{"rxe-rping-c3 DREQ", "010702030000000000000002d5530bd80015000000000000 d80b53d53e4cc974000011",
		Message{Kind: DREQ, TID: 0x2d5530bd8, Local: 0xd80b53d5, Remote: 0x3e4cc974, QPN: 0x11}, "", 0},
	{"rxe-rping-c3 DREP", "010702030000000000000002d5530bd80016000000000000 3e4cc974d80b53d5",
		Message{Kind: DREP, TID: 0x2d5530bd8, Local: 0x3e4cc974, Remote: 0xd80b53d5}, "", 0},
	{"rxe-vec-reject REJ", "01070203000000000000000457864f080012000000000000 a5d8325d084f86570000001c" +
		strings.Repeat("00", 72) + "6e6f742d746f646179",
		Message{Kind: REJ, TID: 0x457864f08, Local: 0xa5d8325d, Remote: 0x084f8657, Reason: ConsumerDefined},
		hex.EncodeToString([]byte("not-today")), 0},
}

func whole(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return append(b, make([]byte, Len-len(b))...)
}

func TestCapturedMessages(t *testing.T) {
	for _, c := range captured {
		b := whole(t, c.hex)
		var m Message
		if err := m.Parse(b); err != nil {
			t.Errorf("%s: %v", c.capture, err)
			continue
		}
		if got := hex.EncodeToString(bytes.TrimRight(m.Private, "\x00")); got != c.private {
			t.Errorf("%s: private data %s, expected %s", c.capture, got, c.private)
		}
		out := make([]byte, Len)
		if err := m.Put(out); err != nil {
			t.Errorf("%s: %v", c.capture, err)
		}
		differ := 0
		for i := range out {
			if out[i] != b[i] {
				differ++
			}
		}
		if differ != c.turns {
			t.Errorf("%s: %d bytes are written otherwise, expected %d\n got %x\nwant %x", c.capture, differ, c.turns, out, b)
		}
		m.Private = nil
		if !reflect.DeepEqual(m, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.capture, m, c.want)
		}
	}
}

func TestAddresses(t *testing.T) {
	var m Message
	if err := m.Parse(whole(t, captured[0].hex)); err != nil {
		t.Fatal(err)
	}
	var a Addresses
	if err := a.Parse(m.Private); err != nil || a.Src.String() != "10.9.0.3:56144" || a.Dst.String() != "10.9.0.2" {
		t.Errorf("%+v, %v", a, err)
	}
	for _, want := range []Addresses{a, {netip.MustParseAddrPort("[fd00::3]:7"), netip.MustParseAddr("fd00::2")}} {
		b := bytes.Repeat([]byte{0xee}, HeaderLen)
		want.Put(b)
		var got Addresses
		if err := got.Parse(b); err != nil || got != want {
			t.Errorf("%+v, %v, expected %+v", got, err, want)
		}
		if want == a && !bytes.Equal(b, m.Private[:HeaderLen]) {
			t.Errorf("written as %x", b)
		}
	}
	for _, b := range [][]byte{nil, make([]byte, HeaderLen), bytes.Repeat([]byte{1}, HeaderLen)} {
		if a.Parse(b) == nil {
			t.Errorf("%x is taken", b)
		}
	}
	if port, ok := m.Service.TCPPort(); !ok || port != 7174 || TCPService(7174) != m.Service {
		t.Errorf("service %#x is port %d", m.Service, port)
	}
	if _, ok := (udpServices | 7).TCPPort(); ok {
		t.Error("a service of RDMA_PS_UDP is one of RDMA_PS_TCP")
	}
}

// TestRefused: Parse names the error of each malformed message.
func TestRefused(t *testing.T) {
	good := whole(t, captured[2].hex)
	for i, want := range map[int]error{0: ErrClass, 1: ErrClass, 2: ErrClass, 3: ErrClass, 16: ErrKind, 17: ErrKind} {
		b := bytes.Clone(good)
		b[i] ^= 0x20
		var m Message
		if err := m.Parse(b); err != want {
			t.Errorf("byte %d: %v, expected %v", i, err, want)
		}
	}
	var m Message
	if err := m.Parse(good[:Len-1]); err != ErrShort {
		t.Errorf("short: %v", err)
	}
	for kind, room := range map[Kind]int{REQ: requestPrivate, REP: replyPrivate, REJ: rejectPrivate} {
		b := make([]byte, Len)
		m := Message{Kind: kind, Private: make([]byte, room)}
		if err := m.Put(b); err != nil {
			t.Errorf("%#x: %v", kind, err)
		}
		m.Private = append(m.Private, 0)
		if err := m.Put(b); err != ErrPrivate {
			t.Errorf("%#x with a byte more: %v", kind, err)
		}
	}
}

// TestXRC: the request's transport and the reply's target stand where Linux reads them.
func TestXRC(t *testing.T) {
	for _, m := range []Message{{Kind: REQ, Transport: XRC, Private: make([]byte, requestPrivate)},
		{Kind: REP, Target: 0x123456, Private: make([]byte, replyPrivate)}} {
		b := make([]byte, Len)
		if err := m.Put(b); err != nil {
			t.Fatal(err)
		}
		if m.Kind == REQ && (b[headerLen+43]>>1&3 != 3 || b[headerLen+51]&7 != 1) ||
			m.Kind == REP && word24(b[headerLen+16:]) != 0x123456 {
			t.Errorf("%+v is written as % x", m, b)
		}
		var got Message
		if err := got.Parse(b); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%+v, %v, expected %+v", got, err, m)
		}
	}
}

// TestGivenUp: a REJ says which message it rejects, and who gave up, where Linux reads it.
func TestGivenUp(t *testing.T) {
	for want, m := range map[string]Message{
		"80100004 1122334455667788": {Kind: REJ, Refused: RefusedNone, Reason: TimedOut, GUID: 0x1122334455667788,
			Private: make([]byte, rejectPrivate)},
		"40000006 0000000000000000": {Kind: REJ, Refused: RefusedREP, Reason: InvalidCommID,
			Private: make([]byte, rejectPrivate)},
	} {
		b := make([]byte, Len)
		if err := m.Put(b); err != nil {
			t.Fatal(err)
		}
		if at := b[headerLen+8:]; fmt.Sprintf("%x %x", at[:4], at[4:12]) != want {
			t.Errorf("%+v is written as %x, expected %s", m, at[:12], want)
		}
		var got Message
		if err := got.Parse(b); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%+v, %v, expected %+v", got, err, m)
		}
	}
}

// FuzzMessage: no input makes Parse panic, and an accepted message is unchanged after Put and Parse.
func FuzzMessage(f *testing.F) {
	for _, c := range captured {
		f.Add(whole(f, c.hex))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m, again Message
		if m.Parse(b) != nil {
			return
		}
		out := make([]byte, Len)
		if err := m.Put(out); err != nil {
			t.Fatal(err)
		}
		if err := again.Parse(out); err != nil || !reflect.DeepEqual(m, again) {
			t.Fatalf("%v\nfirst  %+v\nsecond %+v", err, m, again)
		}
		var a Addresses
		_ = a.Parse(m.Private)
	})
}
