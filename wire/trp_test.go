package wire

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestTRPGolden(t *testing.T) {
	for _, c := range []struct {
		name, hex string
		want      TRP
	}{
		{"data, AR", "fffffffe 00000003 0fff 8000 deadbeef",
			TRP{PSN: 0xfffffffe, Ack: 3, Op: OpData, Credits: 4095, Flags: FlagAckRequested, Cookie: 0xdeadbeef}},
		{"wide credits", "fffffffe 00000003 0fff 80ff deadbeef",
			TRP{PSN: 0xfffffffe, Ack: 3, Op: OpData, Credits: 0xfffff, Flags: FlagAckRequested, Cookie: 0xdeadbeef}},
		{"credits of 65,536", "00000001 00000003 0000 0010 deadbeef",
			TRP{PSN: 1, Ack: 3, Op: OpData, Credits: 1 << 16, Cookie: 0xdeadbeef}},
		{"request", "11223344 00000000 1000", TRP{PSN: 0x11223344, Op: OpRequest}},
		{"retry", "00000000 11223344 7000", TRP{Ack: 0x11223344, Op: OpRetry}},
		{"accept", "00000001 11223344 2400",
			TRP{PSN: 1, Ack: 0x11223344, Op: OpAccept, Credits: 1024}},
		{"reject", "00000000 11223344 3000", TRP{Ack: 0x11223344, Op: OpReject}},
		{"fin", "00000009 00000008 4001 0000 00000001", TRP{PSN: 9, Ack: 8, Op: OpFin, Credits: 1, Cookie: 1}},
		{"sack", "00000009 00000008 5001 0000 00000001", TRP{PSN: 9, Ack: 8, Op: OpSack, Credits: 1, Cookie: 1}},
	} {
		b := unhex(t, c.hex)
		var got TRP
		n, err := got.Parse(append(b, 0xaa))
		if err != nil || n != len(b) || got != c.want {
			t.Errorf("%s: %d %v\n got %+v\nwant %d %+v", c.name, n, err, got, len(b), c.want)
		}
		out := make([]byte, len(b))
		if n := c.want.Put(out); n != len(b) {
			t.Errorf("%s: Put answers %d, want %d", c.name, n, len(b))
		}
		sameBytes(t, c.name, out, b)
	}
}

func TestTRPRefusals(t *testing.T) {
	var h TRP
	for op := range 16 {
		b := make([]byte, TRPExtLen)
		b[8] = byte(op) << 4
		_, err := h.Parse(b)
		var want error
		if op == 6 || op == 8 || op > 10 {
			want = ErrTRPOpcode
		}
		if !errors.Is(err, want) {
			t.Errorf("opcode %d: %v, want %v", op, err, want)
		}
		for n := range TRPOp(op).headerLen() {
			if _, err := h.Parse(b[:n]); err == nil {
				t.Errorf("opcode %d: %d bytes accepted", op, n)
			}
		}
	}
}

func TestTRPCreditsAreClamped(t *testing.T) {
	h, b := TRP{Op: OpReject, Credits: 4096}, make([]byte, TRPLen)
	h.Put(b)
	sameBytes(t, "4096 credits", b[8:], []byte{0x3f, 0xff})
}

const (
	plainBody = "0003 0001 0004  61 62 63"
	extBlock  = "7552 01 14 deadbeef 0000002a 05a0 0400 00000003"
)

var extWant = TRPExtension{Cookie: 0xdeadbeef, QPN: 42, MaxSegment: 1440, RecvWindow: 1024, Capabilities: 3}

func TestConnectGolden(t *testing.T) {
	for _, c := range []struct {
		name, hex string
		want      TRPConnect
	}{
		{"no block", plainBody, TRPConnect{IRD: 1, ORD: 4, PrivateData: []byte("abc")}},
		{"block", plainBody + extBlock, TRPConnect{IRD: 1, ORD: 4, PrivateData: []byte("abc"), Ext: extWant, HasExt: true}},
		{"retry, or a request with its token",
			"0000 0000 0000  7552 01 20 00000000 00000000 0000 0000 00000000  00000000 89abcdef 00000000",
			TRPConnect{PrivateData: []byte{}, Ext: TRPExtension{Echo: 0x89abcdef}, HasExt: true}},
		{"by number", plainBody + "7552 01 24 deadbeef 0000002a 05a0 0400 00000003 00000007 00000009 0c 000000 05 abcdef",
			TRPConnect{IRD: 1, ORD: 4, PrivateData: []byte("abc"), HasExt: true,
				Ext: TRPExtension{Cookie: 0xdeadbeef, QPN: 42, MaxSegment: 1440,
					RecvWindow: 1024, Capabilities: 3, Target: 7, Echo: 9, MinRNRTimer: 12, PathMTU: 5, RQPSN: 0xabcdef}}},
		{"no private data", "0000 ffff 0000" + extBlock,
			TRPConnect{IRD: 0xffff, PrivateData: []byte{}, Ext: extWant, HasExt: true}},
	} {
		b := unhex(t, c.hex)
		var got TRPConnect
		if err := got.Parse(b); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", c.name, err, got, c.want)
		}
		out := make([]byte, len(b))
		if n, err := c.want.Put(out); n != len(b) || err != nil || n != c.want.Len() {
			t.Errorf("%s: Put answers %d %v, want %d", c.name, n, err, len(b))
		}
		sameBytes(t, c.name, out, b)
	}
}

