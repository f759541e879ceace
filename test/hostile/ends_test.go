package hostile

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"urdma/dpdk/memif"
	"urdma/dpdk/port"
)

// newEnd opens a wire. The kinds "packet", and "roce" for RoCEv2, have the name of a network interface, and a process
// in whose network namespace the interface of that name is the other end. The kinds "client" and "server" are the
// roles of a memif, and have its socket.
func newEnd(kind, where string) (end, error) {
	if kind == "packet" || kind == "roce" {
		name, there, _ := strings.Cut(where, ",")
		return newPacketEnd(name, there)
	}
	return newMemifEnd(kind == "server", where)
}

// packetEnd sends at one end of a wire of the kernel and receives at the other, since packets that a urdmad sends by
// a packet socket reach no other packet socket at that end. Frames of XDP reach neither end.
type packetEnd struct {
	out, in int
	buf     []byte
}

func newPacketEnd(iface, there string) (*packetEnd, error) {
	e := &packetEnd{buf: make([]byte, 1<<17)}
	var err error
	if e.out, err = packetSocket(iface); err != nil {
		return nil, err
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		fd, err := unix.Open("/proc/"+there+"/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Setns(fd, unix.CLONE_NEWNET)
		}
		if err == nil {
			e.in, err = packetSocket(iface)
		}
		done <- err
	}()
	return e, <-done
}

func packetSocket(iface string) (int, error) {
	const every = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK, every)
	if err != nil {
		return -1, err
	}
	req, err := unix.NewIfreq(iface)
	if err == nil {
		err = unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, req)
	}
	if err != nil {
		return -1, err
	}
	return fd, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: every, Ifindex: int(req.Uint32())})
}

func (e *packetEnd) hear() []byte {
	n, _, err := unix.Recvfrom(e.in, e.buf, 0)
	if err != nil || n > 1600 { // the kernel's segmentation offload has not split it yet
		return nil
	}
	return append([]byte(nil), e.buf[:n]...)
}

func (e *packetEnd) send(frame []byte) { _, _ = unix.Write(e.out, frame) }

func (e *packetEnd) spoil(*rand.Rand) bool { return false }

// memifQueues is the number of a hostile memif's queues: several, so that a victim with several workers has several
// rings; ringBytes is the size of a default ring.
const (
	memifQueues = 2
	ringBytes   = 128 + 1024*16
)

// memifEnd is the other side of a memif, which shares its rings and buffers with the victim and writes anything to
// them.
type memifEnd struct {
	port    port.Port
	queue   port.Queue
	self    *os.File // /proc/self/mem
	options memif.Options
	packets []port.Packet
	begun   time.Time
}

func newMemifEnd(server bool, socket string) (*memifEnd, error) {
	e := &memifEnd{options: memif.Options{SocketPath: socket, Server: server, Queues: memifQueues}}
	var err error
	if e.self, err = os.OpenFile("/proc/self/mem", os.O_RDWR, 0); err != nil {
		return nil, err
	}
	return e, e.open()
}

func (e *memifEnd) open() (err error) {
	if e.port != nil {
		e.port.Close()
	}
	if e.port, err = memif.Open(e.options); err != nil {
		return err
	}
	e.queue, e.packets, e.begun = e.port.Queue(0), nil, time.Now()
	return nil
}

func (e *memifEnd) hear() []byte {
	for i := range memifQueues {
		var one [1]port.Packet
		if q := e.port.Queue(i); q.Rx(one[:]) == 1 {
			f := append([]byte(nil), one[0].Data...)
			q.Free(one[:])
			return f
		}
	}
	return nil
}

func (e *memifEnd) send(frame []byte) {
	var one [1]port.Packet
	if e.queue.Alloc(one[:]) == 0 {
		return
	}
	one[0].Data = one[0].Data[:copy(one[0].Data, frame)]
	if e.queue.Tx(one[:]) == 0 {
		e.queue.Free(one[:])
	}
}

// spoil overwrites shared memory. A victim that notices closes the connection, so the wire is sometimes opened again.
func (e *memifEnd) spoil(r *rand.Rand) bool {
	if time.Since(e.begun) > 300*time.Millisecond {
		return e.open() == nil
	}
	maps := sharedMappings()
	if len(maps) == 0 || r.IntN(20) > 0 {
		return false
	}
	m := maps[r.IntN(len(maps))]
	at := 4 * r.Int64N(min(m[1], 1<<17)/4)
	if r.IntN(2) == 0 {
		at = ringBytes*r.Int64N(2*memifQueues) + 64*r.Int64N(4) // cookies, flags and indices at the beginning of a ring
	}
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], r.Uint64()>>r.IntN(64))
	_, _ = e.self.WriteAt(b[:2<<r.IntN(3)], m[0]+at)
	return true
}
