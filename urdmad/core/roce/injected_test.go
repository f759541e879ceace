package roce_test

import (
	"testing"

	"urdma/reason"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// judge is a qp.Interceptor that gives a verdict on the peer's first messages.
type judge struct {
	verdict qp.Verdict
	left    int
	writing bool // a Write is arriving
}

func (j *judge) Posted(*qp.QP, uint32, uint32) {}
func (j *judge) Connected(*qp.QP)              {}
func (j *judge) Notify(*qp.CQ) (kept bool)     { return false }
func (j *judge) WriteEnds(*qp.QP)              { j.writing = false }

func (j *judge) Write(q *qp.QP, _ *mem.Region, _ uint64, _ []byte) qp.Verdict {
	if j.writing {
		return qp.Verdict{}
	}
	j.writing = true
	return j.Message(q, 0, nil)
}

func (j *judge) Message(q *qp.QP, _ qp.Message, _ *qp.RecvQueue) qp.Verdict {
	if j.left == 0 {
		return qp.Verdict{}
	}
	j.left--
	if j.verdict.Is != qp.NoReceive {
		q.Refuse(reason.Injected)
	}
	return j.verdict
}

// TestInjected: an injected failure at a responder has the same effect on each kind of message as a real
// one.
func TestInjected(t *testing.T) {
	posts := map[string]func(n *enginetest.NumberPair){
		"Send": func(n *enginetest.NumberPair) {
			n.QB.PostRecv(9, n.MB.SGE(0, 5000))
			n.QA.Post(enginetest.Send(1), n.MA.SGE(0, 3000))
		},
		"Write":  func(n *enginetest.NumberPair) { n.QA.Post(enginetest.Write(1, n.MB, 0), n.MA.SGE(0, 3000)) },
		"Read":   func(n *enginetest.NumberPair) { n.QA.Post(enginetest.Read(1, n.MB, 0), n.MA.SGE(0, 3000)) },
		"atomic": func(n *enginetest.NumberPair) { n.QA.Post(enginetest.FetchAdd(1, n.MB, 0, 1), n.MA.SGE(0, 8)) },
	}
	for _, c := range []struct {
		name    string
		verdict qp.Verdict
		status  uint32
		why     reason.Number
	}{
		{"not ready", qp.Verdict{Is: qp.NoReceive}, abi.StatusSuccess, 0},
		{"access", qp.Verdict{Is: qp.Denied, Why: mem.NoRight}, abi.StatusRemAccessErr, reason.NAKAccess},
		{"invalid", qp.Verdict{Is: qp.TooLong}, abi.StatusRemInvReqErr, reason.NAKInvalid},
		{"misaligned", qp.Verdict{Is: qp.Denied, Why: mem.Misaligned}, abi.StatusRemInvReqErr, reason.NAKInvalid},
		{"operational", qp.Verdict{Is: qp.Denied, Why: mem.Failing}, abi.StatusRemOpErr, reason.NAKFailed},
	} {
		for message, post := range posts {
			verdict := c.verdict
			if message == "Send" && c.status == abi.StatusRemOpErr {
				verdict = qp.Verdict{Is: qp.BadReceive}
			} else if message != "atomic" && verdict.Why == mem.Misaligned {
				continue // other messages need no alignment
			}
			t.Run(message+" "+c.name, func(t *testing.T) {
				n := connected(t, 7)
				n.B.Do(func() { n.QB.Q.Client.Interceptor = &judge{verdict: verdict, left: 2} })
				post(n)
				got := n.QA.Send.Completions(1)
				if got[0].Status != c.status || got[0].VendorErr != uint32(c.why) {
					t.Errorf("%+v, expected status %d and reason %v", got, c.status, c.why)
				}
				if said := n.B.Engine.RoCE.Stats.RC.RNRSaid; c.status == abi.StatusSuccess && said == 0 {
					t.Error("no RNR NAK was sent")
				}
			})
		}
	}
}
