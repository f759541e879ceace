package memif

import (
	"encoding/binary"
	"net"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"urdma/ancillary"
)

// rawPeer implements the protocol without checks, so that tests can violate it anywhere.
type rawPeer struct {
	t   *testing.T
	ctl control
	mem []byte // client: its region; server: the client's region 0
	fd  int    // region memfd
	// The last ring in each direction, and our end of its interrupt.
	c2s, s2c       addRing
	c2sInt, s2cInt int
	others         []int // interrupts of the other rings
}

func (r *rawPeer) close() {
	r.ctl.conn.Close()
	closeFD(r.c2sInt)
	closeFD(r.s2cInt)
	closeFD(r.fd)
	for _, fd := range r.others {
		closeFD(fd)
	}
	if r.mem != nil {
		unix.Munmap(r.mem)
	}
}

// dialRaw connects to a server port and reads its hello.
func dialRaw(t *testing.T, path string) *rawPeer {
	t.Helper()
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	r := &rawPeer{t: t, ctl: control{conn, &ancillary.Closer{}}, fd: -1, c2sInt: -1, s2cInt: -1}
	if _, _, err := r.ctl.expect(kindHello); err != nil {
		t.Fatal(err)
	}
	return r
}

const rawLog2, rawRoom = 6, 2048

// rawRings is the number of rings in each direction for which a region of rawSize has room.
const rawRings = 2

// rawRing returns the message that offers one of a raw client's rings.
func rawRing(flags, index uint16) addRing {
	return addRing{flags: flags, index: index, offset: uint32(int(index)*2+int(flags)) * uint32(ringBytes(rawLog2)),
		log2: rawLog2}
}

// rawRegion creates the client's memory: rings, and a buffer for every slot of one ring in each direction.
func (r *rawPeer) rawRegion(size int) {
	r.t.Helper()
	fd, err := unix.MemfdCreate("raw", unix.MFD_ALLOW_SEALING|unix.MFD_CLOEXEC)
	if err != nil {
		r.t.Fatal(err)
	}
	r.fd = fd
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		r.t.Fatal(err)
	}
	unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK)
	r.mem, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		r.t.Fatal(err)
	}
	r.c2s, r.s2c = rawRing(ringC2S, 0), rawRing(0, 0)
	for i := range uint16(2 * rawRings) {
		a := rawRing(i%2, i/2)
		if ring, err := ringAt(r.mem, a.offset, a.log2); err == nil {
			ring.format()
		}
	}
}

func rawSize() int { return int(rawBuffer(2 << rawLog2)) }

// rawBuffer returns the offset of buffer i.
func rawBuffer(i int) uint32 { return uint32(2*rawRings*ringBytes(rawLog2) + i*rawRoom) }

func (r *rawPeer) ring(a addRing) *ring {
	r.t.Helper()
	x, err := ringAt(r.mem, a.offset, a.log2)
	if err != nil {
		r.t.Fatal(err)
	}
	return &x
}

// offerAll performs a client's whole handshake, with so many rings in each direction, and fails unless it
// succeeds.
func (r *rawPeer) offerAll(rings int) {
	r.t.Helper()
	r.rawRegion(rawSize())
	r.must(initMsg{version: version, name: "raw"}.encode(), -1, kindAck)
	r.must(addRegion{0, uint64(len(r.mem))}.encode(), r.fd, kindAck)
	for i := range uint16(rings) {
		r.others = append(r.others, r.c2sInt, r.s2cInt)
		r.c2sInt, _ = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
		r.s2cInt, _ = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
		r.c2s, r.s2c = rawRing(ringC2S, i), rawRing(0, i)
		r.must(r.c2s.encode(), r.c2sInt, kindAck)
		r.must(r.s2c.encode(), r.s2cInt, kindAck)
	}
	r.must(connectMsg(kindConnect, "raw"), -1, kindConnected)
}

func (r *rawPeer) must(m message, fd int, answer kind) {
	r.t.Helper()
	if err := r.ctl.ask(m, fd, answer); err != nil {
		r.t.Fatalf("%v: %v", m.kind(), err)
	}
}

// sendFrame puts one valid frame into the ring to the server.
func (r *rawPeer) sendFrame(slot int, d desc) {
	x := r.ring(r.c2s)
	x.store(uint16(slot), d)
	x.advanceHead(1)
}

// dropped waits until the other side has closed the connection, and returns its reason.
func (r *rawPeer) dropped() (reason string) {
	r.t.Helper()
	r.ctl.conn.SetReadDeadline(time.Now().Add(time.Minute))
	for {
		m, fd, err := r.ctl.recv()
		closeFD(fd)
		if err == errClosed {
			return reason
		}
		if err != nil {
			r.t.Fatalf("waiting to be dropped: %v", err)
		}
		if m.kind() == kindDisconnect {
			_, reason = m.disconnect()
		}
	}
}

