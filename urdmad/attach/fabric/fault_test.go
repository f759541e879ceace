package fabric

import (
	"encoding/binary"
	"errors"
	"testing"

	"urdma/topology"
)

// TestErrors: a port adds injected errors to its own counts; clearing clears both.
func TestErrors(t *testing.T) {
	s, _ := three(t)
	errors := Errors{symbolErrors: 12, linkDowned: 3, vl15Dropped: 1 << 20}
	if err := s.Inject("urdma0", errors, true); err != nil || s.Injected(0) != (Errors{}) {
		t.Fatal(err, s.Injected(0))
	}
	if err := s.Inject("urdma0", errors, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		method     byte
		symbols    uint16
		down       byte
		vl15, recv uint32
	}{{MethodGet, 12, 4, 0xffff, 3}, {MethodSet, 0, 0, 0, 0}, {MethodGet, 0, 0, 0, 0}} {
		m := perf(want.method, attrPortCounters, 1, 0xffff)
		m[perfData+18] = 1 // VL15Dropped's and XmitWait's bits, above the 16
		b := one(t, s, 1, 0x10, m)[perfData:]
		if got := binary.BigEndian.Uint16(b[4:]); got != want.symbols || b[7] != want.down ||
			uint32(binary.BigEndian.Uint16(b[22:])) != want.vl15 || binary.BigEndian.Uint32(b[36:]) != want.recv {
			t.Errorf("method %d: %d symbol errors, link downed %d, VL15 dropped %d", want.method, got, b[7],
				binary.BigEndian.Uint16(b[22:]))
		}
	}
}

// TestFaultNames: the port of an injected error is found by device, NodeDescription or GUID, and port number.
func TestFaultNames(t *testing.T) {
	topo, err := topology.Parse("file", []byte("Switch 4 \"s\"\n[1] \"a\"[1]\n[2] \"b\"[1]\nswitchguid=0x7700\nSwitch 4 \"r\" # \"twice\"\nCa 1 \"a\" # \"twice\"\nCa 1 \"b\" # \"one/2\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, ports := devicesOf(t)
	s, err := New("host", ports[:3], topo)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]struct {
		guid uint64
		num  int
		err  error
	}{
		"hca0/2": {1, 2, nil}, "host hca0/3": {1, 3, nil}, "0x1/1": {1, 1, nil}, "0x7700/4": {0x7700, 4, nil},
		"one/2": {s.nodes[3].guid, 1, nil}, "s/0": {err: ErrNotFound},
		"hca0": {err: ErrWhich}, "hca0/4": {err: ErrNotFound}, "twice/1": {err: ErrWhich}, "0x9": {err: ErrNotFound},
		"": {err: ErrNotFound}, "/": {err: ErrNotFound}, "s/-1": {err: ErrNotFound},
	} {
		e, err := s.findPort(at)
		if !errors.Is(err, want.err) || err == nil && (e.node.guid != want.guid || e.num != want.num) {
			t.Errorf("%q: %+v, %v, expected %+v", at, e, err, want)
		}
	}
}
