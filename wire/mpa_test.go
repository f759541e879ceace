package wire

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

const (
	request = "4d 50 41 20 49 44 20 52 65 71 20 46 72 61 6d 65 "
	reply   = "4d 50 41 20 49 44 20 52 65 70 20 46 72 61 6d 65 "
)

// capturedMPA are requests and replies of the kernel's siw (captures of Linux 6.1).
var capturedMPA = []struct {
	capture, hex string
	want         MPA
}{
	{"siw-rping-c3", request + "10 02 00 04 00 01 00 01", MPA{Enhanced: true, Revision: 2, IRD: 1, ORD: 1}},
	{"siw-rping-c3", reply + "10 02 00 04 00 01 00 01", MPA{Reply: true, Enhanced: true, Revision: 2, IRD: 1, ORD: 1}},
	{"siw-crc-p2p-rping-c3", request + "50 02 00 04 80 01 c0 01",
		MPA{CRC: true, Enhanced: true, Revision: 2, IRD: 1, ORD: 1, PeerToPeer: true, RTRWrite: true, RTRRead: true}},
	{"siw-crc-p2p-rping-c3", reply + "50 02 00 04 80 01 80 01",
		MPA{Reply: true, CRC: true, Enhanced: true, Revision: 2, IRD: 1, ORD: 1, PeerToPeer: true, RTRWrite: true}},
	{"siw-crc-mpa1-rping-c3", request + "40 01 00 00", MPA{CRC: true, Revision: 1}},
	{"siw-crc-vec-reject", request + "50 02 00 10 00 04 00 03 63 6c 69 65 6e 74 2d 64 61 74 61 00",
		MPA{CRC: true, Enhanced: true, Revision: 2, IRD: 4, ORD: 3, PrivateData: []byte("client-data\x00")}},
	{"siw-crc-vec-reject", reply + "70 02 00 0d 00 03 00 04 6e 6f 74 2d 74 6f 64 61 79",
		MPA{Reply: true, CRC: true, Reject: true, Enhanced: true, Revision: 2, IRD: 3, ORD: 4,
			PrivateData: []byte("not-today")}},
	{"siw-crc-gso-write-bw-16384", request + "58 02 00 04 00 00 00 00",
		MPA{CRC: true, Long: true, Enhanced: true, Revision: 2}},
}

func TestCapturedMPA(t *testing.T) {
	for _, c := range capturedMPA {
		b := unhex(t, c.hex)
		var got MPA
		n, err := got.Parse(b, c.want.Reply)
		if len(got.PrivateData) == 0 {
			got.PrivateData = nil
		}
		if err != nil || n != len(b) || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %d of %d bytes, %v\n got %+v\nwant %+v", c.capture, n, len(b), err, got, c.want)
		}
		out, err := c.want.Append(nil)
		if err != nil {
			t.Errorf("%s: %v", c.capture, err)
		}
		sameBytes(t, c.capture, out, b)
	}
}

func TestMPAErrors(t *testing.T) {
	for _, c := range []struct {
		hex   string
		reply bool
		want  error
	}{
		{request, false, ErrMPAShort},
		{request + "10 02 00 04 00 01 00", false, ErrMPAShort},
		{request + "10 02 00 04 00 01 00 01", true, ErrMPAKey},
		{reply + "10 02 00 04 00 01 00 01", false, ErrMPAKey},
		{request + "00 01 02 01", false, ErrMPAPrivate},
		{request + "10 01 00 04 00 01 00 01", false, ErrMPAEnhanced},
		{request + "10 02 00 02 00 01", false, ErrMPAEnhanced},
	} {
		var m MPA
		if n, err := m.Parse(unhex(t, c.hex), c.reply); n != 0 || !errors.Is(err, c.want) {
			t.Errorf("%s: %d, %v, expected %v", c.hex, n, err, c.want)
		}
	}
	long := MPA{Revision: 2, Enhanced: true, PrivateData: make([]byte, MaxMPAPrivate-3)}
	if _, err := long.Append(nil); !errors.Is(err, ErrMPAPrivate) {
		t.Errorf("private data of %d bytes: %v", len(long.PrivateData), err)
	}
}

// TestCapturedFPDUs checks lengths, padding and CRCs against siw's. The padding in the second row is not zero.
func TestCapturedFPDUs(t *testing.T) {
	for _, c := range []string{
		"00 0e c1 40 00 00 00 01 00 00 00 00 00 00 00 00 eb d3 4c 5f",
		"00 16 41 43 00 00 00 00 00 00 00 00 00 00 00 02 00 00 00 00 00 00 10 00 2f d8 88 6e",
		"00 22 41 43 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00 36 2e 30 36 00 00 00 00 00 00 00 00 00 00 00 00 47 " +
			"a2 28 f1",
	} {
		b := unhex(t, c)
		n := int(b[0])<<8 | int(b[1])
		if got := FPDULen(n); got != len(b) || FPDUHeaderLen+n+FPDUPadding(n)+FPDUCRCLen != got {
			t.Errorf("a segment of %d bytes: FPDU of %d with %d of padding, expected %d", n, got, FPDUPadding(n), len(b))
		}
		covered, sum := b[:len(b)-FPDUCRCLen], b[len(b)-FPDUCRCLen:]
		crc := FPDUCRC(FPDUCRC(0, covered[:5]), covered[5:])
		sameBytes(t, "CRC", []byte{byte(crc), byte(crc >> 8), byte(crc >> 16), byte(crc >> 24)}, sum)
	}
}

func FuzzMPA(f *testing.F) {
	for _, c := range capturedMPA {
		f.Add(unhex(f, c.hex), strings.HasPrefix(c.hex, reply))
	}
	f.Fuzz(func(t *testing.T, b []byte, reply bool) {
		var m, again MPA
		n, err := m.Parse(b, reply)
		if err != nil {
			return
		}
		out, err := m.Append(nil)
		if err != nil || len(out) != n {
			t.Fatalf("read %d bytes, wrote %d, %v", n, len(out), err)
		}
		if _, err := again.Parse(out, reply); err != nil || !bytes.Equal(m.PrivateData, again.PrivateData) {
			t.Fatalf("read again: %v", err)
		}
		m.PrivateData, again.PrivateData = nil, nil
		if !reflect.DeepEqual(m, again) {
			t.Fatalf("\nfirst  %+v\nsecond %+v", m, again)
		}
	})
}
