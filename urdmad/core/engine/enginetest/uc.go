package enginetest

import (
	"testing"

	"urdma/verbs/abi"
)

// NewUCPair returns two UC queue pairs that name each other, with memory.
func NewUCPair(t *testing.T, local bool, o Options) *DatagramPair {
	o.Seed = 95
	u := &DatagramPair{World: New(t, o)}
	host := u.World.B
	if local {
		host = u.World.A
	}
	u.QA, u.QB = u.World.A.NewClient().NewUC(), host.NewClient().NewUC()
	u.QA.ToRTR(u.QB, 7)
	u.QB.ToRTR(u.QA, 9)
	u.QA.ToRTS(9)
	u.QB.ToRTS(7)
	u.Register((*Client).Register, 1<<20)
	return u
}

// NewUC returns a UC queue pair in INIT, with queues of its own.
func (c *Client) NewUC() *QP { return c.NewUCOn(c.NewCQ(72), c.NewCQ(72)) }

// NewUCOn returns a UC queue pair that completes to given queues.
func (c *Client) NewUCOn(send, recv *CQ) *QP {
	want := abi.QPCap{MaxSendWR: 64, MaxRecvWR: 64, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInline: 256}
	q := c.newQP(abi.QPTypeUC, &want, send, recv, nil)
	q.MustModify(initMask, initAttr)
	return q
}

// ToRTR moves a UC queue pair to RTR with peer as its destination.
func (q *QP) ToRTR(peer *QP, rqPSN uint32) {
	q.MustModify(abi.QPMaskState|abi.QPMaskAV|abi.QPMaskPathMTU|abi.QPMaskDestQPN|abi.QPMaskRQPSN,
		abi.QPAttr{QPState: abi.QPSRTR, PathMTU: 3,
			DestQPNum: peer.Q.QPN, RQPSN: rqPSN, IsGlobal: 1, AHPortNum: 1, DGID: peer.Client.Host.Addr.As16()})
}

// ToRTS moves the queue pair to RTS.
func (q *QP) ToRTS(sqPSN uint32) {
	q.MustModify(abi.QPMaskState|abi.QPMaskSQPSN, abi.QPAttr{QPState: abi.QPSRTS, SQPSN: sqPSN})
}

// MustModify is ModifyNumber; an error fails the test.
func (q *QP) MustModify(mask uint32, a abi.QPAttr) {
	t := q.Client.Host.World.T
	t.Helper()
	if err := q.ModifyNumber(mask, a); err != nil {
		t.Fatal(err)
	}
}
