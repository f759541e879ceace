package port

// EtherHeaderLen is what a frame carries before the IP packet: two addresses
// and the EtherType. A port's buffers hold Info().MTU plus this many bytes.
const EtherHeaderLen = 14

// Flags say what the port found out about a received frame. On packets from
// Alloc they are zero and Tx ignores them.
type Flags uint32

const (
	// RxIPv4Bad: the port verified the IPv4 header checksum and found it wrong.
	RxIPv4Bad Flags = 1 << iota
	// RxUDPBad: the port verified the UDP checksum and found it wrong.
	RxUDPBad
	// RxIPv4Good: the port verified the IPv4 header checksum and found it right.
	RxIPv4Good
	// RxUDPGood: the port verified the UDP checksum and found it right.
	RxUDPGood
)

// Has reports whether every flag of f is set.
func (g Flags) Has(f Flags) bool { return g&f == f }

// Packet is one Ethernet frame in a buffer of the port: no preamble, no frame
// check sequence.
type Packet struct {
	// Data is the frame. After Rx it is exactly the frame received; after Alloc
	// it is the whole room, Info().MTU+EtherHeaderLen bytes, with undefined
	// contents, and the caller reslices it (Data[:n], never from the front) to
	// the length it wants sent.
	Data []byte
	// Flags of a received frame.
	Flags Flags
	// Ref is the port's own: an mbuf's address, a ring slot. The caller keeps
	// it together with Data and never looks at it.
	Ref uintptr
}

// Info describes a port. All of it is fixed from open to close.
type Info struct {
	// Name is what the configuration called the port, Driver what moves the
	// frames ("memif", "net_af_packet", …).
	Name, Driver string
	// MAC is the port's Ethernet address, in wire order.
	MAC [6]byte
	// MTU is the largest IPv4 packet, header included, in bytes. The largest
	// frame is EtherHeaderLen longer.
	MTU int
	// RxChecksum: the port looks after received checksums. Either it verifies
	// them and says so in Packet.Flags, or the wire cannot corrupt a frame
	// (shared memory) and a sender may leave the UDP checksum 0. In both cases
	// the receiver's rule is the same: a checksum that is present and not
	// flagged Good is verified; a UDP checksum of 0 is none (RFC 768).
	RxChecksum bool
	// TxUDPChecksum: the sender leaves the UDP checksum 0. Either the port fills
	// it in on the way out, or the wire needs none. The IPv4 header checksum is
	// always the caller's to compute.
	TxUDPChecksum bool
	// SharedRx: another process can change received bytes at any time. Headers
	// must be copied out before they are checked.
	SharedRx bool
	// Wire is false for the loopback driver: Rx never returns a frame and
	// whatever Tx takes is gone.
	Wire bool
}

// Port moves bursts of Ethernet frames. See the package comment for ownership,
// threads and behaviour while the link is down.
type Port interface {
	// Info describes the port; constant from open to close.
	Info() Info

	// Rx fills p with up to len(p) received frames and returns how many; those
	// are the caller's until Free. It never blocks.
	Rx(p []Packet) int

	// Free gives packets back: received ones, in any order, or packets from
	// Alloc that will not be sent. It clears nothing in p. Freeing unsent
	// packets that are not the newest allocated may make Tx copy the frames
	// allocated after them.
	Free(p []Packet)

	// Retain makes a received packet safe to keep for long, so that it no
	// longer uses up a slot of a scarce ring: it may copy the frame and replace
	// p.Data and p.Ref. Ports with a roomy buffer pool do nothing. The packet
	// must still be freed. On error (no memory left for it) p is unchanged, is
	// still the caller's, and should be given up soon.
	Retain(p *Packet) error

	// Alloc fills p with up to len(p) transmit buffers and returns how many
	// (fewer when the ring or the pool is exhausted); those are the caller's
	// until Tx or Free. They must be sent in the order in which Alloc returned
	// them, over all calls; unsent ones may be kept across calls.
	Alloc(p []Packet) int

	// Tx hands the first n of p, each with Data cut to the frame's length, to
	// the port and returns n. n < len(p) means the ring is full: the rest stays
	// the caller's, to be sent first next time. Frames may become visible to
	// the other side at once or only at Flush.
	Tx(p []Packet) int

	// Flush makes what Tx took visible to the other side and wakes it if it
	// sleeps. Call it once per turn of the poll loop that sent anything, and at
	// least once after Tx returned less than it was given.
	Flush()

	// ArmRx is called before the worker blocks. armed=false: frames are there
	// already (or the port can't tell), don't block. armed=true with fd >= 0:
	// fd becomes readable when frames may be there; the fd stays the port's and
	// may differ from call to call. armed=true with fd -1: the port has no
	// interrupt; use timed waits.
	ArmRx() (fd int, armed bool)

	// DisarmRx is called after blocking, if ArmRx returned armed=true. It
	// drains the fd and stops interrupts.
	DisarmRx()

	// Link reports whether frames can pass now.
	Link() bool

	// Stats returns the counters since open.
	Stats() Stats

	// Close releases everything. Closing twice is harmless.
	Close() error
}
