package memif

import (
	"encoding/hex"
	"strings"
	"testing"
)

// golden has messages with their bytes in net_memif's layout: packed after a 16-bit kind, little-endian.
func TestMessageBytes(t *testing.T) {
	var secret [secretSize]byte
	copy(secret[:], "key")
	for _, c := range []struct {
		name string
		m    message
		want string
	}{
		{"hello", hello{name: "ab", minVersion: 0x200, maxVersion: 0x201, maxRegion: 3, maxS2CRing: 4, maxC2SRing: 5,
			maxLog2RingEntries: 14}.encode(),
			"0200 6162" + strings.Repeat("00", 30) + "0002 0102 0300 0400 0500 0e"},
		{"init", initMsg{version: 0x200, id: 0x01020304, mode: 0, secret: secret, name: "ab"}.encode(),
			"0300 0002 04030201 00 6b6579" + strings.Repeat("00", 21) + "6162"},
		{"add region", addRegion{index: 1, size: 0x1122334455}.encode(), "0400 0100 5544332211000000"},
		{"add ring", addRing{flags: 1, index: 2, region: 3, offset: 0x10203, log2: 10, privHeader: 7}.encode(),
			"0500 0100 0200 0300 03020100 0a 0700"},
		{"connect", connectMsg(kindConnect, "if0"), "0600 696630"},
		{"connected", connectMsg(kindConnected, "if0"), "0700 696630"},
		{"disconnect", disconnectMsg("bye"), "0800 00000000 627965"},
		{"ack", newMessage(kindAck), "0100"},
	} {
		want := strings.ReplaceAll(c.want, " ", "")
		want += strings.Repeat("0", 2*messageSize-len(want))
		if got := hex.EncodeToString(c.m[:]); got != want {
			t.Errorf("%s\n got %s\nwant %s", c.name, got, want)
		}
	}
}

func TestMessageRoundTrip(t *testing.T) {
	h := hello{name: "x", minVersion: 1, maxVersion: 2, maxRegion: 3, maxS2CRing: 4, maxC2SRing: 5, maxLog2RingEntries: 6}
	if m := h.encode(); m.hello() != h {
		t.Errorf("hello: %+v", m.hello())
	}
	i := initMsg{version: 1, id: 2, mode: 3, secret: [secretSize]byte{4}, name: "y"}
	if m := i.encode(); m.init() != i {
		t.Errorf("init: %+v", m.init())
	}
	r := addRing{1, 2, 3, 4, 5, 6}
	if m := r.encode(); m.addRing() != r {
		t.Errorf("add ring: %+v", m.addRing())
	}
	a := addRegion{1, 2}
	if m := a.encode(); m.addRegion() != a {
		t.Errorf("add region: %+v", m.addRegion())
	}
}

func TestNamesAreCleaned(t *testing.T) {
	m := disconnectMsg("a\x1b[31m\nb" + strings.Repeat("z", 200))
	if _, s := m.disconnect(); len(s) != reasonSize-1 || !strings.HasPrefix(s, "a?[31m?bz") {
		t.Errorf("%q", s)
	}
}

func FuzzMessages(f *testing.F) {
	hi, add := hello{name: "x"}.encode(), addRing{log2: 3}.encode()
	f.Add(hi[:])
	f.Add(add[:])
	f.Fuzz(func(t *testing.T, b []byte) {
		var m message
		copy(m[:], b)
		m.hello()
		m.init()
		m.addRegion()
		m.interfaceName()
		m.disconnect()
		a := m.addRing()
		mem := make([]byte, 4096)
		o := offer{regions: [][]byte{mem}}
		o.ring(&a)
		if b, ok := span(mem, a.offset, uint32(a.region)); ok && len(b) != int(a.region) {
			t.Fatal("span of the wrong length")
		}
	})
}
