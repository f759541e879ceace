package roce_test

import (
	"encoding/binary"
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/qp"
	"urdma/wire"
	"urdma/wire/ibcm"
	"urdma/wire/roce"
)

// target is a host to which a stranger sends packets, in the place of its peers: it has queue pairs of each
// transport, and a listener.
type target struct {
	w     *enginetest.World
	s     *enginetest.Stranger
	qps   []*enginetest.QP
	guard *enginetest.Region
}

func newTarget(t testing.TB) *target {
	w := enginetest.New(t, enginetest.Options{Seed: 12, RoCE: true, NoCapture: true})
	c, peer := w.A.NewClient(), w.B.NewClient()
	h := &target{w: w, qps: []*enginetest.QP{c.NewQP(nil), c.NewInitiator(), c.NewTarget(qp.NewDomain())}}
	for i, other := range []*enginetest.QP{peer.NewQP(nil), peer.NewTarget(qp.NewDomain()), peer.NewInitiator()} {
		if i == 1 {
			enginetest.Join(h.qps[i], other, 4)
		} else {
			enginetest.Join(other, h.qps[i], 4)
		}
	}
	uc := c.NewUC()
	uc.ToRTR(peer.NewUC(), 0)
	uc.ToRTS(0)
	h.qps = append(h.qps, uc, c.NewDatagramQP(enginetest.QKey))
	inbox := c.Register(1<<16, enginetest.ReadWrite)
	for i, q := range h.qps {
		if i != 1 && i != 2 { // those have no receive queue
			for range 8 {
				q.PostRecv(1, inbox.SGE(0, 4096))
			}
		}
	}
	for _, i := range []int{0, 1} {
		h.qps[i].Post(enginetest.Read(1, inbox, 0), inbox.SGE(8192, 4096))
		h.qps[i].Post(enginetest.Write(2, inbox, 0), inbox.SGE(0, 4096))
	}
	c.Listen(7000, 4)
	h.guard = c.Register(4096, 0)
	h.s = w.Stranger()
	w.Pass(10 * time.Microsecond)
	return h
}

// send sends a packet with the right CRC. The last byte of its queue pair number selects one of ours, or that of
// management datagrams; its PSN counts from the expected one.
func (h *target) send(b []byte) {
	if len(b) >= roce.BTHLen {
		b = append([]byte(nil), b...)
		to, first := uint32(ibcm.QP), uint32(0)
		if i := int(b[7]); i < len(h.qps) {
			a := &h.qps[i].Q.Attr
			if to, first = h.qps[i].Q.QPN, a.RQPSN; roce.Opcode(b[0]).Traits().Is(roce.Response) {
				first = a.SQPSN
			}
		}
		binary.BigEndian.PutUint32(b[4:], to)
		psn := binary.BigEndian.Uint32(b[8:])
		binary.BigEndian.PutUint32(b[8:], psn&^0xffffff|(psn+first)&0xffffff)
	}
	var sums roce.Sums
	frame := h.s.Datagram(roce.Port, roce.Port, append(b, make([]byte, roce.ICRCLen)...))
	if len(b) >= roce.BTHLen {
		sums.Put(frame[wire.EthernetLen:wire.UDPHeaderLen], frame[wire.UDPHeaderLen:])
	}
	wire.SetUDPChecksum(frame)
	h.w.B.Port.Inject(frame)
	h.w.Step()
}

// FuzzPackets: for any packets of a peer, no host crashes, and no memory without rights is written. The first byte of
// each record is its length.
func FuzzPackets(f *testing.F) {
	record := func(h *roce.Header, payload int) []byte {
		b := make([]byte, 1+roce.MaxHeaderLen+payload)
		n := h.Put(b[1:])
		b[0] = byte(n + payload)
		return b[:1+n+payload]
	}
	for i := range 256 {
		if h := (roce.Header{Opcode: roce.Opcode(i), PKey: roce.DefaultPKey, Length: 16, QKey: enginetest.QKey,
			AckReq: true}); h.Opcode.Traits() != 0 {
			for to := range 5 {
				h.Dst = wire.QPN(to)
				first := record(&h, 16)
				h.PSN = 1
				f.Add(append(first, record(&h, 0)...))
			}
		}
	}
	for kind := ibcm.REQ; kind <= ibcm.APR; kind++ {
		m := ibcm.Message{Kind: kind, Service: ibcm.TCPService(7000), PKey: roce.DefaultPKey, PathMTU: 3}
		h := roce.Header{Opcode: roce.UD | roce.SendOnly, PKey: roce.DefaultPKey, Dst: 255, QKey: ibcm.QKey, Src: ibcm.QP}
		b := record(&h, ibcm.Len)
		if err := m.Put(b[len(b)-ibcm.Len:]); err != nil {
			f.Fatal(err)
		}
		b[0] = 255 // everything that follows
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h := newTarget(t)
		for len(data) > 0 {
			n := min(int(data[0]), len(data)-1)
			if n == 255 {
				n = len(data) - 1
			}
			h.send(data[1 : 1+n])
			data = data[1+n:]
		}
		h.w.Pass(200 * time.Microsecond)
		for i, b := range h.guard.Bytes {
			if b != 0 {
				t.Fatalf("memory without rights was written at %d", i)
			}
		}
	})
}
