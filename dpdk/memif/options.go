package memif

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"

	"urdma/dpdk/port"
)

// Options describe one memif port.
type Options struct {
	// Name is the port's name in logs and in Info.
	Name string
	// SocketPath is the control socket; a leading '@' means the abstract
	// namespace. The server creates it, the client connects to it. At most 107
	// bytes.
	SocketPath string
	// Server: the port listens; otherwise it is a client. Several server ports of a process may share a
	// socket with different IDs.
	Server bool
	// ID distinguishes interfaces on one socket; both sides must use the same.
	ID uint32
	// MAC is the port's address; zero means a random local one.
	MAC [6]byte
	// MTU is the largest IPv4 packet in bytes, 576 to 9600; 0 means 1500.
	MTU int
	// RingSize is the number of slots in a ring, a power of two from 8 to 16384; 0 means 1024. The client's
	// value is used, up to the server's limit. If there are more than two rings in each direction, they have
	// twice as many slots in total.
	RingSize int
	// BufferSize is the size in bytes of a packet buffer in a client's region; 0 means the size that the MTU
	// needs.
	BufferSize int
	// Queues is the number of queues, one for each worker, at most 8; 0 means 1. A link has, in each
	// direction, as many rings as the receiving side has queues, if the peer supports that.
	Queues int
	// Ring returns the number of the ring, out of rings, on which a frame is sent; nil: the first. Another
	// process may change the frame at any time.
	Ring func(frame []byte, rings int) int
	// Secret must be the same on both sides; at most 23 bytes. Empty: none.
	Secret string
	// Log gets a line for each connection that is made or lost; nil: no log.
	Log *slog.Logger
}

const (
	minMTU, maxMTU     = 576, 9600
	defaultMTU         = 1500
	defaultRing        = 1024
	maxQueues          = 8
	maxSocketPath      = 107
	maxBufferSize      = 1 << 16
	driverName         = "memif"
	softwareName       = "urdma"
	cacheLine          = 64
	buffersPerRingSlot = 4
)

// Check returns the error with which Open would refuse the options.
func (o Options) Check() error { return o.fill() }

// fill checks the options and sets defaults.
func (o *Options) fill() error {
	if o.Name == "" {
		o.Name = driverName
	}
	if o.SocketPath == "" {
		return errors.New("memif: no socket path given")
	}
	if len(o.SocketPath) > maxSocketPath {
		return fmt.Errorf("memif %s: socket path of %d bytes, the system allows %d: %q", o.Name, len(o.SocketPath),
			maxSocketPath, o.SocketPath)
	}
	if len(o.Secret) >= secretSize {
		return fmt.Errorf("memif %s: secret of %d bytes, at most %d fit", o.Name, len(o.Secret), secretSize-1)
	}
	if o.MTU == 0 {
		o.MTU = defaultMTU
	}
	if o.MTU < minMTU || o.MTU > maxMTU {
		return fmt.Errorf("memif %s: MTU %d is outside %d to %d", o.Name, o.MTU, minMTU, maxMTU)
	}
	if o.Queues == 0 {
		o.Queues = 1
	}
	if o.Queues < 1 || o.Queues > maxQueues {
		return fmt.Errorf("memif %s: %d queues, allowed are 1 to %d", o.Name, o.Queues, maxQueues)
	}
	if o.Ring == nil {
		o.Ring = func([]byte, int) int { return 0 }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MAC == [6]byte{} {
		o.MAC = randomMAC()
	}
	return o.fillSizes()
}

func (o *Options) fillSizes() error {
	if o.RingSize == 0 {
		o.RingSize = defaultRing
	}
	if bits.OnesCount(uint(o.RingSize)) != 1 || o.RingSize < 1<<minLog2Ring || o.RingSize > 1<<maxLog2Ring {
		return fmt.Errorf("memif %s: ring size %d is not a power of two from %d to %d", o.Name, o.RingSize, 1<<minLog2Ring,
			1<<maxLog2Ring)
	}
	room := o.MTU + port.EtherHeaderLen
	if o.BufferSize == 0 {
		o.BufferSize = stride(room)
	}
	if o.BufferSize < room || o.BufferSize > maxBufferSize || o.BufferSize%8 != 0 {
		return fmt.Errorf("memif %s: buffer size %d: must hold a frame of %d bytes, be a multiple of 8 and at most %d",
			o.Name, o.BufferSize, room, maxBufferSize)
	}
	return nil
}

// stride is the distance from one buffer to the next: an odd number of cache lines, so that the headers of
// consecutive buffers are spread over all cache sets.
func stride(room int) int {
	lines := (room + cacheLine - 1) / cacheLine
	return (lines | 1) * cacheLine
}

func (o *Options) log2Ring() uint8 { return uint8(bits.TrailingZeros(uint(o.RingSize))) }

func (o *Options) secret() (s [secretSize]byte) {
	copy(s[:], o.Secret)
	return s
}

// randomMAC makes a locally administered unicast address (IEEE 802).
func randomMAC() (m [6]byte) {
	rand.Read(m[:])
	m[0] = m[0]&^1 | 2
	return m
}
