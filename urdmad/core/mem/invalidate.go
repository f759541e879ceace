package mem

// Invalidate unbinds the window of an STag, as requested by the peer of a queue pair or by its program
// (RFC 5040 section 5.3). NoRight: the STag does not belong to a window of type 2.
func (t *Table) Invalidate(s STag, by User) Violation {
	r := t.Lookup(s)
	switch {
	case r == nil:
		return NoRegion
	case r.otherDomain(by):
		return OtherDomain
	case r.window == nil || !r.window.Type2:
		return NoRight
	}
	r.window.unbind()
	return Allowed
}
