package mem

import "urdma/verbs/abi"

// STag names a region: it is lkey and rkey of libibverbs and the steering tag of
// RFC 5041.
type STag uint32

// Region is registered memory of one client, or the part of it that a window is
// bound to. The worker owns it.
type Region struct {
	STag   STag
	PD     uint64 // protection domain, unique over all clients
	Access uint32 // enum ibv_access_flags
	Space  *Space
	Since  int64 // when it was registered, by the worker's clock in ns; for people

	window  *Window // whose part it is; nil for a region
	of      *Region // which it is a part of
	stream  uint32  // a part: the only queue pair that may be asked for it; 0: any of the protection domain
	windows int     // bound to it

	base   uint64 // iova of the first byte
	length uint64
	bytes  []byte // in urdmad's address space; nil on the fallback path
	mapped Mapping
	client uint64 // address in the client, for the fallback path
	shared bool   // urdmad maps its pages
	null   bool   // there is no memory (null.go)

	refs int  // work in progress that may still touch bytes
	dead bool // deregistered, or bound no more: no new work finds it
}

// NewRegion describes length bytes of s that work requests call base. With
// shared memory m comes from s.Map; without, it is the zero Mapping and client is the
// address in the client's address space.
func NewRegion(s *Space, pd uint64, access uint32, base, length, client uint64, m Mapping) *Region {
	m.fresh, m.file = nil, nil // is populated, or never will be
	return &Region{PD: pd, Access: access, Space: s, base: base, length: length,
		bytes: m.Bytes, mapped: m, client: client, shared: m.view != nil || length == 0}
}

// Shared reports whether urdmad maps the region's pages.
func (r *Region) Shared() bool { return r.shared }

// Windows is how many windows are bound to the region.
func (r *Region) Windows() int { return r.windows }

// Length of the region's memory in bytes.
func (r *Region) Length() uint64 {
	if r.null {
		return 0
	}
	return r.length
}

// Base is the address of the first byte as work requests name it.
func (r *Region) Base() uint64 { return r.base }

// Contains reports whether n bytes at va lie inside; it is safe for any values.
func (r *Region) Contains(va, n uint64) bool {
	off := va - r.base
	return va >= r.base && off <= r.length && n <= r.length-off
}

// Bytes returns n bytes at va, which Contains has accepted; nil if the region
// is on the fallback path.
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

// ClientAddr translates va, which Contains has accepted, to the client's own
// address.
func (r *Region) ClientAddr(va uint64) uint64 { return r.client + (va - r.base) }

// Hold keeps the region's pages mapped until Release, even if it is
// deregistered meanwhile.
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

// Allows reports whether all of want is granted.
func (r *Region) Allows(want uint32) bool { return r.Access&want == want }

// Dead reports whether the region was deregistered, or its window is bound to it
// no more.
func (r *Region) Dead() bool { return r.dead || r.of != nil && r.of.dead }

func (r *Region) kill() {
	r.dead = true
	if r.refs == 0 {
		r.unmap()
	}
}

// edgeBytes is what an edge of a view's coverage takes.
const edgeBytes = 16

// RemovalCost is about how many bytes are moved when the region goes, of what is kept of the
// regions beside it in its file.
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

// CheckLocal says whether a work request of protection domain pd may use n
// bytes at va with the rights want (0 for reading). A window's STag is for peers.
func (r *Region) CheckLocal(pd, va, n uint64, want uint32) bool {
	return r != nil && r.window == nil && r.PD == pd && r.Contains(va, n) && r.Allows(want)
}

// Violation says why memory may not be used as asked. Each wire protocol has its
// own codes for them.
type Violation uint8

// Violations, in the order in which they are looked for.
const (
	Allowed     Violation = iota
	NoRegion              // the STag names nothing
	OtherDomain           // a region of another protection domain, or a window bound for another queue pair
	Wrap                  // the range passes the end of the address space
	OutOfBounds           // the range is not inside the region
	NoRight               // the region or the queue pair does not grant the operation
	Misaligned            // an atomic operation that does not begin at a multiple of 8
	Failing               // the responder fails, on purpose: nothing is wrong with the request
)

// User is a queue pair that wants to use an STag, by its protection domain and
// number.
type User struct {
	PD     uint64
	Stream uint32
}

// CheckRemote says whether a peer of a queue pair may use n bytes at va with the
// rights want: the checks of RFC 5041 section 5.2 and RFC 5040 section 7.
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

func (r *Region) otherDomain(u User) bool {
	return r.PD != u.PD || r.stream != 0 && r.stream != u.Stream
}

// Rights, enum ibv_access_flags.
const (
	LocalWrite   = abi.AccessLocalWrite
	RemoteWrite  = abi.AccessRemoteWrite
	RemoteRead   = abi.AccessRemoteRead
	RemoteAtomic = abi.AccessRemoteAtomic
)
