package umad

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"urdma/ancillary"
	"urdma/urdmad/attach/fabric"
	"urdma/verbs/abi"
)

// file is an open umad.
type file struct {
	s       *Server
	conn    *net.UnixConn
	device  int
	closing func(io.Closer)
	agents  [maxAgents]*agent // by id
	pkeys   bool              // headers include a P_Key index
	used    bool
}

// The ioctls (ib_user_mad.h).
const (
	ioctlRegister   = 0xc01c1b01
	ioctlUnregister = 0x40041b02
	ioctlEnablePKey = 0x00001b03
	ioctlRegister2  = 0xc0281b04
)

// maxMessage is the length of the longest message, in bytes: a MAD with RMPP and its header.
const maxMessage = 192 << 10

// serve reads messages until the program closes the file.
func (f *file) serve() error {
	_ = f.conn.SetWriteBuffer(maxMessage) // messages beyond the kernel's limit are lost
	buf, oob := make([]byte, maxMessage), ancillary.Buffer()
	for {
		n, oobn, flags, _, err := f.conn.ReadMsgUnix(buf, oob)
		reply, bad := f.descriptor(oob[:oobn])
		switch {
		case errors.Is(err, net.ErrClosed), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET),
			err == nil && n == 0:
			return nil
		case err != nil:
			return fmt.Errorf("umad: %w", err)
		case bad != nil:
			return fmt.Errorf("umad: ancillary data: %w", bad)
		case flags&unix.MSG_TRUNC != 0:
			return fmt.Errorf("umad: message longer than %d bytes", maxMessage)
		}
		if reply == nil {
			f.written(buf[:n])
			continue
		}
		err = f.control(buf[:n], reply)
		f.closing(reply)
		if err != nil {
			return err
		}
	}
}

// descriptor takes the descriptor to which an ioctl's answer goes.
func (f *file) descriptor(oob []byte) (reply *ancillary.File, err error) {
	fds, err := ancillary.Descriptors(oob)
	for _, fd := range fds {
		file := ancillary.NewFile(fd)
		if reply == nil && err == nil {
			reply = file
		} else {
			f.closing(file)
		}
	}
	return reply, err
}

