package wire

import (
	"bytes"
	"errors"
	"testing"
)

// TestEncap checks the bytes of the header in both directions, and what Parse refuses.
func TestEncap(t *testing.T) {
	golden := []byte{0x75, 0x52, 1, 0, 0x1c, 0x06, 0xc0, 0x01}
	want := Encap{Type: EncapTRP, Src: 7174, Dst: 49153}
	got := make([]byte, EncapLen)
	if want.Put(got); !bytes.Equal(got, golden) {
		t.Errorf("put % x, want % x", got, golden)
	}
	var e Encap
	if err := e.Parse(golden); err != nil || e != want {
		t.Errorf("parsed %+v, %v", e, err)
	}
	for _, c := range []struct {
		at   int
		to   byte
		want error
	}{{0, 0x74, ErrEncapMagic}, {1, 0, ErrEncapMagic}, {2, 0, ErrEncapVersion}, {2, 2, ErrEncapVersion},
		{3, 4, ErrEncapType}} {
		b := bytes.Clone(golden)
		b[c.at] = c.to
		if err := e.Parse(b); !errors.Is(err, c.want) {
			t.Errorf("byte %d = %d: %v, want %v", c.at, c.to, err, c.want)
		}
	}
	for n := range EncapLen {
		if err := e.Parse(golden[:n]); !errors.Is(err, ErrEncapShort) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// TestPadding checks the bytes of a padded datagram in both directions, and what Unpad refuses.
func TestPadding(t *testing.T) {
	golden := []byte{0x75, 0x52, 1, 3, 0x1c, 0x06, 0xc0, 0x01, 0xaa, 0xbb, 0, 0, 0, 4}
	e := Encap{Src: 7174, Dst: 49153}
	got := bytes.Repeat([]byte{0xff}, len(golden))
	e.Put(got)
	got[8], got[9] = 0xaa, 0xbb
	if PutPadding(got, 10); !bytes.Equal(got, golden) {
		t.Errorf("put % x, want % x", got, golden)
	}
	if err := e.Parse(golden); err != nil || e.Type != EncapPadded {
		t.Errorf("parsed %+v, %v", e, err)
	}
	if b, err := Unpad(golden[EncapLen:]); err != nil || !bytes.Equal(b, golden[8:10]) {
		t.Errorf("without padding % x, %v", b, err)
	}
	for _, wrong := range [][]byte{{}, {2}, {0, 0}, {0, 1}, {9, 0, 4}, {0xff, 0xff}} {
		if b, err := Unpad(wrong); !errors.Is(err, ErrPadding) {
			t.Errorf("% x: % x, %v", wrong, b, err)
		}
	}
	if b, err := Unpad([]byte{0, 2}); err != nil || len(b) != 0 {
		t.Errorf("nothing but padding: % x, %v", b, err)
	}
}

// TestPathProbe checks the bytes of a probe in both directions.
func TestPathProbe(t *testing.T) {
	golden := []byte{1, 2, 3, 4, 0x05, 0xc0, 0, 0, 0, 0}
	want := PathProbe{Nonce: 0x01020304, Most: 1472}
	got := bytes.Repeat([]byte{0xff}, len(golden))
	if want.Put(got); !bytes.Equal(got, golden) {
		t.Errorf("put % x, want % x", got, golden)
	}
	var p PathProbe
	if err := p.Parse(golden); err != nil || p != want {
		t.Errorf("parsed %+v, %v", p, err)
	}
	for n := range PathProbeLen {
		if err := p.Parse(golden[:n]); !errors.Is(err, ErrProbeShort) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}
