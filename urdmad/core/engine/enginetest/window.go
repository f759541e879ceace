package enginetest

import (
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// Window is a memory window of a client.
type Window struct {
	*mem.Window
	Client *Client
}

// NewWindow returns an unbound memory window.
func (c *Client) NewWindow(type2 bool) *Window {
	w := &Window{Window: &mem.Window{PD: c.PD, Type2: type2}, Client: c}
	c.Host.Do(func() {
		if !c.Host.Engine.QPs.Regions.InsertWindow(w.Window) {
			c.Host.World.T.Error("no STag left")
		}
	})
	return w
}

// Remove deallocates the window.
func (w *Window) Remove() {
	w.Client.Host.Do(func() { w.Client.Host.Engine.QPs.Regions.RemoveWindow(w.Window) })
}

// NextKey returns the window's next STag, as in ibv_inc_rkey(3).
func (w *Window) NextKey() uint32 {
	s := uint32(w.STag())
	return s&^0xff | (s+1)&0xff
}

// Bind returns a signaled work request that binds w, with its next key, to n bytes at offset off
// of r.
func Bind(id uint64, w *Window, r *Region, off, n int, access uint32) abi.SQE {
	return abi.SQE{WRID: id, Opcode: abi.WRBindMW, Flags: abi.SendSignaled, RKey: w.NextKey(), ImmOrSTag: uint32(r.STag),
		RemoteAddr: r.Base() + uint64(off), CompareAdd: uint64(n), Swap: uint64(access)}
}

// Invalidate returns a signaled work request that invalidates an STag: at the peer by a Send, or
// locally.
func Invalidate(id uint64, opcode uint32, stag mem.STag) abi.SQE {
	return abi.SQE{WRID: id, Opcode: opcode, Flags: abi.SendSignaled, ImmOrSTag: uint32(stag)}
}
