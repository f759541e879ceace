package objects

import (
	"fmt"
	"syscall"

	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/urdmad/control/memfd"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// MW is a memory window. It counts against the limit of memory regions, because it takes an STag.
type MW struct {
	control.Base
	PD     *PD
	Window *mem.Window
}

func (pd *PD) allocMW(m *abi.AllocMWRequest, r *control.Reply) error {
	x := pd.Session
	if m.Type != abi.MWType1 && m.Type != abi.MWType2 {
		return fmt.Errorf("control: a memory window of type %d, there are %d and %d: %w", m.Type, abi.MWType1, abi.MWType2,
			syscall.EINVAL)
	}
	bill := &account.Amounts{account.Regions: 1}
	if err := x.Take(bill); err != nil {
		return err
	}
	o := &MW{PD: pd, Window: &mem.Window{PD: pd.Number, Type2: m.Type == abi.MWType2}}
	var resp abi.AllocMWResponse
	inserted := false
	x.Do(func() {
		if inserted = x.Worker().Engine.QPs.Regions.InsertWindow(o.Window); inserted {
			resp.Handle, resp.RKey = x.Add(o, bill), uint32(o.Window.STag())
		}
	})
	if !inserted {
		x.Give(bill)
		return fmt.Errorf("control: all STags are in use: %w", syscall.ENOMEM)
	}
	pd.users++
	*r = control.Respond(&resp)
	return nil
}

// deallocMW also unbinds the window.
func (o *MW) deallocMW(*abi.HandleMessage, *control.Reply) error {
	shared := true
	o.Session.Do(func() {
		if b := o.Window.Bound(); b != nil {
			shared = b.Shared()
		}
		o.Session.Worker().Engine.QPs.Regions.RemoveWindow(o.Window)
		o.Remove()
	})
	o.PD.users--
	if !shared {
		o.Session.Client().Space.Drain()
	}
	return nil
}

// End implements control.Object.
func (o *MW) End() *memfd.Shared {
	o.Session.Worker().Engine.QPs.Regions.RemoveWindow(o.Window)
	return nil
}
