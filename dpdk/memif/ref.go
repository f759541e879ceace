package memif

// ref is the contents of a Packet's Ref: the link, the kind of buffer, and its index.
//
//	bits 63–62 0: reserved for package steer
//	bits 61–32 epoch of the link (0 for private buffers)
//	bits 31–28 kind
//	bits 27–0  index: private buffer, ring slot (server) or region buffer (client)
type ref uint64

// epochs is the number of epochs, which are reused after that.
const epochs = 1 << 30

type refKind uint8

const (
	refHeap refKind = 1 + iota // private buffer, received or to be sent
	refRx                      // received, in shared memory
	refTx                      // to be sent, in shared memory
)

func makeRef(epoch uint32, k refKind, index uint32) uintptr {
	return uintptr(uint64(epoch)<<32 | uint64(k)<<28 | uint64(index))
}

func (r ref) epoch() uint32 { return uint32(r >> 32) }
func (r ref) kind() refKind { return refKind(r >> 28 & 0xf) }
func (r ref) index() uint32 { return uint32(r & (1<<28 - 1)) }
