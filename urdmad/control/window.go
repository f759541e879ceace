package control

import (
	"fmt"
	"syscall"

	"urdma/urdmad/control/account"
	"urdma/urdmad/mem"
	"urdma/verbs/abi"
)

// mwObject is a memory window. The limit of memory regions counts it: what it
// takes is an STag.
type mwObject struct {
	created
	pd     *pdObject
	window *mem.Window
}

func allocMW(x *Session, m *abi.AllocMWRequest, r *reply) error {
	pd, err := object[*pdObject](x, m.PD)
	if err != nil {
		return err
	}
	if m.Type != abi.MWType1 && m.Type != abi.MWType2 {
		return syscall.EINVAL
	}
	bill := &account.Amounts{account.Regions: 1}
	if err := x.Take(bill); err != nil {
		return err
	}
	o := &mwObject{pd: pd, window: &mem.Window{PD: pd.number, Type2: m.Type == abi.MWType2}}
	var resp abi.AllocMWResponse
	inserted := false
	x.do(func() {
		if inserted = x.s.Engine.QPs.Regions.InsertWindow(o.window); inserted {
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
func deallocMW(x *Session, m *abi.HandleMessage, _ *reply) error {
	o, err := object[*mwObject](x, m.Handle)
	if err != nil {
		return err
	}
	shared := true
	x.do(func() {
		if b := o.window.Bound(); b != nil {
			shared = b.Shared()
		}
		x.s.Engine.QPs.Regions.RemoveWindow(o.window)
		x.remove(m.Handle)
	})
	o.pd.users--
	if !shared {
		x.space.Drain()
	}
	return nil
}
