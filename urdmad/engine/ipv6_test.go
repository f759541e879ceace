package engine_test

import (
	"bytes"
	"testing"
	"time"

	"urdma/urdmad/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

// TestIPv6: traffic between ports with IPv6 addresses, over datagrams and within one
// urdmad, set up by rdma_cm and by queue pair number.
func TestIPv6(t *testing.T) {
	for _, local := range []bool{false, true} {
		w := enginetest.New(t, enginetest.Options{Seed: 6, Datagrams: true, IPv6: true})
		a, b := w.Pair(local, nil)
		w.NewTraffic(a, b, enginetest.Load{Ops: 100, MaxSize: 40000}).Run(120 * time.Second)
		if got := a.Q.Connection().Peer.Addr(); got != b.Client.Host.Addr || !got.Is6() {
			t.Errorf("local %v: the peer is %v", local, got)
		}
	}
}

// TestIPv6Number: a queue pair names its peer by a GID that is the port's address, or
// by a LID, its last 16 bits.
func TestIPv6Number(t *testing.T) {
	for _, byLID := range []bool{false, true} {
		for _, local := range []bool{false, true} {
			n := numberedIn(enginetest.New(t, enginetest.Options{Seed: 7, Datagrams: true, IPv6: true}), local)
			for _, ends := range [2][2]*enginetest.QP{{n.a, n.b}, {n.b, n.a}} {
				toInit(t, ends[0])
				a := attempt
				a.QPState, a.DestQPNum, a.DGID = abi.QPSRTR, ends[1].Q.QPN, ends[1].Client.Host.Addr.As16()
				if byLID {
					a.DLID, a.IsGlobal, a.DGID = uint32(a.DGID[15]), 0, [16]byte{}
				}
				modify(ends[0], rtrMask, a)
				rts(ends[0], a)
			}
			n.exchange(20000)
		}
	}
}

// TestIPv6Datagrams: a message of a queue pair of type UD has an IPv6 header in front,
// and the sender's last 16 bits as its LID.
func TestIPv6Datagrams(t *testing.T) {
	for _, local := range []bool{false, true} {
		u := newUD(t, local, enginetest.Options{Datagrams: true, IPv6: true})
		u.b.PostRecv(1, u.mb.SGE(0, 2000))
		u.send(u.toB(1), 1024)
		e := completions(u.World, u.b.Recv, 1)[0]
		if e.Status != abi.StatusSuccess || e.ByteLen != 1024+wire.GRHLen || e.SourceLID != 1<<16|1 {
			t.Errorf("local %v: %+v", local, e)
		}
		if !bytes.Equal(u.mb.Bytes[:wire.GRHLen], u.grh(1024)) || u.mb.Bytes[0] != 0x60 {
			t.Errorf("local %v: header % x", local, u.mb.Bytes[:wire.GRHLen])
		}
		if !bytes.Equal(u.mb.Bytes[wire.GRHLen:wire.GRHLen+1024], u.ma.Bytes[:1024]) {
			t.Errorf("local %v: the message differs", local)
		}
	}
}

// TestIPv6Families: an address of the other family leads nowhere, and harms nobody.
func TestIPv6Families(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		u := newUD(t, false, enginetest.Options{Datagrams: true, IPv6: v6})
		for _, other := range []string{"10.0.0.2", "fd00::2", "ff02::1", "239.1.2.3", "fe80::2"} {
			to := u.b.Client.Host.Addr
			if err := to.UnmarshalText([]byte(other)); err != nil {
				t.Fatal(err)
			}
			if to == u.b.Client.Host.Addr {
				continue
			}
			u.send(enginetest.To(enginetest.Send(3), to, u.b.Q.QPN, qkey), 10)
		}
		if u.stats().Received != 0 {
			t.Errorf("IPv6 %v: %d arrived", v6, u.stats().Received)
		}
	}
}

// TestIPv6Capture: frames that are made up for captures are IPv6's, with a checksum,
// and belong to their connection.
func TestIPv6Capture(t *testing.T) {
	for _, local := range []bool{false, true} {
		w := enginetest.New(t, enginetest.Options{Seed: 8, Datagrams: true, IPv6: true})
		seen := record(t, w.A)
		a, b := w.Pair(local, nil)
		w.NewTraffic(a, b, enginetest.Load{Ops: 20, MaxSize: 5000}).Run(60 * time.Second)
		found := 0
		for _, s := range seen.frames {
			var f wire.Frame
			if err := f.Parse(s.Frame, len(s.Frame)); err != nil || f.Type != wire.EtherTypeIPv6 || f.Proto != wire.ProtoUDP {
				t.Fatalf("local %v: %v, %+v", local, err, f)
			}
			if src, dst := f.Addrs(); src.Addr() != w.A.Addr && dst.Addr() != w.A.Addr {
				t.Errorf("local %v: %v to %v", local, src, dst)
			}
			if !wire.VerifyUDPChecksum(&f, s.Frame[f.PayloadOff-wire.UDPLen:]) {
				t.Errorf("local %v: the checksum is wrong", local)
			}
			if s.Conn != nil && !s.Foreign {
				found++
			}
		}
		if found < 20 {
			t.Errorf("local %v: %d of %d frames belong to a connection", local, found, len(seen.frames))
		}
	}
}
