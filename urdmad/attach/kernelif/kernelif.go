// Package kernelif makes a network interface of the kernel on a port that has none: a TAP device
// with the port's Ethernet address, MTU, IP address and link state. watch.go reports later
// changes of these. It knows nothing about the content of frames.
package kernelif

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Config has the properties of the interface, which are those of its port.
type Config struct {
	Name    string
	MAC     [6]byte
	MTU     int          // largest IP packet, in bytes
	Address netip.Prefix // unspecified: none yet
}

// Interface is a network interface made by Open. It exists until Close, or the end of the
// process.
type Interface struct {
	tap   *os.File
	news  *os.File // netlink socket for changes, once Watch was called
	index int
	mtu   int
	quit  chan struct{}
	out   chan *[]byte // frames for the kernel, with their headers
	room  sync.Pool    // buffers of such frames
	done  sync.WaitGroup
}

// Limits of queued frames, to the kernel and from it.
const (
	outFrames = 256
	inFrames  = 64
)

// headerLen is that of struct virtio_net_hdr before each frame (linux/virtio_net.h), and
// unfinished its flag for a frame whose checksum is still to be computed.
const (
	// headerLen is the length of struct virtio_net_hdr, which precedes each frame
	// (linux/virtio_net.h). unfinished is its flag for a frame whose checksum is still to be
	// computed.
	headerLen      = 10
	unfinished     = 1 // VIRTIO_NET_HDR_F_NEEDS_CSUM
	etherHeaderLen = 14
)

// Open makes the interface; it is up and without a carrier. It needs CAP_NET_ADMIN. If the name
// is in use, the error wraps EBUSY.
func Open(c Config) (*Interface, error) {
	wrap := func(err error) error { return fmt.Errorf("network interface %s: %w", c.Name, err) }
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, wrap(fmt.Errorf("/dev/net/tun: %w", err))
	}
	i := &Interface{mtu: c.MTU, quit: make(chan struct{}), out: make(chan *[]byte, outFrames)}
	i.room.New = func() any {
		b := make([]byte, 0, headerLen+etherHeaderLen+c.MTU)
		return &b
	}
	if i.index, err = attach(fd, &c); err != nil {
		unix.Close(fd)
		return nil, wrap(err)
	}
	i.tap = os.NewFile(uintptr(fd), c.Name) // only now, because an unattached descriptor cannot be polled
	return i, nil
}

// attach makes the interface for a descriptor of /dev/net/tun.
func attach(fd int, c *Config) (index int, err error) {
	ifr, err := unix.NewIfreq(c.Name)
	if err != nil {
		return 0, err
	}
	ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR | unix.IFF_TUN_EXCL)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		return 0, fmt.Errorf("TUNSETIFF: %w", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TUNSETCARRIER, 0); err != nil {
		return 0, fmt.Errorf("TUNSETCARRIER: %w", err)
	}
	return setUp(c)
}

// SetLink sets the carrier of the interface to the port's link state.
func (i *Interface) SetLink(up bool) {
	carrier := 0
	if up {
		carrier = 1
	}
	raw, err := i.tap.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { _ = unix.IoctlSetPointerInt(int(fd), unix.TUNSETCARRIER, carrier) })
	}
	_ = err // the interface was closed or deleted: nothing to set
}

// Take queues a copy of a frame for the kernel. It returns false if the frame is too long or the
// queue is full. It does not block, and several threads may call it. If sum is not 0, the TCP or
// UDP checksum is still to be computed over the bytes from offset sum on, and stored at bytes
// after sum.
func (i *Interface) Take(frame []byte, sum, at int) bool {
	if len(frame) > i.mtu+etherHeaderLen || len(i.out) == cap(i.out) { // checked before copying
		return false
	}
	b := i.room.Get().(*[]byte)
	*b = append((*b)[:0], make([]byte, headerLen)...)
	if sum > 0 {
		(*b)[0] = unfinished
		binary.NativeEndian.PutUint16((*b)[6:], uint16(sum))
		binary.NativeEndian.PutUint16((*b)[8:], uint16(at))
	}
	*b = append(*b, frame...)
	select {
	case i.out <- b:
		return true
	default:
		i.room.Put(b)
		return false
	}
}

// Run passes frames until Close. send gets the kernel's frames; it owns a frame until it calls
// done, and must not block. At most inFrames frames are in use at a time.
func (i *Interface) Run(send func(frame []byte, done func())) {
	i.done.Go(func() {
		for b := range i.out {
			_, _ = i.tap.Write(*b) // if the interface is down, the frame is lost
			i.room.Put(b)
		}
	})
	i.done.Go(func() {
		free := make(chan []byte, inFrames)
		for range inFrames {
			free <- make([]byte, headerLen+etherHeaderLen+i.mtu+4) // 4 bytes for a VLAN tag
		}
		for {
			var b []byte
			select {
			case b = <-free:
			case <-i.quit:
				return
			}
			n, err := i.tap.Read(b)
			if err != nil || n < headerLen {
				return
			}
			send(b[headerLen:n], func() { free <- b })
		}
	})
}

// Close deletes the interface. Take must not be called afterwards.
func (i *Interface) Close() {
	close(i.quit)
	close(i.out)
	_ = i.tap.Close()
	if i.news != nil {
		_ = i.news.Close()
	}
	i.done.Wait()
}
