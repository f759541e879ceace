package mem

import "urdma/verbs/abi"

// Window is a memory window: an STag that its program binds to part of a region,
// for peers to use, and unbinds again without a system call (InfiniBand vol. 1).
// Every bind makes a part of its own, so that work under way which
// holds the part of an earlier one finds it dead.
type Window struct {
	PD uint64
	// Type2 windows are bound for one queue pair, and invalidated; others are bound
	// for all of the protection domain, and bound anew, or to nothing.
	Type2 bool

	part *Region // what the table has; dead while the window is not bound
}

// STag is the window's, with the key of its newest bind.
func (w *Window) STag() STag { return w.part.STag }

// Bound is the part of a region that the window is bound to, or nil.
func (w *Window) Bound() *Region {
	if w.part.Dead() {
		return nil
	}
	return w.part
}

// Of is the region that a part belongs to; nil for a region.
func (r *Region) Of() *Region { return r.of }

// Stream is the only queue pair that a part may be used by; 0 if any may.
func (r *Region) Stream() uint32 { return r.stream }

// InsertWindow gives w, which is not bound, an STag; false when there are as many
// as there may be.
func (t *Table) InsertWindow(w *Window) bool {
	w.part = &Region{PD: w.PD, window: w, dead: true}
	return t.Insert(w.part)
}

// RemoveWindow unbinds w and forgets it.
func (t *Table) RemoveWindow(w *Window) {
	w.unbind()
	t.Remove(w.part)
}

// Window returns the window that an STag with any key names, or nil.
func (t *Table) Window(s STag) *Window {
	slot := t.find(s)
	if slot == nil {
		return nil
	}
	return (*slot).window
}

// Binding is what a window is to be bound to.
type Binding struct {
	STag   STag // the window's index, and the key from now on
	To     STag // of the region
	Addr   uint64
	Length uint64 // 0: to nothing
	Access uint32 // enum ibv_access_flags
	By     User
}

// windowRights are what a window can grant.
const windowRights = RemoteWrite | RemoteRead | RemoteAtomic

// Bind binds a window, or says that the rules of InfiniBand vol. 1 are
// against it; then nothing has changed. A window of type 1 may be bound already.
func (t *Table) Bind(b *Binding) bool {
	w := t.Window(b.STag)
	if w == nil || w.PD != b.By.PD {
		return false
	}
	if b.Length == 0 && !w.Type2 {
		t.replace(w, b.STag, &Region{PD: w.PD, window: w, dead: true})
		return true
	}
	to := t.Lookup(b.To)
	if !w.mayBind(to, b) {
		return false
	}
	part := to.part(b)
	if w.Type2 {
		part.stream = b.By.Stream
	}
	part.window = w
	to.windows++
	t.replace(w, b.STag, part)
	return true
}

func (w *Window) mayBind(to *Region, b *Binding) bool {
	switch {
	case w.Type2 && w.Bound() != nil, b.Length == 0:
		return false
	case to == nil || to.window != nil || to.PD != w.PD || !to.Allows(abi.AccessMWBind):
		return false
	case b.Access&(RemoteWrite|RemoteAtomic) != 0 && !to.Allows(LocalWrite):
		return false
	}
	return to.Contains(b.Addr, b.Length)
}

// part is what a window bound as b says makes of a region.
func (r *Region) part(b *Binding) *Region {
	p := &Region{PD: r.PD, Access: b.Access & windowRights, Space: r.Space, of: r, base: b.Addr, length: b.Length,
		bytes: r.Bytes(b.Addr, b.Length), client: r.ClientAddr(b.Addr), shared: r.shared}
	if b.Access&abi.AccessZeroBased != 0 {
		p.base = 0
	}
	return p
}

// replace puts a part into the table in the place of what the window had.
func (t *Table) replace(w *Window, s STag, part *Region) {
	w.unbind()
	part.STag = s
	*t.find(s), w.part = part, part
}

func (w *Window) unbind() {
	if w.part.dead {
		return
	}
	w.part.kill()
	w.part.of.windows--
}
