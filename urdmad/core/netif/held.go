package netif

// Account counts the datagrams that one user of an interface keeps.
type Account struct{ kept int }

// Held is a private copy of a datagram's payload; the zero Held has none.
type Held struct{ data []byte }

const (
	keepable     = 8192      // datagrams; or two receive buffers of them
	keepableSize = 128 << 20 // bytes; or two receive buffers
	// mostKeepable is twice the longest possible window.
	mostKeepable     = 1 << 17
	mostKeepableSize = 256 << 20
)

// keepableOf returns how many datagrams of a size an interface keeps if its port holds so many until they are
// polled: as many as peers may be allowed to send when each connection may keep half of the free slots. A
// machine that allows a larger receive buffer has the memory for that.
func keepableOf(size, window int) int {
	return max(min(keepable, keepableSize/size), min(2*window, mostKeepable, mostKeepableSize/size))
}

// Keep copies the payload of the datagram that Next returned last, so that it can be kept for long, and
// charges an account. It returns false if there is no memory for it; then the datagram must be dropped.
//
// An account may keep as many datagrams as are still free for all (dynamic thresholds, Choudhury and Hahne
// 1998). A single account gets half of Keepable; however many accounts keep their maximum, some is left for
// the next.
func (n *Interface) Keep(a *Account, d *Datagram) (Held, bool) {
	if a.kept >= n.Keepable-n.Kept || len(d.Data) > n.info.MTU {
		return Held{}, false
	}
	var b []byte
	if last := len(n.unused) - 1; last >= 0 {
		b, n.unused = n.unused[last], n.unused[:last]
	}
	a.kept++
	n.Kept++
	return Held{append(b[:0], d.Data...)}, true
}

// Any reports whether h has a datagram.
func (h *Held) Any() bool { return h.data != nil }

// Payload returns the datagram's payload from offset off.
func (h *Held) Payload(off int) []byte { return h.data[min(off, len(h.data)):] }

// Release frees the memory of a datagram.
func (n *Interface) Release(a *Account, h *Held) {
	if h.Any() {
		a.kept--
		n.Kept--
		n.unused = append(n.unused, h.data)
		*h = Held{}
	}
}
