package netif_test

import (
	"bytes"
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
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
			n := enginetest.NumberPairIn(enginetest.New(t, enginetest.Options{Seed: 7, Datagrams: true, IPv6: true}), local)
			for _, ends := range [2][2]*enginetest.QP{{n.QA, n.QB}, {n.QB, n.QA}} {
				ends[0].ToInit()
				a := enginetest.Attempt
				a.QPState, a.DestQPNum, a.DGID = abi.QPSRTR, ends[1].Q.QPN, ends[1].Client.Host.Addr.As16()
				if byLID {
					a.DLID, a.IsGlobal, a.DGID = uint32(a.DGID[15]), 0, [16]byte{}
				}
				ends[0].MustModify(enginetest.RTRMask, a)
				ends[0].ReadyToSend(a)
			}
			n.Exchange(20000)
		}
	}
}

// TestIPv6Datagrams: a message of a queue pair of type UD has an IPv6 header in front,
// and the sender's last 16 bits as its LID.
func TestIPv6Datagrams(t *testing.T) {
	for _, local := range []bool{false, true} {
		u := enginetest.NewUDPair(t, local, enginetest.Options{Datagrams: true, IPv6: true})
		u.QB.PostRecv(1, u.MB.SGE(0, 2000))
		u.Send(u.ToB(1), 1024)
		e := u.QB.Recv.Completions(1)[0]
		if e.Status != abi.StatusSuccess || e.ByteLen != 1024+wire.GRHLen || e.SourceLID != 1<<16|1 {
			t.Errorf("local %v: %+v", local, e)
		}
		if !bytes.Equal(u.MB.Bytes[:wire.GRHLen], u.GRH(1024)) || u.MB.Bytes[0] != 0x60 {
			t.Errorf("local %v: header % x", local, u.MB.Bytes[:wire.GRHLen])
		}
		if !bytes.Equal(u.MB.Bytes[wire.GRHLen:wire.GRHLen+1024], u.MA.Bytes[:1024]) {
			t.Errorf("local %v: the message differs", local)
		}
	}
}

// TestIPv6Families: an address of the other family leads nowhere, and harms nobody.
func TestIPv6Families(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		u := enginetest.NewUDPair(t, false, enginetest.Options{Datagrams: true, IPv6: v6})
		for _, other := range []string{"10.0.0.2", "fd00::2", "ff02::1", "239.1.2.3", "fe80::2"} {
			to := u.QB.Client.Host.Addr
			if err := to.UnmarshalText([]byte(other)); err != nil {
				t.Fatal(err)
			}
			if to == u.QB.Client.Host.Addr {
				continue
			}
			u.Send(enginetest.To(enginetest.Send(3), to, u.QB.Q.QPN, enginetest.QKey), 10)
		}
		if u.Stats().Received != 0 {
			t.Errorf("IPv6 %v: %d arrived", v6, u.Stats().Received)
		}
	}
}
