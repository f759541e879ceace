package port

// Woken is returned in ArmRx's fd if the worker is woken by the goroutine that puts a packet into the queue.
const Woken = -2

// Queue moves bursts of Ethernet frames, for one worker. See the package comment
// for ownership, threads and behaviour while the link is down.
type Queue interface {
	// Rx fills p with up to len(p) received frames and returns their number; the caller owns them until Free.
	// It never blocks.
	Rx(p []Packet) int

	// Free gives packets back: received ones, in any order, or packets from Alloc that will not be sent. It
	// does not clear p. If packets other than the newest allocated are freed unsent, Tx may copy the frames
	// allocated after them.
	Free(p []Packet)

	// Alloc fills p with up to len(p) transmit buffers and returns their number (fewer if the ring or the
	// pool is exhausted); the caller owns them until Tx or Free. They must be sent in the order in which
	// Alloc returned them, over all calls; unsent ones may be kept across calls.
	Alloc(p []Packet) int

	// Tx passes the first n packets of p to the port, each with Data cut to the frame's length, and returns
	// n. If n < len(p) the ring is full: the caller still owns the rest, and must send it first next time.
	// Frames may become visible to the other side at once or only at Flush.
	Tx(p []Packet) int

	// Flush makes frames given to Tx visible to the other side and wakes it if it sleeps. It must be called
	// once in each turn of the poll loop that sent frames, and at least once after Tx returned less than it
	// was given.
	Flush()

	// ArmRx is called before the worker blocks. armed=false: frames are there (or the port can't tell); do
	// not block. armed=true with fd >= 0: fd becomes readable when frames may be there; the port owns the fd,
	// which may differ from call to call. armed=true with fd -1: the port has no interrupt; use timed waits.
	// Woken: no fd has to be waited for.
	ArmRx() (fd int, armed bool)

	// DisarmRx is called after blocking, if ArmRx returned armed=true. It
	// drains the fd and stops interrupts.
	DisarmRx()
}
