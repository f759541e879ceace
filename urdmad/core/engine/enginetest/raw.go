package enginetest

import (
	"urdma/urdmad/core/rawpacket"
	"urdma/verbs/abi"
)

// OpenRaw allows raw packets on the hosts' ports; both get the same one if they are workers of one urdmad.
func (w *World) OpenRaw(access uint32) {
	wire := &rawpacket.Wire{Access: access}
	w.A.Engine.Raw.Open(0, wire)
	if !w.opt.Workers {
		wire = &rawpacket.Wire{Access: access}
	}
	w.B.Engine.Raw.Open(0, wire)
}

// NewRaw returns a queue pair of type RAW_PACKET in RTS.
func (c *Client) NewRaw() *QP {
	want := abi.QPCap{MaxSendWR: 64, MaxRecvWR: 64, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInline: 256}
	q := c.newQP(abi.QPTypeRawPacket, &want, c.NewCQ(72), c.NewCQ(72), nil)
	for _, to := range []struct{ mask, state uint32 }{
		{abi.QPMaskState | abi.QPMaskPort, abi.QPSInit}, {abi.QPMaskState, abi.QPSRTR}, {abi.QPMaskState, abi.QPSRTS},
	} {
		if err := q.ModifyNumber(to.mask, abi.QPAttr{QPState: to.state, PortNum: 1}); err != nil {
			c.Host.World.T.Fatal(err)
		}
	}
	return q
}

// Flow creates a flow for a queue pair, and returns a function that destroys it.
func (q *QP) Flow(m abi.CreateFlowRequest) (destroy func()) {
	h := q.Client.Host
	var wire *rawpacket.Wire
	var f *rawpacket.Flow
	h.Do(func() {
		wire, f = h.Engine.Raw.Wire(0), h.Engine.Raw.NewFlow(q.Q, 0, &m)
		wire.Add(f)
	})
	return func() { h.Do(func() { wire.Remove(f) }) }
}
