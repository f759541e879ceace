package trp_test

import (
	"net/netip"
	"reflect"
	"testing"

	"urdma/urdmad/core/handshake"
	"urdma/urdmad/core/trp"
	"urdma/wire"
)

// TestMessages: every message is the same after it was encoded and decoded, and has the size that Size states. It keeps
// nothing of the packet.
func TestMessages(t *testing.T) {
	offer := wire.TRPExtension{Cookie: 9, QPN: 3, MaxSegment: 1400, RecvWindow: 64, Capabilities: wire.CapXRC}
	byNumber := handshake.ByNumber{Target: 4, Cookie: 5, Echo: 6, MinRNRTimer: 7, PathMTU: 3, RQPSN: 8}
	private := []byte("private data")
	for name, m := range map[string]handshake.Message{
		"request":           {Kind: handshake.Request, Number: 1, IRD: 2, ORD: 3, Token: 6, QPN: 3, PrivateData: private},
		"reply":             {Kind: handshake.Reply, Number: 1, Answers: 2, IRD: 2, ORD: 3, QPN: 3, PrivateData: private},
		"request by number": {Kind: handshake.Request, Number: 1, IRD: 2, QPN: 3, ByNumber: byNumber},
		"reject":            {Kind: handshake.Reject, Answers: 2, Reason: handshake.ByConsumer, PrivateData: private},
		"retry":             {Kind: handshake.Retry, Answers: 2, Token: 7},
		"resolve":           {Kind: handshake.Resolve, Number: 1, QPN: 3, PrivateData: private},
		"resolved":          {Kind: handshake.Resolved, Answers: 2, QPN: 3, QKey: 4, PrivateData: private},
		"no queue pair":     {Kind: handshake.Resolved, Answers: 2, Reason: 2, PrivateData: private},
		"program undecided": {Kind: handshake.Pending, Answers: 2},
		"reply over IPv6":   {Kind: handshake.Reply, Local: netip.MustParseAddrPort("[fd00::1]:1"), QPN: 3},
	} {
		if !m.Local.IsValid() {
			m.Local = netip.MustParseAddrPort("10.0.0.1:1")
		}
		b := make([]byte, 1500)
		k := trp.PacketOf(&m, &offer)
		n, err := k.Put(b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		headers := 28
		if m.Local.Addr().Is6() {
			headers = 48
		}
		if size, fin := trp.Size(&m); size != headers+n || fin != headers+wire.TRPExtLen {
			t.Errorf("%s: %d bytes, its fin %d; %d were written", name, size, fin, headers+n)
		}
		var h wire.TRP
		at, err := h.Parse(b[:n])
		got := handshake.Message{Local: m.Local}
		if err != nil || trp.Decode(&got, &h, b[at:n]) != nil {
			t.Fatalf("%s: not decoded", name)
		}
		clear(b)
		if got.Offer != nil { // what was offered, whatever the message says of it
			e := got.Offer.(*wire.TRPExtension)
			if e.MaxSegment != offer.MaxSegment || e.RecvWindow != offer.RecvWindow || e.Capabilities != offer.Capabilities {
				t.Errorf("%s: offers %+v", name, e)
			}
		}
		if got.Allowance != 3*(headers+n) {
			t.Errorf("%s: %d bytes may answer %d", name, got.Allowance, headers+n)
		}
		if m.ByNumber.Target == 0 {
			got.ByNumber = handshake.ByNumber{}
		} else {
			got.Token = 0
		}
		got.Offer, got.Allowance = nil, 0
		if len(got.PrivateData) == 0 {
			got.PrivateData = nil
		}
		if !reflect.DeepEqual(got, m) {
			t.Errorf("%s: %+v, expected %+v", name, got, m)
		}
	}
}