// serveRaw listens as a server and accepts one client.
func serveRaw(t *testing.T, path string) (ln *net.UnixListener) {
	t.Helper()
	ln, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

func (r *rawPeer) ack() {
	r.t.Helper()
	if err := r.ctl.send(newMessage(kindAck), -1); err != nil {
		r.t.Fatal(err)
	}
}

// rawServer is how a raw server behaves.
type rawServer struct {
	says    uint16 // the highest ring number that it states in hello
	refuses uint16 // the lowest ring number that it refuses; 0: none
	// distort, if set, sends the message number at of those of talk in its way.
	distort func(r *rawPeer)
	at      int
}

// talk performs the handshake with a client, with one distorted message, as far as the client does.
func (s rawServer) talk(t *testing.T, ln *net.UnixListener) *rawPeer {
	t.Helper()
	ln.SetDeadline(time.Now().Add(time.Minute))
	conn, err := ln.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	r := &rawPeer{t: t, ctl: control{conn, &ancillary.Closer{}}, fd: -1, c2sInt: -1, s2cInt: -1}
	h := hello{name: "raw", minVersion: version, maxVersion: version, maxRegion: 255, maxC2SRing: s.says,
		maxS2CRing: s.says, maxLog2RingEntries: maxLog2Ring}
	for i, m := 0, h.encode(); ; i++ {
		if i == s.at {
			s.distort(r)
		} else if r.ctl.send(m, -1) != nil {
			return r
		}
		if m.kind() == kindConnected {
			if i < s.at {
				s.distort(r)
			}
			return r
		}
		got, fd, err := r.ctl.next()
		closeFD(fd)
		if err != nil || got.kind() == kindDisconnect {
			return r
		}
		if m = newMessage(kindAck); got.kind() == kindConnect {
			m = connectMsg(kindConnected, "raw")
		}
	}
}

// accept performs the handshake with a client, up to the refusal of a ring, and returns how many rings in
// each direction were offered.
func (s rawServer) accept(t *testing.T, ln *net.UnixListener) (r *rawPeer, rings [2]int) {
	t.Helper()
	ln.SetDeadline(time.Now().Add(time.Minute))
	conn, err := ln.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	r = &rawPeer{t: t, ctl: control{conn, &ancillary.Closer{}}, fd: -1, c2sInt: -1, s2cInt: -1}
	h := hello{name: "raw", minVersion: version, maxVersion: version, maxRegion: 255, maxC2SRing: s.says,
		maxS2CRing: s.says, maxLog2RingEntries: maxLog2Ring}
	if err := r.ctl.send(h.encode(), -1); err != nil {
		t.Fatal(err)
	}
	for {
		m, fd, err := r.ctl.next()
		if err != nil {
			t.Fatal(err)
		}
		switch m.kind() {
		case kindInit:
		case kindAddRegion:
			r.fd = fd
			if r.mem, err = mapRegion(fd, m.addRegion().size); err != nil {
				t.Fatal(err)
			}
		case kindAddRing:
			a := m.addRing()
			if s.refuses > 0 && a.index >= s.refuses {
				closeFD(fd)
				r.ctl.send(disconnectMsg("Invalid ring index"), -1)
				return r, rings
			}
			ring, in := &r.s2c, &r.s2cInt
			if a.flags == ringC2S {
				ring, in = &r.c2s, &r.c2sInt
			}
			r.others = append(r.others, *in)
			*ring, *in = a, fd
			rings[a.flags]++
		case kindConnect:
			if err := r.ctl.send(connectMsg(kindConnected, "raw"), -1); err != nil {
				t.Fatal(err)
			}
			return r, rings
		default:
			t.Fatalf("a client sent %v", m.kind())
		}
		r.ack()
	}
}

// setHead sets the client's index to any value.
func setHead(x *ring, to uint16) {
	p := (*[2]byte)(unsafe.Add(unsafe.Pointer(x.flagsHead), 2))
	binary.LittleEndian.PutUint16(p[:], to)
	atomic.LoadUint32(x.flagsHead)
}

// TestLayouts checks our copies of the kernel's and shared structures.
func TestLayouts(t *testing.T) {
	var cb iocb
	for _, c := range []struct {
		what      string
		got, want uintptr
	}{
		{"struct iocb", unsafe.Sizeof(cb), 64},
		{"aio_lio_opcode", unsafe.Offsetof(cb.opcode), 16},
		{"aio_fildes", unsafe.Offsetof(cb.fd), 20},
		{"aio_buf", unsafe.Offsetof(cb.buf), 24},
		{"aio_flags", unsafe.Offsetof(cb.flags), 56},
		{"aio_resfd", unsafe.Offsetof(cb.resfd), 60},
		{"struct io_event", unsafe.Sizeof(ioEvent{}), 32},
		{"descriptor", unsafe.Sizeof(rawDesc{}), descSize},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.what, c.got, c.want)
		}
	}
}
