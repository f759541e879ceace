package roce_test

import (
	"testing"

	"urdma/reason"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// faults has a verdict for the first messages of the peer's.
type faults struct {
	verdict qp.Verdict
	left    int
}

func (f *faults) Send(*qp.QP, uint32, uint32) uint32    { return abi.StatusSuccess }
func (f *faults) Receive(*qp.QP) uint32                 { return abi.StatusSuccess }
func (f *faults) Notify(*qp.CQ) (late, more clock.Time) { return late, more }
func (f *faults) Misfit(*qp.QP, int, uint32) uint32     { return abi.StatusSuccess }
func (f *faults) Pick(int) int                          { return 0 }
func (f *faults) Place(*qp.QP) (late clock.Time)        { return late }

func (f *faults) Respond(*qp.QP, qp.Message) qp.Verdict {
	if f.left == 0 {
		return qp.Verdict{}
	}
	f.left--
	return f.verdict
}

// TestInjected: what goes wrong on purpose at a responder does to each kind of message
// what it does by itself.
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
				continue // no other message has to be aligned
			}
			t.Run(message+" "+c.name, func(t *testing.T) {
				n := connected(t, 7)
				n.B.Do(func() { n.QB.Q.Client.Faults = &faults{verdict, 2} })
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
