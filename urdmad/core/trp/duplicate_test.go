package trp_test

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

// claim is the advertisement of a host that already has an address (RFC 4861 section 7.2.6).
func claim(of *enginetest.Host) []byte {
	b := make([]byte, wire.NDPFrameLen)
	theirs := wire.MAC{2, 0, 0, 0, 0xd, 0xd}
	a := wire.NDP{Type: wire.ICMPv6Advertise, Target: of.Addr.As16(), MAC: theirs, HasMAC: true, Override: true}
	return b[:a.Put(b, theirs, wire.Group6MAC(wire.AllNodes), of.Addr.As16(), wire.AllNodes)]
}

// TestDuplicateEndsConnections: if another host has the port's address, outstanding work fails at once, programs get
// the end of their connections, the log has one line, and nothing more is sent from the address.
func TestDuplicateEndsConnections(t *testing.T) {
	var log bytes.Buffer
	w := enginetest.New(t, enginetest.Options{Seed: 31, IPv6: true, Path: linked.Path{Delay: 100 * time.Microsecond},
		Log: slog.NewTextHandler(&log, nil)})
	busy, peer := w.Pair(false, nil)
	idle, _ := w.Pair(false, nil)
	mine, theirs := busy.Client.Register(1<<20, enginetest.ReadWrite), peer.Client.Register(1<<20, enginetest.ReadWrite)
	idle.PostRecv(50)
	open := w.A.NewClient()
	asked := open.Resolve(w.B.Addr, 4711) // its route was resolved before
	w.A.Do(w.A.Engine.Interface(0).Announce)
	busy.Post(enginetest.Write(1, theirs, 0), mine.SGE(0, 1<<20))
	busy.Post(enginetest.Send(2), mine.SGE(0, 10))
	w.Pass(20 * time.Microsecond)

	w.B.Port.Inject(claim(w.A))
	start := w.Now()
	for _, q := range []*enginetest.QP{busy, idle} {
		q.Client.Event(abi.CMDisconnected, time.Second)
	}
	if took := time.Duration(w.Now() - start); took > 10*time.Millisecond {
		t.Errorf("connections ended after %v", took)
	}
	enginetest.Expect(t, "sender", busy.Send.Completions(2), []uint64{1, 2}, abi.StatusRetryExcErr, abi.StatusWRFlushErr)
	enginetest.Expect(t, "receive", idle.Recv.Completions(1), []uint64{50}, abi.StatusWRFlushErr)

	sent := w.A.Port.Stats().TxPackets
	open.Connect(asked, open.NewQP(nil), enginetest.Param(1, ""))
	w.A.Do(func() { w.A.Engine.Interface(0).Join(netip.MustParseAddr("ff15::1")) })
	w.A.Do(w.A.Engine.Interface(0).Announce) // the link comes up again
	w.B.Port.Inject(claim(w.A))
	open.Event(cm.EventUnreachable, 10*time.Second)
	w.Pass(6 * time.Second)
	if n := w.A.Port.Stats().TxPackets - sent; n != 0 {
		t.Errorf("%d frames left after another host was found to have the address", n)
	}
	if said := strings.Count(log.String(), "another host has the port's IPv6 address"); said != 1 ||
		!strings.Contains(log.String(), "connections=2") {
		t.Errorf("said %d times:\n%s", said, log.String())
	}
}
