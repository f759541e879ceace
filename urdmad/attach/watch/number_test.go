package watch

import (
	"net/netip"
	"testing"

	"urdma/urdmad/attach/tap"
	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/urdmad/control/objects"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/connect"
	"urdma/urdmad/core/engine"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
	"urdma/wire"
)

// packetTo makes a frame with a TRP packet.
func packetTo(src, dst netip.AddrPort, packet []byte) []byte {
	var h wire.UDPHeader
	h.Init(wire.MAC{2, 1}, wire.MAC{2, 2}, src.Addr().As4(), dst.Addr().As4(), src.Port(), dst.Port())
	frame := make([]byte, 42+len(packet))
	copy(frame[42:], packet)
	h.Put(frame, len(packet), 1)
	return frame
}

func requestPacket(e wire.TRPExtension) []byte {
	c := wire.TRPConnect{HasExt: true, Ext: e, PrivateData: make([]byte, wire.MaxPrivateData)}
	b := make([]byte, wire.TRPLen+c.Len())
	h := wire.TRP{Op: wire.OpRequest, PSN: 5}
	_, _ = c.Put(b[h.Put(b):])
	return b
}

// TestCaptureOfNumbers: frames of UDP port number 30034 are shown to the owner of the queue pair that they name, and
// to a listener on that port number only if they belong to rdma_cm.
func TestCaptureOfNumbers(t *testing.T) {
	e := engine.New(engine.Config{})
	us, them := netip.MustParseAddrPort("10.9.0.1:30034"), netip.MustParseAddrPort("10.9.0.2:30034")
	manager, _ := connect.New(e, cm.Config{Addrs: []netip.Addr{us.Addr()}, Timeout: 1, MaxDepth: 1})
	const has, listens, neither = 1001, 1002, 1003
	owner, spy := sessionOf(has, 100), sessionOf(listens, 200)
	listener := manager.Create(objects.Owner{Session: spy}, nil)
	if manager.Bind(listener, us) != nil || manager.Listen(listener, 1) != nil {
		t.Fatal("no listener on the port number")
	}
	w := &worker{Worker: &control.Worker{CM: manager, Engine: e}}
	client, _ := watched(owner, w)
	l := ring.QPLayout(abi.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1})
	q := qp.New(qp.Config{Client: &client.Client, SendCQ: &qp.CQ{}, RecvCQ: &qp.CQ{}, Cap: l.Cap}, make([]byte, l.Bytes),
		&l)
	e.QPs.Add(q)
	ours, theirs := wire.QPN(q.QPN), wire.QPN(q.QPN^1)
	datagram := func(dst, src wire.QPN) []byte {
		b := make([]byte, wire.DatagramLen)
		(&wire.Datagram{Dst: dst, Src: src}).Put(b)
		return b
	}
	uc := func(dst, src wire.QPN) []byte {
		b := make([]byte, wire.MaxUCLen)
		return b[:(&wire.UC{Dst: dst, Src: src}).Put(b)]
	}
	for _, c := range []struct {
		name   string
		packet []byte
		out    bool
		sees   int // who sees it, 0: nobody
	}{
		{"datagram in", datagram(ours, theirs), false, has},
		{"datagram out", datagram(theirs, ours), true, has},
		{"datagram to nobody", datagram(theirs, ours), false, 0},
		{"datagram with a wrong number", datagram(1<<24, ours), false, 0},
		{"UC in", uc(ours, theirs), false, has},
		{"UC out", uc(theirs, ours), true, has},
		{"cut datagram", datagram(ours, theirs)[:20], false, 0},
		{"request by number", requestPacket(wire.TRPExtension{QPN: theirs, Target: ours}), false, has},
		{"request by rdma_cm", requestPacket(wire.TRPExtension{QPN: theirs}), false, listens},
		{"nothing", nil, false, 0},
	} {
		s := tap.Sight{Our: us, Peer: them, Out: c.out, Frame: packetTo(them, us, c.packet)}
		for _, uid := range []int{has, listens, neither} {
			filter := &capture{w: w, viewer: &account.Owner{UID: uid},
				filter: abi.CaptureRequest{Device: abi.NoDevice}}
			if got := filter.wants(&s); got != (uid == c.sees) {
				t.Errorf("%s: user %d sees it: %v", c.name, uid, got)
			}
			filter.filter.QPN, filter.viewer.Admin = uint32(ours), true
			if got := filter.wants(&s); got != (c.sees == has) {
				t.Errorf("%s: is the queue pair's: %v", c.name, got)
			}
		}
	}
	for _, end := range []*qp.Connection{{QP: q}, {}} { // synthesized for a datagram within this urdmad
		s := tap.Sight{Our: us, Peer: us, Local: true, Conn: &qp.Connection{}, Other: end}
		for _, uid := range []int{has, listens, neither} {
			filter := &capture{w: w, viewer: &account.Owner{UID: uid},
				filter: abi.CaptureRequest{Device: abi.NoDevice}}
			if got := filter.wants(&s); got != (uid == has && end.QP != nil) {
				t.Errorf("a datagram within urdmad: user %d sees it: %v", uid, got)
			}
		}
	}
}
