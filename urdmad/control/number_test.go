package control_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"urdma/inspect"
	"urdma/verbs/abi"
)

// newInit makes a queue pair in INIT.
func newInit(t *testing.T, c *client) abi.QPResponse {
	t.Helper()
	q, err := call[abi.CreateQPRequest, abi.QPResponse](c, abi.CreateQP,
		abi.CreateQPRequest{PD: 2, QPType: abi.QPTypeRC, SendCQ: 4, RecvCQ: 4,
			Cap: abi.QPCap{MaxSendWR: 4, MaxRecvWR: 4}})
	if err == nil {
		_, err = modifyTo(c, q.Handle, abi.QPMaskState|abi.QPMaskPort|abi.QPMaskPKeyIndex|abi.QPMaskAccessFlags,
			abi.QPAttr{QPState: abi.QPSInit, PortNum: 1, QPAccessFlags: 7})
	}
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func modifyTo(c *client, handle, mask uint32, a abi.QPAttr) (abi.QueryQPResponse, error) {
	return call[abi.ModifyQPRequest, abi.QueryQPResponse](c, abi.ModifyQP,
		abi.ModifyQPRequest{Handle: handle, Mask: mask, Attr: a})
}

const (
	toRTR = abi.QPMaskState | abi.QPMaskAV | abi.QPMaskPathMTU | abi.QPMaskDestQPN | abi.QPMaskRQPSN |
		abi.QPMaskMaxDestRdAtomic |
		abi.QPMaskMinRNRTimer
	toRTS = abi.QPMaskState | abi.QPMaskSQPSN | abi.QPMaskMaxQPRdAtomic | abi.QPMaskTimeout | abi.QPMaskRetryCnt |
		abi.QPMaskRNRRetry
)

func gid(a string) [16]byte { return netip.MustParseAddr(a).As16() }

// TestPaths: a path leads to an IPv4-mapped GID's address, or to that of a LID on
// the port's network; others are refused, and change nothing. A LID may lead nowhere.
func TestPaths(t *testing.T) {
	r, c := startEquipped(t)
	for _, v := range []struct {
		name string
		path abi.QPAttr
		peer string // "": refused
		err  syscall.Errno
	}{
		{"GID of the port", abi.QPAttr{IsGlobal: 1, DGID: gid("::ffff:198.18.0.1")}, "198.18.0.1", 0},
		{"LID of the port", abi.QPAttr{DLID: 1}, "198.18.0.1", 0},
		{"GID of InfiniBand with a LID", abi.QPAttr{IsGlobal: 1, DGID: gid("fe80::1"), DLID: 1}, "198.18.0.1", 0},
		{"LID that leads nowhere", abi.QPAttr{DLID: 7}, "198.18.0.7", 0},
		{"GID that is not meant", abi.QPAttr{DGID: gid("::ffff:198.18.0.9")}, "", syscall.EINVAL},
		{"GID of InfiniBand alone", abi.QPAttr{IsGlobal: 1, DGID: gid("fe80::1")}, "", syscall.EINVAL},
		{"multicast LID", abi.QPAttr{DLID: 0xc000}, "", syscall.EINVAL},
		{"no route", abi.QPAttr{IsGlobal: 1, DGID: gid("::ffff:192.0.2.1")}, "", syscall.ETIMEDOUT},
	} {
		q := newInit(t, c)
		v.path.QPState, v.path.PathMTU, v.path.DestQPNum, v.path.MaxDestRdAtomic = abi.QPSRTR, 3, 0x77, 5
		v.path.AHPortNum = 1
		if _, err := modifyTo(c, q.Handle, toRTR, v.path); (v.err == 0) != (err == nil) || err != nil &&
			!strings.Contains(err.Error(), v.err.Error()) {
			t.Errorf("%s: %v", v.name, err)
		}
		now, err := call[abi.HandleMessage, abi.QueryQPResponse](c, abi.QueryQP, abi.HandleMessage{Handle: q.Handle})
		if err != nil || (now.Attr.QPState == abi.QPSRTR) != (v.peer != "") ||
			(now.Attr.DestQPNum == 0x77) != (v.peer != "") {
			t.Errorf("%s: %+v, %v", v.name, now.Attr, err)
		}
		shown := connectionOf(t, r, q.QPN)
		if v.peer == "" && shown != nil || v.peer != "" &&
			(shown == nil || !strings.HasPrefix(shown.Peer, v.peer+":") || shown.Side != inspect.SideNumber) {
			t.Errorf("%s: shown as %+v", v.name, shown)
		}
	}
}

func connectionOf(t *testing.T, r *running, qpn uint32) *inspect.Connection {
	t.Helper()
	text, err := fetch(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	var s inspect.Snapshot
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	for i := range s.Connections {
		if s.Connections[i].QPN == qpn {
			return &s.Connections[i]
		}
	}
	return nil
}

// TestQueryGivesBack: the attributes that were set on the way to RTS are
// answered as they were, and RESET forgets them.
func TestQueryGivesBack(t *testing.T) {
	r, c := startEquipped(t)
	q := newInit(t, c)
	want := abi.QPAttr{QPState: abi.QPSRTR, PathMTU: 5, DestQPNum: 0x1234, RQPSN: 0xabcdef, MaxDestRdAtomic: 16,
		MinRNRTimer: 12, DLID: 9, IsGlobal: 1,
		DGID: gid("::ffff:198.18.0.1"), FlowLabel: 1, HopLimit: 2, TrafficClass: 3, SL: 4, StaticRate: 5, SrcPathBits: 6,
		AHPortNum: 1}
	if _, err := modifyTo(c, q.Handle, toRTR, want); err != nil {
		t.Fatal(err)
	}
	want.QPState, want.SQPSN, want.MaxRdAtomic, want.Timeout, want.RetryCnt, want.RNRRetry = abi.QPSRTS, 0x1ffffff, 16, 14,
		6, 5
	if _, err := modifyTo(c, q.Handle, toRTS, want); err != nil {
		t.Fatal(err)
	}
	got, err := call[abi.HandleMessage, abi.QueryQPResponse](c, abi.QueryQP, abi.HandleMessage{Handle: q.Handle})
	want.CurQPState, want.SQPSN, want.PortNum, want.QPAccessFlags = abi.QPSRTS, 0xffffff, 1, 7
	if err != nil || got.Attr != want {
		t.Errorf("%v\n got %+v\nwant %+v", err, got.Attr, want)
	}
	for _, tooMany := range []uint32{17, 1 << 31} { // the device has 16
		p := newInit(t, c)
		a := want
		a.QPState, a.MaxDestRdAtomic = abi.QPSRTR, tooMany
		if _, err := modifyTo(c, p.Handle, toRTR, a); err == nil {
			t.Errorf("max_dest_rd_atomic %d is taken", tooMany)
		}
	}
	if _, err := modifyTo(c, q.Handle, abi.QPMaskState, abi.QPAttr{QPState: abi.QPSReset}); err != nil {
		t.Fatal(err)
	}
	if shown := connectionOf(t, r, q.QPN); shown != nil {
		t.Errorf("after RESET there is %+v", shown)
	}
}
