package umad

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/urdmad/attach/fabric"
	"urdma/verbs/abi"
)

// mutationStride makes a short test try only each nth mutation: a prime number, so that each kind has its turn.
const mutationStride = 17

// message is one that a program sends over its open umad: a MAD, or an ioctl with its descriptor.
type message struct {
	b     []byte
	ioctl bool
	fds   int  // descriptors that come with it
	ends  bool // it ends the session
}

// messages are valid messages, in the order in which a program sends them; the first registers agent 0.
func messages() []message {
	ioctl := func(request uint32, argument []byte) message {
		m := abi.UmadIoctl{Request: request}
		copy(m.Argument[:], argument)
		return message{b: slices.Clone(abi.Bytes(&m)), ioctl: true, fds: 1}
	}
	first, second := make([]byte, 28), make([]byte, 40)
	first[21], first[22] = fabric.ClassSubnet, 1
	second[4], second[8], second[9], second[16], second[32] = 1, vendor, 1, 1<<fabric.MethodGet, 7
	write := func(id uint32, lid uint16, m fabric.MAD) message {
		b := make([]byte, newHeader)
		native.PutUint32(b, id)
		native.PutUint32(b[8:], 60000)
		binary.BigEndian.PutUint16(b[28:], lid)
		return message{b: append(b, m...)}
	}
	return []message{ioctl(ioctlEnablePKey, nil), ioctl(ioctlRegister, first), ioctl(ioctlRegister2, second),
		write(0, 0x20, request(fabric.ClassSubnet, fabric.MethodGet, nodeInfo, 1)),
		write(1, 0x20, request(vendor, fabric.MethodGet, 0, 2)), ioctl(ioctlUnregister, []byte{1})}
}

// mutations are changes to each field of a message, to its length and its descriptors.
func (m *message) mutations() (list []message) {
	add := func(change func(b []byte) []byte) {
		c := *m
		c.b = change(slices.Clone(m.b))
		c.ends = m.ioctl && len(c.b) != len(m.b)
		list = append(list, c)
	}
	for at := 0; at+4 <= min(len(m.b), newHeader+madHeader+24); at += 4 {
		was := native.Uint32(m.b[at:])
		for _, v := range []uint32{0, 1, 2, 31, 32, was + 1, was - 1, was ^ 1<<31, 1 << 16, 1 << 31, math.MaxUint32,
			ioctlRegister, ioctlRegister2, ioctlUnregister, ioctlEnablePKey} {
			add(func(b []byte) []byte { native.PutUint32(b[at:], v); return b })
		}
		for i := range 4 {
			for _, v := range []byte{0, 1, 3, 7, 0x20, 0x30, 0x7f, 0x80, 0x81, 0xff} {
				add(func(b []byte) []byte { b[at+i] = v; return b })
			}
		}
	}
	for _, n := range []int{1, 4, oldHeader, newHeader, newHeader + madHeader - 1, newHeader + madHeader, len(m.b) - 1} {
		add(func(b []byte) []byte { return b[:min(n, len(b))] })
	}
	for _, n := range []int{1, 4, 5000, maxMessage - len(m.b)} {
		add(func(b []byte) []byte { return append(b, make([]byte, n)...) })
	}
	for n := range 4 {
		list = append(list, message{m.b, m.ioctl && n > 0, n, n > 0 && !m.ioctl})
	}
	return list
}

// say sends a message, and waits for the answer if it is an ioctl.
func (p *program) say(m *message) {
	p.t.Helper()
	var oob []byte
	answers, theirs := -1, -1
	if m.fds > 0 {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			p.t.Fatal(err)
		}
		answers, theirs = fds[0], fds[1]
		defer unix.Close(answers)
		oob = unix.UnixRights(slices.Repeat([]int{theirs}, m.fds)...)
	}
	_, _, err := p.conn.WriteMsgUnix(m.b, oob, nil)
	if theirs >= 0 {
		unix.Close(theirs)
	}
	if m.ends {
		return
	}
	if err != nil {
		p.t.Fatal(err)
	}
	if m.ioctl {
		b := make([]byte, 100)
		if n, err := unix.Read(answers, b); err != nil || n != abi.Size[abi.UmadIoctl]() {
			p.t.Errorf("an ioctl is answered by %d bytes, %v", n, err)
		}
	}
}

// mutate sends a program's messages, message i with change k instead of it, before it or after it.
func mutate(t *testing.T, s *Server, witness *program, i, k, when int) {
	p := open(t, s, 0, false)
	list := messages()
	changed := list[i].mutations()[k]
	list = slices.Concat(list[:i+when/2], []message{changed}, list[i+(when+1)/2:])
	for n := range list {
		if p.say(&list[n]); list[n].ends {
			break
		}
	}
	if !changed.ends {
		select { // other messages don't end the session
		case err := <-p.done:
			t.Fatalf("the session has ended: %v", err)
		default:
		}
		p.conn.Close()
	}
	select {
	case err := <-p.done:
		if (err != nil) != changed.ends {
			t.Errorf("the session ends with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the session goes on")
	}
	s.mu.Lock()
	if len(s.agents) != 1 {
		t.Errorf("%d agents are left, expected that of another program", len(s.agents))
	}
	s.mu.Unlock()
	witness.write(0, 0x20, 60000, request(fabric.ClassSubnet, fabric.MethodGet, nodeInfo, 7))
	if h, m := witness.read(); h.id != 0 || h.status != 0 || lower(m) != 7 || m.Method() != 0x81 {
		t.Errorf("another program has %+v %x", h, m[:24])
	}
	p.nothingFor(witness)
}

// nothingFor checks that a program has received nothing that it did not request.
func (p *program) nothingFor(other *program) {
	p.t.Helper()
	_ = other.conn.SetReadDeadline(time.Now().Add(-time.Second))
	n, err := other.conn.Read(make([]byte, maxMessage))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		p.t.Errorf("another program has got %d bytes, %v", n, err)
	}
}

// TestMutations changes each field of each message that a program sends over an open umad, its length and its
// descriptors. The changed message is sent instead of the message, before it and after it. The session must continue
// unless the message is impossible, ioctls must be answered, another program must get its own answers and no others,
// and no resources may remain.
func TestMutations(t *testing.T) {
	s := subnet(t)
	witness := open(t, s, 1, false)
	witness.ioctl(ioctlEnablePKey, nil)
	witness.agent(fabric.ClassSubnet, 0)
	tries, had := 0, descriptors(t)
	for i, m := range messages() {
		for k := range m.mutations() {
			for when := range 3 {
				if tries++; os.Getenv("URDMA_LONG") == "" && tries%mutationStride != 0 {
					continue
				}
				t.Run(fmt.Sprintf("%d/%d %d", i, k, when), func(t *testing.T) { mutate(t, s, witness, i, k, when) })
				if t.Failed() {
					return
				}
			}
		}
	}
	t.Logf("%d changes", tries)
	for end := time.Now().Add(patience); descriptors(t) > had; time.Sleep(time.Millisecond) { // the last are being closed
		if time.Now().After(end) {
			t.Fatalf("%d descriptors are open, and were %d", descriptors(t), had)
		}
	}
}

// descriptors returns the number of open descriptors of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