// control carries out an ioctl and answers over the descriptor that came with it.
func (f *file) control(b []byte, reply *ancillary.File) error {
	m, ok := abi.Decode[abi.UmadIoctl](b)
	if !ok {
		return fmt.Errorf("umad: ioctl of %d bytes, expected %d", len(b), abi.Size[abi.UmadIoctl]())
	}
	f.s.mu.Lock()
	err := f.ioctl(m.Request, m.Argument[:])
	f.s.mu.Unlock()
	var errno syscall.Errno
	errors.As(err, &errno)
	m.Request = uint32(errno)
	// The client waits for it, with room for one message.
	_ = unix.Sendto(int(reply.Fd()), abi.Bytes(&m), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
	return nil
}

func (f *file) ioctl(request uint32, b []byte) error {
	switch request {
	case ioctlEnablePKey:
		if f.used {
			return syscall.EINVAL
		}
		f.pkeys = true
		return nil
	case ioctlRegister:
		r := registration{qp: uint32(b[20]), class: b[21], version: b[22],
			methods: [2]uint64{native.Uint64(b[4:]), native.Uint64(b[12:])},
			oui:     uint32(b[23])<<16 | uint32(b[24])<<8 | uint32(b[25]), rmpp: b[26]}
		return f.register(r, b)
	case ioctlRegister2:
		if flags := native.Uint32(b[12:]); flags&^1 != 0 { // IB_USER_MAD_USER_RMPP alone is known
			native.PutUint32(b[12:], 1)
			return syscall.EINVAL
		}
		r := registration{qp: native.Uint32(b[4:]), class: b[8], version: b[9],
			methods: [2]uint64{native.Uint64(b[16:]), native.Uint64(b[24:])}, oui: native.Uint32(b[32:]), rmpp: b[36]}
		return f.register(r, b)
	case ioctlUnregister:
		id := native.Uint32(b)
		if id >= maxAgents || f.agents[id] == nil {
			return syscall.EINVAL
		}
		f.s.unregister(f.agents[id])
		return nil
	}
	return syscall.ENOTTY
}

// register writes the new agent's ID into the ioctl's structure.
func (f *file) register(r registration, b []byte) error {
	if !r.ofVendors() {
		r.oui = 0
	}
	a, err := f.s.register(f, r)
	if err != nil {
		return err
	}
	f.used = true
	native.PutUint32(b, a.id)
	return nil
}

// header is struct ib_user_mad_hdr, which precedes a MAD.
type header struct {
	id, status       uint32
	timeout, retries uint32 // ms
	qp, qkey         uint32
	lid              uint16
	sl               byte
}

// Lengths of the header in bytes, without and with a P_Key index.
const oldHeader, newHeader = 56, 64

func (f *file) headerSize() int {
	if f.pkeys {
		return newHeader
	}
	return oldHeader
}

func parseHeader(b []byte) header {
	return header{id: native.Uint32(b), timeout: native.Uint32(b[8:]), retries: native.Uint32(b[12:]),
		qp: binary.BigEndian.Uint32(b[20:]), qkey: binary.BigEndian.Uint32(b[24:]), lid: binary.BigEndian.Uint16(b[28:]),
		sl: b[30]}
}

// bytes returns a message with this header and a MAD.
func (f *file) bytes(h *header, m []byte) []byte {
	n := f.headerSize()
	b := make([]byte, n, n+len(m))
	native.PutUint32(b, h.id)
	native.PutUint32(b[4:], h.status)
	native.PutUint32(b[16:], uint32(n+len(m)))
	binary.BigEndian.PutUint32(b[20:], h.qp)
	binary.BigEndian.PutUint32(b[24:], h.qkey)
	binary.BigEndian.PutUint16(b[28:], h.lid)
	b[30] = h.sl
	return append(b, m...)
}

// written sends a MAD. A message that the kernel's write(2) would refuse is dropped.
func (f *file) written(b []byte) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	n := f.headerSize()
	if len(b) < n+madHeader {
		return
	}
	h := parseHeader(b)
	if h.id >= maxAgents || f.agents[h.id] == nil {
		return
	}
	m := make(fabric.MAD, max(fabric.Size, len(b)-n))
	copy(m, b[n:])
	if a := f.agents[h.id]; a.sends(m) {
		if a.rmpp != 0 {
			m.SetTableLength(len(b) - n)
		}
		f.s.send(a, h, m)
	}
}

const madHeader = 24

// sends reports whether a MAD has the agent's class; an agent for either subnet management class
// may send both.
func (a *agent) sends(m fabric.MAD) bool {
	return m.Class() == a.class || m.Subnet() && (a.class == fabric.ClassSubnet || a.class == fabric.ClassDirected)
}

// generalQKey is the Q_Key of queue pair 1.
const generalQKey = 0x80010000

// receive passes an arrived MAD to the program.
func (f *file) receive(a *agent, d fabric.Delivery) {
	h := header{id: a.id, lid: d.SLID}
	if !d.MAD.Subnet() {
		h.qp, h.qkey = 1, generalQKey
	}
	f.put(f.bytes(&h, d.MAD[:d.MAD.TableLength()]))
}

// timedOut returns the head of an unanswered request to the program.
func (f *file) timedOut(a *agent, h header, m fabric.MAD) {
	h.id, h.status = a.id, uint32(syscall.ETIMEDOUT)
	f.put(f.bytes(&h, m[:madHeader]))
}

// put sends a message to the program. A program that reads too slowly, or whose socket is too
// small for the message, loses it.
func (f *file) put(b []byte) {
	raw, err := f.conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _ = unix.Sendto(int(fd), b, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil) })
}
