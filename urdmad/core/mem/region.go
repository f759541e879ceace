package mem

import "urdma/verbs/abi"

// STag identifies a region: it is lkey and rkey of libibverbs, and the steering tag of RFC 5041.
type STag uint32

// Region is registered memory of one client, or the part of a region to which a window is bound. The worker
// owns it.
type Region struct {
	STag   STag
	PD     uint64 // protection domain, unique across all clients
	Access uint32 // enum ibv_access_flags
	Space  *Space
	Since  int64 // when it was registered, in ns of the worker's clock; for display
	// Check, if not nil, decides at each access whether the program itself could do it. Such a region is on
	// the fallback path, and nobody has RemoteAtomic: there an atomic would not be atomic with those through
	// other regions.
	Check func(addr uint64, n int, write bool) error

	window  *Window // the window that is bound to this part; nil for a region
	of      *Region // the region of which this is a part
	stream  uint32  // of a part: the only queue pair that may use it; 0: any of the protection domain
	windows int     // number of windows bound to it

	base   uint64 // iova of the first byte
	length uint64
	bytes  []byte // in urdmad's address space; nil on the fallback path
	mapped Mapping
	client uint64 // address in the client, for the fallback path
	shared bool   // urdmad maps its memory
	null   bool   // a region without memory (null.go)

	refs int  // operations in progress that may still access bytes
	dead bool // deregistered, or no longer bound: new operations can't use it
}

// NewRegion describes length bytes of s, whose address in work requests is base. For shared memory m comes
// from s.Map. For other memory m is the zero Mapping, and client is the address in the client's address
// space.
func NewRegion(s *Space, pd uint64, access uint32, base, length, client uint64, m Mapping) *Region {
	m.fresh, m.file = nil, nil // no longer needed: the mapping is populated, or never will be
	return &Region{PD: pd, Access: access, Space: s, base: base, length: length,
		bytes: m.Bytes, mapped: m, client: client, shared: m.view != nil || length == 0}
}

// Shared reports whether urdmad maps the region's memory.
func (r *Region) Shared() bool { return r.shared }

// Windows returns how many windows are bound to the region.
func (r *Region) Windows() int { return r.windows }

// Length returns the length of the region in bytes.
func (r *Region) Length() uint64 {
	if r.null {
		return 0
	}
	return r.length
}

// Base returns the address of the first byte, as used in work requests.
func (r *Region) Base() uint64 { return r.base }

// Contains reports whether n bytes at va are inside the region; it accepts any values.
func (r *Region) Contains(va, n uint64) bool {
	off := va - r.base
	return va >= r.base && off <= r.length && n <= r.length-off
}

// Bytes returns n bytes at va, which Contains has accepted; nil if the region is on the fallback path.
func (r *Region) Bytes(va, n uint64) []byte {
	if r.bytes == nil {
		return nil
	}
	if r.null {
		return r.bytes[:n:n]
	}
	off := va - r.base
	return r.bytes[off : off+n : off+n]
}

// ClientAddr translates va, which Contains has accepted, to the client's address space.
func (r *Region) ClientAddr(va uint64) uint64 { return r.client + (va - r.base) }

// Hold keeps the region's memory mapped until Release, even if it is deregistered in the meantime.
func (r *Region) Hold() {
	r.refs++
	if r.of != nil {
		r.of.Hold()
	}
}

// Release undoes one Hold.
func (r *Region) Release() {
	r.refs--
	if r.dead && r.refs == 0 {
		r.unmap()
	}
	if r.of != nil {
		r.of.Release()
	}
}

// Allows reports whether all rights in want are granted.
func (r *Region) Allows(want uint32) bool { return r.Access&want == want }

// Dead reports whether the region was deregistered, or the window is no longer bound to it.
func (r *Region) Dead() bool { return r.dead || r.of != nil && r.of.dead }

func (r *Region) kill() {
	r.dead = true
	if r.refs == 0 {
		r.unmap()
	}
}

// edgeBytes is the size of an edge of a view's coverage.
const edgeBytes = 16

// RemovalCost returns about how many bytes are moved when the region is removed, in the coverage of its
// file.
func (r *Region) RemovalCost() int {
	w := r.mapped.view
	if w == nil {
		return 0
	}
	r.Space.mu.Lock()
	defer r.Space.mu.Unlock()
	return 2 * edgeBytes * len(w.covered.edges)
}

func (r *Region) unmap() {
	if r.mapped.view != nil {
		r.Space.unmap(r.mapped)
		r.mapped, r.bytes = Mapping{}, nil
	}
}

// CheckLocal reports whether a work request of protection domain pd may access n bytes at va with the
// rights want (0 for reading). Only peers may use a window's STag.
func (r *Region) CheckLocal(pd, va, n uint64, want uint32) bool {
	return r != nil && r.window == nil && r.PD == pd && r.Contains(va, n) && r.Allows(want)
}

// Violation is the reason why memory may not be accessed. Each wire protocol has its own codes for these.
type Violation uint8

// Violations, in the order in which they are checked.
const (
	Allowed     Violation = iota
	NoRegion              // no region has the STag
	OtherDomain           // a region of another protection domain, or a window bound for another queue pair
	Wrap                  // the range exceeds the end of the address space
	OutOfBounds           // the range is not inside the region
	NoRight               // the region or the queue pair does not grant the operation
	Unmapped              // memory of the region is Missing
	Misaligned            // the address of an atomic operation is not a multiple of 8
	Failing               // the responder fails because of injected faults: nothing is wrong with the request
)

// User is a queue pair that wants to use an STag: its protection domain and number.
type User struct {
	PD     uint64
	Stream uint32
}

// CheckRemote reports why a peer of a queue pair may not access n bytes at va with the rights want, by the
// checks of RFC 5041 section 5.2 and RFC 5040 section 7.
func (r *Region) CheckRemote(u User, va, n uint64, want uint32) Violation {
	switch {
	case r == nil:
		return NoRegion
	case r.otherDomain(u):
		return OtherDomain
	case va+n < va:
		return Wrap
	case !r.Contains(va, n):
		return OutOfBounds
	case !r.Allows(want):
		return NoRight
	}
	return Allowed
}

// Missing reports whether Check refuses an access to n bytes at va, so that a peer gets an answer. A call costs a
// system call for each mapping of these bytes, so n should be a piece of a message. Only the check of a trusted
// client may be called here; the accesses of others fail when they are carried out.
func (r *Region) Missing(va, n uint64, write bool) bool {
	return r.Check != nil && r.missing(va, n, write)
}

// missing is a function of its own so that Missing is inlined.
func (r *Region) missing(va, n uint64, write bool) bool {
	return r.Space.direct && r.Check(r.ClientAddr(va), int(n), write) != nil
}

func (r *Region) otherDomain(u User) bool {
	return r.PD != u.PD || r.stream != 0 && r.stream != u.Stream
}

// Access rights, enum ibv_access_flags.
const (
	LocalWrite   = abi.AccessLocalWrite
	RemoteWrite  = abi.AccessRemoteWrite
	RemoteRead   = abi.AccessRemoteRead
	RemoteAtomic = abi.AccessRemoteAtomic
)
