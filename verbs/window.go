package verbs

import (
	"sync/atomic"

	"urdma/verbs/abi"
)

// WindowType is enum ibv_mw_type.
type WindowType uint32

// Types of memory windows (ibv_alloc_mw(3)).
const (
	Window1 WindowType = abi.MWType1 // for all queue pairs of the domain; may be bound again at any time
	Window2 WindowType = abi.MWType2 // for the queue pair that bound it; must be invalidated before it is bound again
)

// Window is a memory window: an rkey that OpBindWindow binds to a part of a memory region. It can be
// invalidated without a request to urdmad: by OpLocalInv, the peer's OpSendWithInv, or another bind.
type Window struct {
	pd     *PD
	handle uint32
	rkey   atomic.Uint32
}

// AllocWindow makes a window that is not bound.
func (p *PD) AllocWindow(kind WindowType) (*Window, error) {
	var resp abi.AllocMWResponse
	if _, err := call(p.ctx.client, abi.AllocMW, &abi.AllocMWRequest{PD: p.handle, Type: uint32(kind)}, &resp, -1,
		0); err != nil {
		return nil, err
	}
	w := &Window{pd: p, handle: resp.Handle}
	w.rkey.Store(resp.RKey)
	return w, nil
}

// Close deallocates the window, which unbinds it (ibv_dealloc_mw(3)).
func (w *Window) Close() error { return w.pd.ctx.client.callHandle(abi.DeallocMW, w.handle) }

// RKey returns the window's key for peers, from the bind posted last.
func (w *Window) RKey() uint32 { return w.rkey.Load() }

// Remote returns the address and key that a peer needs to write or read from an offset of the region on,
// through a window that is bound there.
func (w *Window) Remote(m *MR, offset int) Remote { return Remote{m.addr + uint64(offset), w.RKey()} }

// Bind has the parameters of OpBindWindow: Window is bound to Length bytes at Offset of MR. MR needs
// BindWindows and, if peers may write through the window, LocalWrite. The window gets a new rkey when the
// work request is posted. A Length of 0 unbinds a window of type 1.
type Bind struct {
	Window *Window
	MR     *MR
	Offset int
	Length int
	Access Access // RemoteWrite, RemoteRead, RemoteAtomic
}

const keyMask = 0xff // the part of an rkey that the owner chooses

// write fills in the rest of an OpBindWindow's slot.
func (b *Bind) write(e *abi.SQE) {
	key := b.Window.RKey()
	e.RKey = key&^keyMask | (key+1)&keyMask
	e.ImmOrSTag, e.RemoteAddr = b.MR.lkey, b.MR.addr+uint64(b.Offset)
	e.CompareAdd, e.Swap = uint64(b.Length), uint64(b.Access)
}
