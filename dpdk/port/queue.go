package port

import "errors"

// ErrNoBuffer is returned by Retain when Retainable packets are retained.
var ErrNoBuffer = errors.New("port: no buffer left to retain the packet in")

// Woken is in ArmRx's fd where whoever puts a packet into the queue wakes the worker.
const Woken = -2

// Queue moves bursts of Ethernet frames, for one worker. See the package comment
// for ownership, threads and behaviour while the link is down.
type Queue interface {
	// Rx fills p with up to len(p) received frames and returns how many; those
	// are the caller's until Free. It never blocks.
	Rx(p []Packet) int

	// Free gives packets back: received ones, in any order, or packets from
	// Alloc that will not be sent. It clears nothing in p. Freeing unsent
	// packets that are not the newest allocated may make Tx copy the frames
	// allocated after them.
	Free(p []Packet)

	// Retain makes a received packet safe to keep for long, so that it no longer
	// uses up a slot of a scarce ring or a buffer that the rings need: it may
	// copy the frame and replace p.Data and p.Ref. Retaining it again changes
	// nothing. The packet must still be freed. The only error is ErrNoBuffer,
	// and it never comes while fewer than Retainable packets are retained; p is
	// then unchanged, is still the caller's, and must be given up soon.
	Retain(p *Packet) error

	// Retainable is how many packets may be retained at a time. With so many
	// kept, however long, Rx, Alloc and Tx work as with none, so it is what a
	// caller can promise to its peers. It is constant from open to close.
	Retainable() int

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
	// interrupt; use timed waits. Woken: nothing needs waiting for.
	ArmRx() (fd int, armed bool)

	// DisarmRx is called after blocking, if ArmRx returned armed=true. It
	// drains the fd and stops interrupts.
	DisarmRx()
}
