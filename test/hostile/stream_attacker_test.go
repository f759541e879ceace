package hostile

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"urdma/wire"
)

// streamEnv makes this program a host that attacks a tcp port: seed, the victim's address, its own, and the port
// numbers of a listener that nobody serves and of one that accepts every request.
const streamEnv = "URDMA_TEST_STREAM_ATTACKER"

// streamAttacker connects by TCP and sends wrong streams.
type streamAttacker struct {
	r              *rand.Rand
	victim         string
	self           net.TCPAddr
	flood, served  string
	lent, forbid   uint32 // STags of memory that it may write, and that it may not
	lentAt, forbAt uint64
}

var streamAttacks, streamStarts atomic.Int64 // of the whole process; streamStarts counts accepted MPA requests

// runStreamAttacker is the process; it attacks until it is killed.
func runStreamAttacker(args []string) {
	seed, _ := strconv.ParseUint(args[0], 10, 64)
	for i := range 12 {
		a := &streamAttacker{r: rand.New(rand.NewPCG(seed, uint64(i))), victim: args[1],
			self: net.TCPAddr{IP: net.ParseIP(args[2])}, flood: args[3], served: args[4]}
		kinds := []func(){a.silent, a.slow, a.hasty, a.badRequest, a.waiting}
		if i >= len(kinds) {
			kinds = []func(){a.segments}
		} else {
			kinds = kinds[i : i+1]
		}
		go func() {
			for {
				kinds[0]()
				streamAttacks.Add(1)
			}
		}()
	}
	for range time.Tick(100 * time.Millisecond) {
		fmt.Println("sent", streamAttacks.Load(), "accepted", streamStarts.Load())
	}
	os.Exit(0)
}

// dial connects; after a failure it pauses and returns nil.
func (a *streamAttacker) dial(port string) *net.TCPConn {
	d := net.Dialer{LocalAddr: &a.self, Timeout: time.Second}
	c, err := d.Dial("tcp", net.JoinHostPort(a.victim, port))
	if err != nil {
		time.Sleep(time.Millisecond)
		return nil
	}
	return c.(*net.TCPConn)
}

// leave ends a connection in one of several ways.
func (a *streamAttacker) leave(c *net.TCPConn) {
	switch a.r.IntN(4) {
	case 0:
		_ = c.SetLinger(0)
	case 1:
		_ = c.CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(time.Duration(a.r.IntN(50)) * time.Millisecond))
		_, _ = io.Copy(io.Discard, c)
	}
	_ = c.Close()
}

// silent holds connections without sending a request.
func (a *streamAttacker) silent() {
	var held []*net.TCPConn
	for range 100 {
		if c := a.dial(a.served); c != nil {
			held = append(held, c)
		}
	}
	time.Sleep(300 * time.Millisecond)
	for _, c := range held {
		a.leave(c)
	}
}

// slow sends a request byte by byte.
func (a *streamAttacker) slow() {
	c := a.dial(a.served)
	if c == nil {
		return
	}
	defer a.leave(c)
	for _, b := range a.request() {
		if _, err := c.Write([]byte{b}); err != nil {
			return
		}
		time.Sleep(time.Duration(a.r.IntN(20)) * time.Millisecond)
	}
}

// hasty connects and leaves.
func (a *streamAttacker) hasty() {
	if c := a.dial([]string{a.flood, a.served}[a.r.IntN(2)]); c != nil {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
}

func (a *streamAttacker) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(a.r.Uint32())
	}
	return b
}

// request returns a correct request.
func (a *streamAttacker) request() []byte {
	m := wire.MPA{CRC: a.r.IntN(2) == 0, Long: a.r.IntN(2) == 0, Revision: 1, IRD: uint16(a.r.IntN(64)),
		ORD: uint16(a.r.IntN(64)), PrivateData: a.bytes(a.r.IntN(200))}
	if a.r.IntN(2) == 0 {
		m.Revision, m.Enhanced = 2, true
		m.PeerToPeer, m.RTRSend, m.RTRWrite, m.RTRRead = a.r.IntN(4) == 0, a.r.IntN(2) == 0, a.r.IntN(2) == 0,
			a.r.IntN(2) == 0
	}
	m.Extension = a.r.IntN(8) == 0 // the extension that should follow then hardly ever does
	b, _ := m.Append(nil)
	return b
}

// badRequest sends a request that violates MPA.
func (a *streamAttacker) badRequest() {
	c := a.dial(a.served)
	if c == nil {
		return
	}
	defer a.leave(c)
	b := a.request()
	switch a.r.IntN(5) {
	case 0:
		b[a.r.IntN(16)] ^= 1 << a.r.IntN(8) // the key
	case 1:
		b[16], b[17] = byte(a.r.Uint32()), byte(a.r.Uint32()) // flags, markers among them, and revision
	case 2:
		binary.BigEndian.PutUint16(b[18:], uint16(a.r.Uint32())) // the length
	case 3:
		b = b[:a.r.IntN(len(b))]
	case 4:
		b = a.bytes(a.r.IntN(4000))
	}
	_, _ = c.Write(b)
}

// waiting sends a request to the listener that nobody serves.
func (a *streamAttacker) waiting() {
	if c := a.dial(a.flood); c != nil {
		_, _ = c.Write(a.request())
		time.Sleep(time.Duration(a.r.IntN(3)) * time.Millisecond)
		a.leave(c)
	}
}

