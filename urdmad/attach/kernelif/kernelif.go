// Package kernelif makes a network interface of the kernel's on a port that the kernel has
// not: a TAP device with the port's Ethernet address, MTU, IP address and link; watch.go
// tells of later changes to these. It knows nothing about what frames hold.
package kernelif

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Config says what the interface is like: as its port.
type Config struct {
	Name    string
	MAC     [6]byte
	MTU     int          // bytes of an IP packet
	Address netip.Prefix // unspecified: none yet
}

// Interface is one that Open made. It is gone with Close, or the process.
type Interface struct {
	tap   *os.File
	news  *os.File // of changes, once they are watched
	index int
	mtu   int
	quit  chan struct{}
	out   chan *[]byte // to the kernel, each with its header
	room  sync.Pool    // of those
	done  sync.WaitGroup
}

// How many frames may wait, to the kernel and from it.
const (
	outFrames = 256
	inFrames  = 64
)

// headerLen is that of struct virtio_net_hdr before each frame (linux/virtio_net.h), and
// unfinished its flag for a frame whose checksum is still to be computed.
const (
	headerLen      = 10
	unfinished     = 1 // VIRTIO_NET_HDR_F_NEEDS_CSUM
	etherHeaderLen = 14
)

// Open makes the interface, up and without a carrier; it needs CAP_NET_ADMIN. Of a name
// that is taken the error wraps EBUSY.
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
	i.tap = os.NewFile(uintptr(fd), c.Name) // now: an unbound one can't be polled
	return i, nil
}

// attach makes the interface that a descriptor of /dev/net/tun is to stand for.
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

// SetLink gives the interface the port's link.
func (i *Interface) SetLink(up bool) {
	carrier := 0
	if up {
		carrier = 1
	}
	raw, err := i.tap.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { _ = unix.IoctlSetPointerInt(int(fd), unix.TUNSETCARRIER, carrier) })
	}
	_ = err // closed, or deleted by somebody: there is nothing to set
}

// Take gives the kernel a copy of a frame; false: it is too long, or others wait. It does
// not block, and several threads may call it. If sum is not 0, the checksum of TCP or UDP, at
// bytes behind sum, is still to be computed over what begins at sum.
func (i *Interface) Take(frame []byte, sum, at int) bool {
	if len(frame) > i.mtu+etherHeaderLen || len(i.out) == cap(i.out) { // no copy in vain
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

// Run passes frames until Close. send is given those of the kernel, which are its own
// until it calls done; it must not block. At most inFrames are out at a time.
func (i *Interface) Run(send func(frame []byte, done func())) {
	i.done.Go(func() {
		for b := range i.out {
			_, _ = i.tap.Write(*b) // lost like any frame, where the interface is down
			i.room.Put(b)
		}
	})
	i.done.Go(func() {
		free := make(chan []byte, inFrames)
		for range inFrames {
			free <- make([]byte, headerLen+etherHeaderLen+i.mtu+4) // a tag of the kernel's VLANs
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

// Close deletes the interface; Take must not be called any more.
func (i *Interface) Close() {
	close(i.quit)
	close(i.out)
	_ = i.tap.Close()
	if i.news != nil {
		_ = i.news.Close()
	}
	i.done.Wait()
}
