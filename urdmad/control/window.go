package control

import (
	"fmt"
	"syscall"

	"urdma/urdmad/control/account"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// mwObject is a memory window. The limit of memory regions counts it: what it
// takes is an STag.
type mwObject struct {
	object
	pd     *pdObject
	window *mem.Window
}

func (pd *pdObject) allocMW(m *abi.AllocMWRequest, r *reply) error {
	x := pd.x
	if m.Type != abi.MWType1 && m.Type != abi.MWType2 {
		return fmt.Errorf("control: a memory window of type %d, there are %d and %d: %w", m.Type, abi.MWType1, abi.MWType2, syscall.EINVAL)
	}
	bill := &account.Amounts{account.Regions: 1}
	if err := x.Take(bill); err != nil {
		return err
	}
	o := &mwObject{pd: pd, window: &mem.Window{PD: pd.number, Type2: m.Type == abi.MWType2}}
	var resp abi.AllocMWResponse
	inserted := false
	x.do(func() {
		if inserted = x.w.Engine.QPs.Regions.InsertWindow(o.window); inserted {
			resp.Handle, resp.RKey = x.add(o, bill), uint32(o.window.STag())
		}
	})
	if !inserted {
		x.Give(bill)
		return fmt.Errorf("control: all STags are in use: %w", syscall.ENOMEM)
	}
	pd.users++
	*r = respond(&resp)
	return nil
}

// deallocMW also unbinds the window.
func (o *mwObject) deallocMW(*abi.HandleMessage, *reply) error {
	shared := true
	o.x.do(func() {
		if b := o.window.Bound(); b != nil {
			shared = b.Shared()
		}
		o.x.w.Engine.QPs.Regions.RemoveWindow(o.window)
		o.remove()
	})
	o.pd.users--
	if !shared {
		o.x.space.Drain()
	}
	return nil
}
