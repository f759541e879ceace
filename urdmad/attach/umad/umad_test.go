package umad

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/urdmad/attach/fabric"
	"urdma/verbs/abi"
)

// patience is the longest wait for something that must happen.
const patience = time.Minute

// subnet makes a server with two ports.
func subnet(t *testing.T) *Server {
	t.Helper()
	ports := []fabric.Port{{Name: "a", GUID: 1, LID: 0x10, MTU: 1500, Up: true},
		{Name: "b", GUID: 2, LID: 0x20, MTU: 1500, Up: true}}
	s, err := New("host", func() []fabric.Port { return ports }, nil, func(int, fabric.Shown) {})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// program is a program that has opened a umad.
type program struct {
	t    *testing.T
	conn *net.UnixConn
	done chan error
}

func open(t *testing.T, s *Server, device int, manager bool) *program {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs, ours := unixConn(t, fds[0]), unixConn(t, fds[1])
	p := &program{t: t, conn: ours, done: make(chan error, 1)}
	go func() {
		p.done <- s.Serve(theirs, device, manager, func(f io.Closer) { f.Close() })
		theirs.Close()
	}()
	t.Cleanup(func() { ours.Close() })
	return p
}

func unixConn(t *testing.T, fd int) *net.UnixConn {
	t.Helper()
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	return c.(*net.UnixConn)
}

// ioctl sends a program's ioctl in liburdma.so's form.
func (p *program) ioctl(request uint32, argument []byte) syscall.Errno {
	p.t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	answers := unixConn(p.t, fds[0])
	defer answers.Close()
	m := abi.UmadIoctl{Request: request}
	copy(m.Argument[:], argument)
	_, _, err = p.conn.WriteMsgUnix(abi.Bytes(&m), unix.UnixRights(fds[1]), nil)
	_ = unix.Close(fds[1])
	if err != nil {
		p.t.Fatal(err)
	}
	_ = answers.SetReadDeadline(time.Now().Add(patience))
	b := make([]byte, 100)
	n, err := answers.Read(b)
	if err != nil {
		p.t.Fatal(err)
	}
	got, ok := abi.Decode[abi.UmadIoctl](b[:n])
	if !ok {
		p.t.Fatalf("answer of %d bytes", n)
	}
	copy(argument, got.Argument[:])
	return syscall.Errno(got.Request)
}

// register registers an agent for a class and its methods.
func (p *program) register(class byte, methods uint64) (id uint32, errno syscall.Errno) {
	p.t.Helper()
	b := make([]byte, 28)
	native.PutUint64(b[4:], methods)
	b[20], b[21], b[22], b[25] = 1, class, 1, 7 // OUI 7
	if class == fabric.ClassSubnet || class == fabric.ClassDirected {
		b[20] = 0
	}
	errno = p.ioctl(ioctlRegister, b)
	return native.Uint32(b), errno
}

func (p *program) agent(class byte, methods uint64) uint32 {
	p.t.Helper()
	id, errno := p.register(class, methods)
	if errno != 0 {
		p.t.Fatalf("class %#x: %v", class, errno)
	}
	return id
}

// write sends a MAD.
func (p *program) write(id uint32, lid uint16, timeout uint32, m []byte) {
	p.t.Helper()
	b := make([]byte, newHeader)
	native.PutUint32(b, id)
	native.PutUint32(b[8:], timeout)
	binary.BigEndian.PutUint16(b[28:], lid)
	if _, err := p.conn.Write(append(b, m...)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *program) read() (h header, m fabric.MAD) {
	p.t.Helper()
	_ = p.conn.SetReadDeadline(time.Now().Add(patience))
	b := make([]byte, maxMessage)
	n, err := p.conn.Read(b)
	if err != nil || n < newHeader {
		p.t.Fatalf("%d bytes, %v", n, err)
	}
	if said := native.Uint32(b[16:]); int(said) != n {
		p.t.Errorf("a message of %d bytes says it has %d", n, said)
	}
	h = parseHeader(b)
	h.status = native.Uint32(b[4:])
	return h, b[newHeader:n]
}

func request(class, method byte, attribute uint16, id uint64) fabric.MAD {
	m := make(fabric.MAD, fabric.Size)
	m[0], m[1], m[2], m[3] = 1, class, 1, method
	m.SetTransaction(id)
	binary.BigEndian.PutUint16(m[16:], attribute)
	if class >= firstOUIClass && class <= lastOUIClass {
		m[39] = 7
	}
	return m
}

const nodeInfo, vendor = 0x11, 0x32

// An answer reaches the agent that sent the request, with the lower half of its transaction ID, and no other.
func TestAnswers(t *testing.T) {
	s := subnet(t)
	p, other := open(t, s, 0, false), open(t, s, 0, false)
	for _, q := range []*program{p, other} {
		if errno := q.ioctl(ioctlEnablePKey, nil); errno != 0 {
			t.Fatal(errno)
		}
	}
	first, id := p.agent(vendor, 0), p.agent(fabric.ClassSubnet, 0)
	if first != 0 || id != 1 {
		t.Errorf("agents %d and %d", first, id)
	}
	other.agent(fabric.ClassSubnet, 0)
	p.write(id, 0x20, 1000, request(fabric.ClassSubnet, fabric.MethodGet, nodeInfo, 0xaaaa0000_12345678))
	h, m := p.read()
	if h.id != id || h.status != 0 || h.lid != 0x20 || h.qp != 0 || len(m) != fabric.Size || lower(m) != 0x12345678 ||
		m.Method() != 0x81 {
		t.Errorf("%+v %x", h, m[:24])
	}
	other.write(0, 0x10, 1000, request(fabric.ClassSubnet, fabric.MethodGet, nodeInfo, 7))
	if h, m := other.read(); h.lid != 0x10 || lower(m) != 7 {
		t.Errorf("%+v %x", h, m[:24])
	}
}

// Programs on two ports exchange messages of a vendor class, as ibping does.
func TestRequests(t *testing.T) {
	s := subnet(t)
	client, server := open(t, s, 0, false), open(t, s, 1, false)
	for _, p := range []*program{client, server} {
		p.ioctl(ioctlEnablePKey, nil)
	}
	c, v := client.agent(vendor, 0), server.agent(vendor, 1<<fabric.MethodGet)
	client.write(c, 0x20, 60000, request(vendor, fabric.MethodGet, 0, 5))
	h, m := server.read()
	if h.id != v || h.lid != 0x10 || h.qp != 1 || h.qkey != generalQKey || m.Method() != fabric.MethodGet {
		t.Fatalf("%+v %x", h, m[:24])
	}
	m[3] |= fabric.MethodResponse
	server.write(v, h.lid, 0, m)
	if h, m := client.read(); h.id != c || h.lid != 0x20 || lower(m) != 5 || m.Method() != 0x81 {
		t.Errorf("%+v %x", h, m[:24])
	}
	// The port itself refuses requests of another vendor, and those for which there is no agent.
	m = request(vendor, fabric.MethodGet, 0, 6)
	m[39] = 8
	client.write(c, 0x20, 60000, m)
	if _, m := client.read(); m[5] != 0x0c || lower(m) != 6 {
		t.Errorf("%x", m[:24])
	}
}

// An unanswered request returns to its sender.
func TestTimeout(t *testing.T) {
	p := open(t, subnet(t), 0, false)
	p.ioctl(ioctlEnablePKey, nil)
	id := p.agent(fabric.ClassSubnet, 0)
	p.write(id, 0x77, 1, request(fabric.ClassSubnet, fabric.MethodGet, nodeInfo, 9))
	if h, m := p.read(); h.id != id || h.status != uint32(syscall.ETIMEDOUT) || len(m) != madHeader || lower(m) != 9 {
		t.Errorf("%+v %x", h, m)
	}
}

func TestIoctls(t *testing.T) {
	s := subnet(t)
	p := open(t, s, 0, false)
	const wants = 1 << fabric.MethodGet
	id := p.agent(vendor, wants)
	for name, got := range map[string]syscall.Errno{
		"P_Keys after an agent": p.ioctl(ioctlEnablePKey, nil),
		"the same requests":     second(p.register(vendor, wants)),
		"a queue pair of another class": func() syscall.Errno {
			b := make([]byte, 28)
			b[20], b[21], b[22] = 1, fabric.ClassSubnet, 1
			return p.ioctl(ioctlRegister, b)
		}(),
		"an agent there isn't": p.ioctl(ioctlUnregister, []byte{9, 0, 0, 0}),
		"an unknown flag": func() syscall.Errno {
			b := make([]byte, 40)
			b[4], b[8], b[9], b[12] = 1, vendor, 1, 0x80
			return p.ioctl(ioctlRegister2, b)
		}(),
	} {
		if got != syscall.EINVAL {
			t.Errorf("%s: %v, expected EINVAL", name, got)
		}
	}
	if got := p.ioctl(0x1b77, nil); got != syscall.ENOTTY {
		t.Errorf("an unknown ioctl: %v", got)
	}
	if _, got := open(t, s, 1, false).register(vendor, wants); got != 0 {
		t.Errorf("the same requests of another port: %v", got)
	}
	if got := p.ioctl(ioctlUnregister, native.AppendUint32(nil, id)); got != 0 {
		t.Error(got)
	}
	b := make([]byte, 40) // the newer structure
	native.PutUint32(b[4:], 1)
	b[8], b[9] = vendor, 1
	native.PutUint64(b[16:], wants)
	if got := p.ioctl(ioctlRegister2, b); got != 0 || native.Uint32(b) != id {
		t.Errorf("%v, agent %d", got, native.Uint32(b))
	}
	for range maxAgents - 1 {
		p.agent(vendor, 0)
	}
	if _, got := p.register(vendor, 0); got != syscall.ENOMEM {
		t.Errorf("one agent too many: %v", got)
	}
}

func second(_ uint32, errno syscall.Errno) syscall.Errno { return errno }

// A message that is invalid for a umad is lost or ends that file, but no other program's. Programs that don't read
// delay nobody.
func TestStrangers(t *testing.T) {
	s := subnet(t)
	good := open(t, s, 0, false)
	good.ioctl(ioctlEnablePKey, nil)
	id := good.agent(fabric.ClassSubnet, 0)
	for _, b := range [][]byte{{1}, make([]byte, oldHeader), make([]byte, newHeader+fabric.Size),
		{0: 255, newHeader + fabric.Size: 0}} {
		if _, err := good.conn.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	silent := open(t, s, 0, false)
	silent.ioctl(ioctlEnablePKey, nil)
	silent.agent(fabric.ClassSubnet, 0)
	for range 3000 {
		silent.write(0, 0x10, 0, request(fabric.ClassSubnet, fabric.MethodGet, nodeInfo, 1))
	}
	bad := open(t, s, 0, false)
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, _, err := bad.conn.WriteMsgUnix([]byte{1, 2, 3}, unix.UnixRights(int(f.Fd())), nil); err != nil {
		t.Fatal(err)
	}
	if err := <-bad.done; err == nil {
		t.Error("an ioctl of three bytes is none")
	}
	good.write(id, 0x10, 0, request(fabric.ClassSubnet, fabric.MethodGet, nodeInfo, 3))
	if _, m := good.read(); lower(m) != 3 {
		t.Errorf("%x", m[:24])
	}
}

// A subnet manager's open file makes its port the subnet manager's until it is closed, and other programs are
// notified.
func TestManager(t *testing.T) {
	var mu sync.Mutex
	var shown fabric.Shown
	changed := make(chan struct{}, 100)
	s, err := New("host", func() []fabric.Port { return []fabric.Port{{GUID: 1, LID: 0x10, Up: true}} }, nil,
		func(_ int, v fabric.Shown) {
			mu.Lock()
			defer mu.Unlock()
			shown = v
			changed <- struct{}{}
		})
	if err != nil {
		t.Fatal(err)
	}
	const isSM = 2
	p := open(t, s, 0, true)
	for _, want := range []uint32{isSM, 0} {
		for {
			mu.Lock()
			got := shown.CapabilityMask & isSM
			mu.Unlock()
			if got == want {
				break
			}
			<-changed
		}
		p.conn.Close()
	}
	if err := <-p.done; err != nil && !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