func TestConnectIgnoresWhatItDoesNotKnow(t *testing.T) {
	longer := strings.Replace(extBlock, "01 14", "01 18", 1) + "cafe cafe"
	for _, c := range []struct {
		name, tail string
		ext        bool
	}{
		{"nothing", "", false},
		{"three bytes", "755201", false},
		{"another magic", "7553 01 14 deadbeef 0000002a 05a0 0400 00000003", false},
		{"zeros to the Ethernet minimum", "0000000000000000", false},
		{"version 2", "7552 02 04", false},
		{"block of 24", longer, true},
		{"bytes after the block", extBlock + "00 11 22", true},
	} {
		var got TRPConnect
		if err := got.Parse(unhex(t, plainBody+c.tail)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got.HasExt != c.ext || c.ext && got.Ext != extWant || string(got.PrivateData) != "abc" {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestConnectRefusals(t *testing.T) {
	for _, c := range []struct {
		name string
		b    []byte
		want error
	}{
		{"empty", nil, ErrConnectShort},
		{"5 bytes", make([]byte, 5), ErrConnectShort},
		{"private data cut", unhex(t, "0004 0001 0004 61 62 63"), ErrConnectShort},
		{"513 of private data", append(unhex(t, "0201 0001 0004"), make([]byte, 513)...), ErrPrivateDataLen},
		{"block of 19", unhex(t, plainBody+strings.Replace(extBlock, "01 14", "01 13", 1)), ErrExtensionLen},
		{"block cut", unhex(t, plainBody+extBlock)[:28], ErrExtensionLen},
		{"longer block cut", unhex(t, plainBody+strings.Replace(extBlock, "01 14", "01 15", 1)), ErrExtensionLen},
	} {
		var got TRPConnect
		if err := got.Parse(c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// TestConnectPadding: a padded body ends in zeros, which Parse ignores.
func TestConnectPadding(t *testing.T) {
	c := TRPConnect{IRD: 1, ORD: 4, PrivateData: []byte("abc"), HasExt: true, Ext: extWant, Padding: 5}
	b := bytes.Repeat([]byte{0xee}, c.Len())
	if n, err := c.Put(b); n != len(b) || err != nil {
		t.Fatal(n, err)
	}
	sameBytes(t, "padded", b, unhex(t, plainBody+extBlock+"0000000000"))
	var got TRPConnect
	if err := got.Parse(b); err != nil || got.Ext != extWant || got.Padding != 0 {
		t.Errorf("%v %+v", err, got)
	}
}

func TestConnectPutRefusals(t *testing.T) {
	c := TRPConnect{PrivateData: make([]byte, MaxPrivateData), HasExt: true}
	b := make([]byte, c.Len())
	if n, err := c.Put(b); n != 6+512+20 || err != nil {
		t.Errorf("512 bytes: %d %v", n, err)
	}
	if _, err := c.Put(b[1:]); !errors.Is(err, ErrBufferShort) {
		t.Errorf("short buffer: %v", err)
	}
	c.PrivateData = make([]byte, MaxPrivateData+1)
	if _, err := c.Put(make([]byte, 1000)); !errors.Is(err, ErrPrivateDataLen) {
		t.Errorf("513 bytes: %v", err)
	}
}

func TestExtensionCheck(t *testing.T) {
	for _, c := range []struct {
		segment, window uint16
		want            error
	}{
		{1440, 1024, nil},
		{128, 1, nil},
		{65535, 4095, nil},
		{127, 1024, ErrExtensionSegment},
		{1440, 0, ErrExtensionWindow},
		{1440, 4096, ErrExtensionWindow},
	} {
		e := TRPExtension{MaxSegment: c.segment, RecvWindow: c.window}
		if err := e.Check(); !errors.Is(err, c.want) {
			t.Errorf("segment %d window %d: %v, want %v", c.segment, c.window, err, c.want)
		}
	}
}

func TestSackGolden(t *testing.T) {
	b := unhex(t, "00000005 00000007  fffffffe 00000002")
	runs := []SackRun{{5, 7}, {0xfffffffe, 2}}
	got := make([]SackRun, MaxSackRuns)
	n, err := ParseSackRuns(got, b)
	if err != nil || !reflect.DeepEqual(got[:n], runs) {
		t.Errorf("got %v %v, want %v", got[:n], err, runs)
	}
	out := make([]byte, len(b))
	if n := PutSackRuns(out, runs); n != len(b) {
		t.Errorf("Put answers %d", n)
	}
	sameBytes(t, "Put", out, b)
}

func TestSackRefusals(t *testing.T) {
	full := make([]byte, 0, 33*SackRunLen)
	for i := range uint32(33) {
		full = append(full, 0, 0, 0, byte(2*i), 0, 0, 0, byte(2*i+1))
	}
	dst := make([]SackRun, 40)
	for _, c := range []struct {
		name string
		dst  []SackRun
		b    []byte
		n    int
		want error
	}{
		{"no runs", dst, nil, 0, nil},
		{"32 runs", dst, full[:256], 32, nil},
		{"33 runs", dst, full, 0, ErrSackCount},
		{"more than the list takes", dst[:1], full[:16], 0, ErrSackCount},
		{"part of a run", dst, full[:12], 0, ErrSackLen},
		{"empty run", dst, unhex(t, "00000005 00000005"), 0, ErrSackRun},
		{"backwards", dst, unhex(t, "00000006 00000005"), 0, ErrSackRun},
	} {
		n, err := ParseSackRuns(c.dst, c.b)
		if n != c.n || !errors.Is(err, c.want) {
			t.Errorf("%s: %d %v, want %d %v", c.name, n, err, c.n, c.want)
		}
	}
	many := make([]SackRun, 40)
	if n := PutSackRuns(make([]byte, 256), many); n != 256 {
		t.Errorf("40 runs: %d bytes written, want 256", n)
	}
}

func TestTRPNames(t *testing.T) {
	if OpSack.String() != "sack" || TRPOp(11).String() != "TRP opcode 11" {
		t.Error(OpSack, TRPOp(11))
	}
}