// segments sends FPDUs on an accepted connection, right ones and wrong ones.
func (a *streamAttacker) segments() {
	c := a.dial(a.served)
	if c == nil {
		return
	}
	defer a.leave(c)
	asked := a.request()
	_ = c.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := c.Write(asked); err != nil || !a.accepted(c) {
		return
	}
	crc := asked[16]&0x40 != 0
	for range a.r.IntN(60) {
		b := a.fpdu(crc)
		if _, err := c.Write(b[:len(b)-a.r.IntN(len(b))*b2i(a.r.IntN(30) == 0)]); err != nil {
			return
		}
		if a.r.IntN(8) == 0 {
			time.Sleep(time.Duration(a.r.IntN(2000)) * time.Microsecond)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// accepted reads the reply, which has the offered memory's STag and address.
func (a *streamAttacker) accepted(c *net.TCPConn) bool {
	b := make([]byte, wire.MPALen)
	if _, err := io.ReadFull(c, b); err != nil {
		return false
	}
	n, err := wire.MPAFrameLen(b, true)
	if err != nil {
		return false
	}
	b = append(b, make([]byte, n-len(b))...)
	if _, err := io.ReadFull(c, b[wire.MPALen:]); err != nil {
		return false
	}
	var m wire.MPA
	if _, err := m.Parse(b, true); err != nil || m.Reject || len(m.PrivateData) < 24 {
		return false
	}
	a.lentAt, a.forbAt = binary.LittleEndian.Uint64(m.PrivateData), binary.LittleEndian.Uint64(m.PrivateData[8:])
	a.lent, a.forbid = binary.LittleEndian.Uint32(m.PrivateData[16:]), binary.LittleEndian.Uint32(m.PrivateData[20:])
	streamStarts.Add(1)
	return true
}

// place returns where a tagged segment may, or must not, be placed.
func (a *streamAttacker) place() (wire.STag, uint64) {
	switch a.r.IntN(8) {
	case 0:
		return wire.STag(a.forbid), a.forbAt + uint64(a.r.IntN(lentLen))
	case 1:
		return wire.STag(a.r.Uint32()), a.r.Uint64()
	case 2: // at the end, or beyond it
		return wire.STag(a.lent), a.lentAt + lentLen - uint64(a.r.IntN(100))
	case 3: // wraps around
		return wire.STag(a.lent), ^uint64(0) - uint64(a.r.IntN(100))
	}
	return wire.STag(a.lent), a.lentAt + uint64(a.r.IntN(lentLen/2))
}

// fpdu returns an FPDU of any kind. Few of its fields are random, otherwise none would pass the first check.
func (a *streamAttacker) fpdu(crc bool) []byte {
	size := []int{0, a.r.IntN(100), a.r.IntN(1400), a.r.IntN(60000)}[a.r.IntN(4)]
	head := make([]byte, wire.UntaggedLen, wire.UntaggedLen+size)
	var d wire.DDP
	d.Last = a.r.IntN(4) > 0
	payload := a.bytes(size)
	switch a.r.IntN(8) {
	case 0, 1, 2:
		d.Tagged, d.Op = true, wire.OpWrite
		d.STag, d.TO = a.place()
	case 3:
		d.Op, d.QN, d.MSN = wire.OpSend, wire.QueueSend, wire.MSN(1+a.r.IntN(3))
		d.MO = uint32(a.r.IntN(2) * a.r.IntN(2000))
	case 4, 5:
		var q wire.ReadRequest
		payload = make([]byte, wire.ReadRequestLen)
		q.Put(payload)
		for i := 0; i < wire.ReadRequestLen; i += 4 {
			if a.r.IntN(3) == 0 {
				binary.BigEndian.PutUint32(payload[i:], a.r.Uint32()>>a.r.IntN(32))
			}
		}
		stag, to := a.place()
		binary.BigEndian.PutUint32(payload[16:], uint32(stag))
		binary.BigEndian.PutUint64(payload[20:], to)
		d.Last, d.Op, d.QN, d.MSN = true, wire.OpReadRequest, wire.QueueReadRequest, wire.MSN(1+a.r.IntN(3))
	case 6:
		d.Tagged, d.Op = a.r.IntN(2) == 0, wire.Opcode(a.r.IntN(16))
		d.QN, d.MSN, d.MO = a.r.Uint32()>>a.r.IntN(32), wire.MSN(a.r.IntN(4)), a.r.Uint32()>>a.r.IntN(32)
		d.STag, d.TO = a.place()
	case 7:
		copy(head, a.bytes(len(head)))
		return a.framed(append(head, payload...), crc)
	}
	n := d.Put(head)
	return a.framed(append(head[:n], payload...), crc)
}

// framed makes an FPDU of a segment, rarely with a wrong length or CRC.
func (a *streamAttacker) framed(segment []byte, crc bool) []byte {
	n := len(segment)
	if a.r.IntN(40) == 0 {
		n = a.r.IntN(1 << 16)
	}
	b := binary.BigEndian.AppendUint16(nil, uint16(n))
	b = append(b, segment...)
	b = append(b, make([]byte, wire.FPDUPadding(len(segment)))...)
	sum := uint32(0)
	if crc {
		sum = wire.FPDUCRC(0, b)
	}
	if a.r.IntN(40) == 0 {
		sum ^= 1 << a.r.IntN(32)
	}
	return binary.LittleEndian.AppendUint32(b, sum)
}
