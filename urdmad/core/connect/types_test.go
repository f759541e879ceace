package connect_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/connect"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// TestTypesOfQueuePairs: rdma_connect and rdma_accept accept queue pairs of types RC and XRC. Other types get their
// carrier from ibv_modify_qp, and would then have two.
func TestTypesOfQueuePairs(t *testing.T) {
	types := []struct {
		name string
		make func(*enginetest.Client) *enginetest.QP
		want error
	}{
		{"RC", func(c *enginetest.Client) *enginetest.QP { return c.NewQP(nil) }, nil},
		{"XRC_SEND", (*enginetest.Client).NewInitiator, nil},
		{"XRC_RECV", func(c *enginetest.Client) *enginetest.QP { return c.NewTarget(qp.NewDomain()) }, nil},
		{"UC", (*enginetest.Client).NewUC, syscall.EINVAL},
		{"UD in RESET", (*enginetest.Client).NewUD, syscall.EINVAL},
		{"UD in RTS", func(c *enginetest.Client) *enginetest.QP { return c.NewDatagramQP(1) }, syscall.EINVAL},
	}
	for _, v := range types {
		t.Run(v.name, func(t *testing.T) {
			both(t, func(t *testing.T, local bool) {
				w := enginetest.New(t, enginetest.Options{Seed: 17})
				ca, cb := ends(w, local)
				cb.Listen(7000, 4)
				id := ca.Resolve(cb.Host.Addr, 7000)
				refused := func(what string, err error) {
					t.Helper()
					if !errors.Is(err, v.want) {
						t.Errorf("%s: %v, expected %v", what, err, v.want)
					}
				}
				a, b := v.make(ca), v.make(cb)
				ca.Host.Do(func() { refused("connect", ca.Host.CM.Connect(id, connect.QueuePair(a.Q), enginetest.Param(1, ""))) })
				if v.want != nil {
					ca.Connect(id, ca.NewQP(nil), enginetest.Param(1, ""))
				}
				child := cb.Event(cm.EventConnectRequest, time.Second).Child
				cb.Host.Do(func() { refused("accept", cb.Host.CM.Accept(child, connect.QueuePair(b.Q), enginetest.Param(1, ""))) })
				if v.want != nil {
					cb.Accept(child, cb.NewQP(nil), enginetest.Param(1, ""))
				}
				ca.Event(cm.EventEstablished, time.Second)
				cb.Event(cm.EventEstablished, time.Second)
			})
		})
	}
}

// TestBothEnds: one queue pair can't be both ends of a connection.
func TestBothEnds(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 18})
	c := w.A.NewClient()
	q := c.NewQP(nil)
	c.Listen(7000, 4)
	c.Connect(c.Resolve(w.A.Addr, 7000), q, enginetest.Param(1, ""))
	child := c.Event(cm.EventConnectRequest, time.Second).Child
	w.A.Do(func() {
		if err := w.A.CM.Accept(child, connect.QueuePair(q.Q), enginetest.Param(1, "")); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("accept with the queue pair that connects: %v, expected EINVAL", err)
		}
	})
	other := c.NewQP(nil)
	c.Accept(child, other, enginetest.Param(1, ""))
	c.Event(cm.EventEstablished, time.Second)
	c.Event(cm.EventEstablished, time.Second)
	w.NewTraffic(q, other, enginetest.Load{Ops: 10, MaxSize: 5000}).Run(time.Second)
}

// bare is a carrier that does nothing.
type bare struct{ qp.Connection }

func (c *bare) Transmit() int { return 0 }
func (c *bare) Failed()       {}
func (c *bare) Faulted() bool { return false }
func (c *bare) Detach()       { c.QP.Detach() }
func (c *bare) Serving() int  { return 0 }

// TestOneCarrier: ibv_modify_qp gives no carrier to a queue pair that has one.
func TestOneCarrier(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 19})
	c := w.A.NewClient()
	uc, ud := c.NewUC(), c.NewUD()
	for _, v := range []struct {
		q    *enginetest.QP
		mask uint32
		attr abi.QPAttr
	}{
		{uc, abi.QPMaskAccessFlags, abi.QPAttr{QPAccessFlags: qp.RDMAConnectAccess}},
		{ud, abi.QPMaskQKey, abi.QPAttr{QKey: 7}},
	} {
		first := &bare{qp.Connection{QP: v.q.Q}}
		w.A.Do(func() { v.q.Q.Attach(first) })
		if err := v.q.ModifyNumber(v.mask, v.attr); err != nil {
			t.Error(err)
		}
		if v.q.Q.Carrier() != qp.Carrier(first) {
			t.Errorf("type %d: the carrier is a %T now", v.q.Q.Type, v.q.Q.Carrier())
		}
	}
}
