package roce_test

import (
	"bytes"
	"strings"
	"syscall"
	"testing"
	"time"

	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
	"urdma/wire/ibcm"
)

// TestDatagrams: messages between queue pairs of type UD arrive with the sender's address.
func TestDatagrams(t *testing.T) {
	for name, o := range ports {
		t.Run(name, func(t *testing.T) {
			u := enginetest.NewUDPair(t, false, o)
			for id, size := range []int{0, 1, 2, 3, 4, 1023, 1024} {
				u.QB.PostRecv(uint64(id), u.MB.SGE(0, 50), u.MB.SGE(50, 2000))
				w, flags := u.ToB(uint64(id)), uint32(abi.WCGRH)
				if id%2 == 1 {
					w.Opcode, w.ImmOrSTag, flags = abi.WRSendWithImm, 0x04030201, flags|abi.WCWithImm
				}
				u.Send(w, size)
				e := u.QB.Recv.Completions(1)[0]
				if e.Status != 0 || int(e.ByteLen) != size+wire.GRHLen || e.SrcQP != u.QA.Q.QPN || e.WCFlags != flags ||
					id%2 == 1 && e.ImmOrSTag != 0x04030201 {
					t.Fatalf("%d bytes: %+v", size, e)
				}
				if !bytes.Equal(u.MB.Bytes[40:40+size], u.MA.Bytes[:size]) {
					t.Fatalf("%d bytes: they differ", size)
				}
			}
			u.QB.PostRecv(9, u.MB.SGE(0, 100))
			u.Send(enginetest.To(enginetest.Send(9), u.QB.Client.Host.Addr, u.QB.Q.QPN, enginetest.QKey^1), 4)
			u.Pass(time.Second)
			if got := u.Stats().WrongQKey; got != 1 {
				t.Errorf("%d messages with a wrong Q_Key were counted, not 1", got)
			}
		})
	}
}

// TestGroups: a message to a group arrives at the attached queue pairs, as frames.
func TestGroups(t *testing.T) {
	u := enginetest.NewUDPair(t, false, enginetest.Options{RoCE: true})
	u.QB.Attach(enginetest.Group)
	u.QB.PostRecv(1, u.MB.SGE(0, 100))
	u.Send(enginetest.ToGroup(1), 33)
	if e := u.QB.Recv.Completions(1)[0]; e.Status != 0 || int(e.ByteLen) != 33+wire.GRHLen ||
		!bytes.Equal(u.MB.Bytes[40:73], u.MA.Bytes[:33]) {
		t.Errorf("%+v", e)
	}
}

// TestUnreliableConnections: Sends and Writes of queue pairs of type UC, with immediate
// data and without.
func TestUnreliableConnections(t *testing.T) {
	for name, o := range ports {
		t.Run(name, func(t *testing.T) {
			u := enginetest.NewUCPair(t, false, o)
			for id, size := range []int{0, 1, 1023, 1024, 1025, 5000, 100_000} {
				for _, write := range []bool{false, true} {
					clear(u.MB.Bytes)
					u.QB.PostRecv(uint64(id), u.MB.SGE(0, 1<<20))
					w, opcode := enginetest.Send(uint64(id)), uint32(abi.WCRecv)
					if write {
						w, opcode = enginetest.Write(uint64(id), u.MB, 0), abi.WCRecvRDMAWithImm
					}
					if write || id%2 == 0 {
						w = enginetest.WithImmediate(w, 0x04030201)
					}
					u.QA.Post(w, u.MA.SGE(0, size))
					u.QA.Send.Completions(1)
					e := u.QB.Recv.Completions(1)[0]
					if e.Status != 0 || int(e.ByteLen) != size || uint32(e.Opcode) != opcode || e.WCFlags&abi.WCWithImm != 0 &&
						e.ImmOrSTag != 0x04030201 {
						t.Fatalf("%d bytes: %+v", size, e)
					}
					if !bytes.Equal(u.MB.Bytes[:size], u.MA.Bytes[:size]) {
						t.Fatalf("%d bytes: they differ", size)
					}
				}
			}
		})
	}
}

// TestServices: rdma_cm finds the queue pair of type UD for a port number, and gets an error if nobody listens.
func TestServices(t *testing.T) {
	for name, o := range ports {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New(t, o)
			ca, cb := w.A.NewClient(), w.B.NewClient()
			cb.Listen(7000, 4).Datagrams = true
			ask := func(port uint16) *cm.ID {
				id := ca.Resolve(cb.Host.Addr, port)
				id.Datagrams = true
				ca.Host.Do(func() {
					if err := ca.Host.CM.Connect(id, nil, &cm.Param{PrivateData: []byte("may I"), QPN: 77}); err != nil {
						t.Error(err)
					}
				})
				return id
			}
			ask(7000)
			ev := cb.Event(cm.EventConnectRequest, time.Second)
			if got := string(ev.Param.PrivateData); strings.TrimRight(got, "\x00") != "may I" ||
				len(got) != ibcm.MaxServicePrivate {
				t.Errorf("asked: %+v", ev.Param)
			}
			cb.Host.Do(func() {
				if err := cb.Host.CM.Accept(ev.Child, nil,
					&cm.Param{PrivateData: []byte("yes"), QPN: 5, QKey: 0x01234567}); err != nil {
					t.Error(err)
				}
			})
			got := ca.Event(cm.EventEstablished, time.Second)
			if got.Param.QPN != 5 || got.Param.QKey != 0x01234567 ||
				strings.TrimRight(string(got.Param.PrivateData), "\x00") != "yes" || got.Peer.Port() != 7000 {
				t.Errorf("answered: %+v", got)
			}
			ask(7001)
			if got := ca.Event(cm.EventUnreachable, time.Second); got.Err != syscall.ECONNREFUSED {
				t.Errorf("nobody listens: %+v", got)
			}
		})
	}
}
