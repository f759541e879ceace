package memif

// ref is what a Packet's Ref says: which link, what kind of buffer, which one.
//
//	bits 63–62 0: package steer has names of its own
//	bits 61–32 epoch of the link (0 for private buffers)
//	bits 31–28 kind
//	bits 27–0  index: private buffer, ring slot (server) or region buffer (client)
type ref uint64

// epochs is how many there are; then they begin again.
const epochs = 1 << 30

type refKind uint8

const (
	refHeap refKind = 1 + iota // private buffer, received or to send
	refRx                      // received, in shared memory
	refTx                      // to send, in shared memory
	refKept                    // received and retained, in shared memory
)

func makeRef(epoch uint32, k refKind, index uint32) uintptr {
	return uintptr(uint64(epoch)<<32 | uint64(k)<<28 | uint64(index))
}

func (r ref) epoch() uint32 { return uint32(r >> 32) }
func (r ref) kind() refKind { return refKind(r >> 28 & 0xf) }
func (r ref) index() uint32 { return uint32(r & (1<<28 - 1)) }
