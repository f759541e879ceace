package verbs

import (
	"sync/atomic"

	"urdma/verbs/abi"
)

// WindowType is enum ibv_mw_type.
type WindowType uint32

// Types of memory windows (ibv_alloc_mw(3)).
const (
	Window1 WindowType = abi.MWType1 // for all queue pairs of the domain; bound anew at any time
	Window2 WindowType = abi.MWType2 // for the queue pair that bound it; invalidated before it is bound anew
)

// Window is a memory window: an rkey that OpBindWindow binds to part of a memory
// region and that, without a call of urdmad, can be taken back: by OpLocalInv, the
// peer's OpSendWithInv, or another bind.
type Window struct {
	pd     *PD
	handle uint32
	rkey   atomic.Uint32
}

// AllocWindow makes a window, bound to nothing.
func (p *PD) AllocWindow(kind WindowType) (*Window, error) {
	var resp abi.AllocMWResponse
	if _, err := call(p.ctx.client, abi.AllocMW, &abi.AllocMWRequest{PD: p.handle, Type: uint32(kind)}, &resp, -1, 0); err != nil {
		return nil, err
	}
	w := &Window{pd: p, handle: resp.Handle}
	w.rkey.Store(resp.RKey)
	return w, nil
}

// Close deallocates the window, which unbinds it (ibv_dealloc_mw(3)).
func (w *Window) Close() error { return w.pd.ctx.client.callHandle(abi.DeallocMW, w.handle) }

// RKey names the window to peers: that of the bind posted last.
func (w *Window) RKey() uint32 { return w.rkey.Load() }

// Remote is what a peer needs to write or read from an offset of the region on,
// through a window that is bound there.
func (w *Window) Remote(m *MR, offset int) Remote { return Remote{m.addr + uint64(offset), w.RKey()} }

// Bind says what OpBindWindow does: Window is bound to Length bytes at Offset of MR,
// which needs BindWindows and, for a window that peers may write, LocalWrite. It has
// a new rkey as soon as the work request is posted. A Length of 0 binds a window of
// type 1 to nothing.
type Bind struct {
	Window *Window
	MR     *MR
	Offset int
	Length int
	Access Access // RemoteWrite, RemoteRead, RemoteAtomic
}

const keyMask = 0xff // of an rkey: what its owner may choose

// write completes the slot of an OpBindWindow.
func (b *Bind) write(e *abi.SQE) {
	key := b.Window.RKey()
	e.RKey = key&^keyMask | (key+1)&keyMask
	e.ImmOrSTag, e.RemoteAddr = b.MR.lkey, b.MR.addr+uint64(b.Offset)
	e.CompareAdd, e.Swap = uint64(b.Length), uint64(b.Access)
}
