package roce_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"urdma/reason"
	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/wire"
	"urdma/wire/roce"
)

// watch sees all packets of RoCEv2, and may drop them.
func watch(w *enginetest.World, see func(frame, payload []byte) (drop bool)) {
	w.SetPath(linked.Path{Drop: func(_ uint64, frame []byte) bool {
		var f wire.Frame
		if f.Parse(frame, len(frame)) != nil || f.Proto != wire.ProtoUDP {
			return false
		}
		end := f.PayloadOff + f.PayloadLen
		return see(frame[:end], frame[f.PayloadOff:end])
	}})
}

// asked is a pair in which a has read 3,000 bytes of a region of b, and the request.
func asked(t *testing.T) (n *enginetest.NumberPair, r *enginetest.Region, request []byte) {
	n = connected(t, 7)
	r = n.QB.Client.Register(1<<16, enginetest.ReadWrite|mem.RemoteAtomic)
	watch(n.World, func(frame, payload []byte) bool {
		if roce.Opcode(payload[0]) == roce.ReadRequest {
			request = append([]byte(nil), frame...)
		}
		return false
	})
	n.QA.Post(enginetest.Read(2, r, 0), n.MA.SGE(1<<19, 3000))
	n.QA.Send.Completions(1)
	n.SetPath(linked.Path{})
	if request == nil {
		t.Fatal("no request was seen")
	}
	return n, r, request
}

// TestRepeatedReadRefused: if a Read that was answered is repeated after its region was deregistered, it is refused.
func TestRepeatedReadRefused(t *testing.T) {
	n, r, request := asked(t)
	n.B.Do(r.Deregister)
	n.A.Port.Inject(request)
	n.Until("the responder's end", time.Second, func() bool { return n.QB.Q.State() == abi.QPSErr })
	if n.QB.Q.Why() != reason.NAKAccess {
		t.Errorf("the responder's reason is %v", n.QB.Q.Why())
	}
}

// TestReadAnswerLost: the end of a Read's answer is lost, and its region is deregistered before the end is requested
// again. The Read fails.
func TestReadAnswerLost(t *testing.T) {
	n := connected(t, 7)
	r, lost := n.QB.Client.Register(1<<16, enginetest.ReadWrite), false
	watch(n.World, func(_, payload []byte) bool {
		last := roce.Opcode(payload[0]) == roce.ResponseLast
		lost = lost || last
		return last
	})
	n.QA.Post(enginetest.Read(2, r, 0), n.MA.SGE(1<<19, 3000))
	n.Until("the answer is lost", time.Second, func() bool { return lost })
	n.B.Do(r.Deregister)
	n.SetPath(linked.Path{})
	if got := n.QA.Send.Completions(1); got[0].Status != abi.StatusRemAccessErr {
		t.Errorf("%+v", got)
	}
}

// TestRepeatedReadNotReady: a Read that was answered is repeated to a responder that is not ready, or slow. The
// request is treated as lost.
func TestRepeatedReadNotReady(t *testing.T) {
	for _, is := range []qp.Outcome{qp.NoReceive, qp.Busy} {
		n, _, request := asked(t)
		n.B.Do(func() { n.QB.Q.Client.Interceptor = &judge{verdict: qp.Verdict{Is: is}, left: 1} })
		n.A.Port.Inject(request)
		n.Pass(5 * time.Millisecond)
		n.Exchange(3000)
	}
}

// TestRepeatedReadOfAPart: a Read that is repeated with another length is answered with that length, and not from
// beyond it.
func TestRepeatedReadOfAPart(t *testing.T) {
	for _, length := range []uint32{0, 1, 1000, 1500, 3000} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			n, _, request := asked(t)
			var sums roce.Sums
			payload := request[wire.UDPHeaderLen:]
			binary.BigEndian.PutUint32(payload[roce.BTHLen+12:], length) // after address and key
			sums.Put(request[wire.EthernetLen:wire.UDPHeaderLen], payload)
			wire.SetUDPChecksum(request)
			got, answers := 0, 0
			watch(n.World, func(_, payload []byte) bool {
				var h roce.Header
				if from, to, err := h.Payload(payload, len(payload)); err == nil && h.Opcode >= roce.ResponseFirst &&
					h.Opcode <= roce.ResponseOnly {
					got, answers = got+to-from, answers+1
				}
				return false
			})
			n.A.Port.Inject(request)
			n.Pass(5 * time.Millisecond)
			if answers == 0 || got != int(length) {
				t.Errorf("%d packets answer, with %d bytes", answers, got)
			}
			n.Exchange(3000)
		})
	}
}
