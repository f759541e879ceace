package mem

import "urdma/verbs/abi"

// Window is a memory window: an STag that its program binds to part of a region for peers to use, and
// unbinds again without a system call (InfiniBand vol. 1). Every bind makes a new part, so that an
// operation in progress which holds the part of an earlier bind finds it dead.
type Window struct {
	PD uint64
	// Type2 windows are bound for one queue pair, and invalidated. Other windows are bound for the whole
	// protection domain, and rebound, with length 0 to unbind.
	Type2 bool

	part *Region // the Table's entry; dead while the window is not bound
}

// STag returns the window's STag, with the key of its latest bind.
func (w *Window) STag() STag { return w.part.STag }

// Bound returns the part of a region to which the window is bound, or nil.
func (w *Window) Bound() *Region {
	if w.part.Dead() {
		return nil
	}
	return w.part
}

// Of returns the region of a part; nil for a region.
func (r *Region) Of() *Region { return r.of }

// Stream returns the only queue pair that may use a part; 0 if any may.
func (r *Region) Stream() uint32 { return r.stream }

// InsertWindow gives w, which is not bound, an STag; false if the table is full.
func (t *Table) InsertWindow(w *Window) bool {
	w.part = &Region{PD: w.PD, window: w, dead: true}
	return t.Insert(w.part)
}

// RemoveWindow unbinds w and removes it from the table.
func (t *Table) RemoveWindow(w *Window) {
	w.unbind()
	t.Remove(w.part)
}

// Window returns the window of an STag with any key, or nil.
func (t *Table) Window(s STag) *Window {
	slot := t.find(s)
	if slot == nil {
		return nil
	}
	return (*slot).window
}

// Binding has the parameters of a bind.
type Binding struct {
	STag   STag // the window's index with the new key
	To     STag // STag of the region
	Addr   uint64
	Length uint64 // 0: unbind
	Access uint32 // enum ibv_access_flags
	By     User
}

// windowRights are the rights that a window can grant.
const windowRights = RemoteWrite | RemoteRead | RemoteAtomic

// Bind binds a window and reports whether the rules of InfiniBand vol. 1 allow it; if not, nothing has
// changed. A window of type 1 may already be bound.
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

// part returns the part of a region that b describes.
func (r *Region) part(b *Binding) *Region {
	p := &Region{PD: r.PD, Access: b.Access & windowRights, Space: r.Space, of: r, base: b.Addr, length: b.Length,
		bytes: r.Bytes(b.Addr, b.Length), client: r.ClientAddr(b.Addr), shared: r.shared, Check: r.Check}
	if b.Access&abi.AccessZeroBased != 0 {
		p.base = 0
	}
	if r.Check != nil {
		p.Access &^= RemoteAtomic
	}
	return p
}

// replace replaces a window's entry in the table by a part.
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
