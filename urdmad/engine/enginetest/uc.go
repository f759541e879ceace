package enginetest

import (
	"urdma/verbs/abi"
)

// NewUC makes a queue pair of type UC in INIT, with queues of its own.
func (c *Client) NewUC() *QP { return c.NewUCOn(c.NewCQ(72), c.NewCQ(72)) }

// NewUCOn makes one that completes on given queues.
func (c *Client) NewUCOn(send, recv *CQ) *QP {
	want := abi.QPCap{MaxSendWR: 64, MaxRecvWR: 64, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInline: 256}
	q := c.newQP(abi.QPTypeUC, &want, send, recv, nil)
	q.must(initMask, initAttr)
	return q
}

// ToRTR has a queue pair of type UC name its peer.
func (q *QP) ToRTR(peer *QP, rqPSN uint32) {
	q.must(abi.QPMaskState|abi.QPMaskAV|abi.QPMaskPathMTU|abi.QPMaskDestQPN|abi.QPMaskRQPSN, abi.QPAttr{QPState: abi.QPSRTR, PathMTU: 3,
		DestQPNum: peer.Q.QPN, RQPSN: rqPSN, IsGlobal: 1, AHPortNum: 1, DGID: peer.Client.Host.Addr.As16()})
}

// ToRTS has it send.
func (q *QP) ToRTS(sqPSN uint32) {
	q.must(abi.QPMaskState|abi.QPMaskSQPSN, abi.QPAttr{QPState: abi.QPSRTS, SQPSN: sqPSN})
}

func (q *QP) must(mask uint32, a abi.QPAttr) {
	t := q.Client.Host.World.T
	t.Helper()
	if err := q.ModifyNumber(mask, a); err != nil {
		t.Fatal(err)
	}
}
