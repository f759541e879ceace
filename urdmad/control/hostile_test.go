package control_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/urdmad/control"
	"urdma/verbs/abi"
)

// message makes a request that is right in form and anything in content: handles
// are small numbers, so many exist and are of the wrong kind.
func message(r *rand.Rand) []byte {
	t := abi.Type(r.IntN(64))
	if r.IntN(16) == 0 {
		t = abi.Inspect + abi.Type(r.IntN(4))
	}
	b := make([]byte, max(16, t.Size()))
	for i := 16; i+4 <= len(b); i += 4 {
		v := uint32(r.IntN(16))
		switch r.IntN(12) {
		case 0:
			v = r.Uint32()
		case 1:
			v = 1 << r.IntN(32)
		}
		binary.NativeEndian.PutUint32(b[i:], v)
	}
	switch t {
	case abi.CreateQP:
		if r.IntN(2) == 0 {
			binary.NativeEndian.PutUint32(b[20:],
				[]uint32{abi.QPTypeRC, abi.QPTypeUC, abi.QPTypeUD, abi.QPTypeXRCSend}[r.IntN(4)])
			clear(b[32:48]) // srq to source_qpn
		} else if r.IntN(2) == 0 {
			clear(b[16:48])
			binary.NativeEndian.PutUint32(b[20:], abi.QPTypeXRCRecv)
			binary.NativeEndian.PutUint32(b[36:], uint32(r.IntN(16))) // xrcd
		}
	case abi.OpenXRCD:
		binary.NativeEndian.PutUint32(b[20:], uint32(r.IntN(2))*unix.O_CREAT)
	case abi.CreateSRQ:
		binary.NativeEndian.PutUint32(b[28:], 0)
		binary.NativeEndian.PutUint32(b[32:], uint32(r.IntN(2)))
	case abi.RegMR:
		binary.NativeEndian.PutUint32(b[16:], 2)
		binary.NativeEndian.PutUint32(b[20:], uint32(r.IntN(16)))
		clear(b[24:])
		binary.NativeEndian.PutUint64(b[24:], uint64(r.IntN(1<<20)))
		binary.NativeEndian.PutUint64(b[32:], r.Uint64()>>r.IntN(64))
		binary.NativeEndian.PutUint32(b[48:], uint32(r.IntN(4)))
		binary.NativeEndian.PutUint32(b[52:], 10)
		binary.NativeEndian.PutUint64(b[56:], r.Uint64()>>r.IntN(64))
	case abi.CMConnect, abi.CMAccept, abi.CMReject:
		clear(b[24:])
		binary.NativeEndian.PutUint32(b[24:], uint32(r.IntN(8)))
		b[38], b[39] = byte(r.IntN(8)), byte(r.IntN(2))
	case abi.CMCreateID:
		binary.NativeEndian.PutUint32(b[20:], abi.PSTCP)
	case abi.CMBind, abi.CMResolveAddr:
		at := b[24:]
		if t == abi.CMResolveAddr {
			clear(at[:abi.Size[abi.Addr]()])
			at = at[abi.Size[abi.Addr]():]
		}
		if r.IntN(4) > 0 {
			us := control.AddrFrom4([4]byte{198, 18, 0, 1}, uint16(0x1b00+r.IntN(4)))
			copy(at, abi.Bytes(&us))
		}
	}
	if r.IntN(30) == 0 {
		b = b[:16+r.IntN(len(b)-15)]
	}
	binary.NativeEndian.PutUint32(b, uint32(t))
	binary.NativeEndian.PutUint32(b[4:], uint32(len(b)))
	return b
}

// request builds one message of 32-bit words behind the header.
func request(kind abi.Type, words ...uint32) []byte {
	b := make([]byte, max(16, kind.Size()))
	binary.NativeEndian.PutUint32(b, uint32(kind))
	binary.NativeEndian.PutUint32(b[4:], uint32(len(b)))
	for i, w := range words {
		binary.NativeEndian.PutUint32(b[16+4*i:], w)
	}
	return b
}

// typedRequest is the bytes of a request structure.
func typedRequest[Q any](kind abi.Type, q Q) []byte {
	copy(abi.Bytes(&q), abi.Bytes(&abi.Header{Type: kind, Length: uint32(abi.Size[Q]())}))
	return append([]byte(nil), abi.Bytes(&q)...)
}

// furnish greets and makes an object of each kind, so that handles 1 to 10 name
// a device, a domain, a channel, two queues, a queue pair, an event channel,
// three ids and a file.
func furnish(t testing.TB, c *net.UnixConn, port uint16) {
	t.Helper()
	exchange(c, hello(), []int{open(t, "/proc/self/mem")})
	pair := abi.CreateQPRequest{PD: 2, QPType: abi.QPTypeRC, SendCQ: 4, RecvCQ: 4,
		Cap: abi.QPCap{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1}}
	for _, b := range [][]byte{
		request(abi.OpenDevice, 0), request(abi.AllocPD, 1), request(abi.CreateChannel, 1), request(abi.CreateCQ, 1, 3, 16),
		typedRequest(abi.CreateQP, pair), request(abi.CMCreateChannel),
		request(abi.CMCreateID, 6, abi.PSTCP), request(abi.CMCreateID, 6, abi.PSTCP), request(abi.CMCreateID, 6, abi.PSTCP),
	} {
		if errno, ok := ask(c, b, nil); !ok || errno != 0 {
			t.Fatalf("urdmad answers %v (%v) to a good message of type %d", ok, errno, b[0])
		}
	}
	// Another client may have the port number.
	exchange(c, typedRequest(abi.CMBind, abi.CMBindRequest{ID: 7, Addr: control.AddrFrom4([4]byte{198, 18, 0, 1}, port)}),
		nil)
	exchange(c, request(abi.CMListen, 7, 2), nil)
	fd, err := unix.MemfdCreate("x", unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Ftruncate(fd, 1<<20)
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK)
	exchange(c, request(abi.AddFile), []int{fd})
}

func open(t testing.TB, path string) int {
	fd, err := unix.Open(path, unix.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// descriptorsFor are what a hostile client sends along: files of every kind.
func descriptorsFor(t testing.TB, r *rand.Rand) []int {
	var out []int
	for range r.IntN(3) {
		var fd int
		var err error
		switch r.IntN(4) {
		case 0:
			fd, err = unix.Open("/proc/self/mem", unix.O_RDWR, 0)
		case 1:
			fd, err = unix.Open("/dev/null", unix.O_RDWR, 0)
		case 2:
			if fd, err = unix.MemfdCreate("x", unix.MFD_ALLOW_SEALING); err == nil {
				err = unix.Ftruncate(fd, int64(r.IntN(100000)))
			}
		case 3:
			if fd, err = unix.MemfdCreate("x", unix.MFD_ALLOW_SEALING); err == nil {
				_ = unix.Ftruncate(fd, int64(r.IntN(100000)))
				_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fd)
	}
	return out
}

// exchange sends raw bytes and takes the answer; false when urdmad hung up.
func exchange(c *net.UnixConn, b []byte, fds []int) bool {
	_, ok := ask(c, b, fds)
	return ok
}

// ask is exchange with the errno of the answer.
func ask(c *net.UnixConn, b []byte, fds []int) (syscall.Errno, bool) {
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	_, _, err := c.WriteMsgUnix(b, oob, nil)
	for _, fd := range fds {
		unix.Close(fd)
	}
	if err != nil {
		return 0, false
	}
	in, got := make([]byte, abi.MaxMessage), make([]byte, 256)
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	n, oobn, _, _, err := c.ReadMsgUnix(in, got)
	if messages, e := unix.ParseSocketControlMessage(got[:oobn]); e == nil {
		for i := range messages {
			some, _ := unix.ParseUnixRights(&messages[i])
			for _, fd := range some {
				unix.Close(fd)
			}
		}
	}
	h, ok := abi.Decode[abi.Header](in[:min(n, abi.Size[abi.Header]())])
	return syscall.Errno(h.Status), err == nil && ok
}

func openFiles(t testing.TB) int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func hello() []byte {
	req := abi.HelloRequest{ABIVersion: abi.Version}
	req.Header = abi.Header{Type: abi.Hello, Length: uint32(abi.Size[abi.HelloRequest]())}
	return append([]byte(nil), abi.Bytes(&req)...)
}

// TestHostileMessages: control messages with anything in them, from several
// clients at once: each is answered or ends its own session, urdmad goes on, and
// when the clients are gone nothing of theirs is left.
func TestHostileMessages(t *testing.T) {
	r := start(t)
	rng := rand.New(rand.NewPCG(1, 2))
	before := openFiles(t)
	for range 40 {
		var clients []*net.UnixConn
		for range 3 {
			c, err := dial(r.socket)
			if err != nil {
				t.Fatal(err)
			}
			furnish(t, c.conn, uint16(0x1b00+len(clients)))
			clients = append(clients, c.conn)
		}
		for range 150 {
			i, m := rng.IntN(len(clients)), message(rng)
			if rng.IntN(8) == 0 {
				m = randomBatch(rng)
			}
			if !exchange(clients[i], m, descriptorsFor(t, rng)) {
				clients[i].Close()
				c, err := dial(r.socket)
				if err != nil {
					t.Fatal(err)
				}
				furnish(t, c.conn, 0)
				clients[i] = c.conn
			}
		}
		for _, c := range clients {
			c.Close()
		}
	}
	nothingLeft(t, r)
	filesClosed(t, before+2)
	if _, err := fetch(r.socket); err != nil {
		t.Errorf("urdmad doesn't answer any more: %v", err)
	}
}

// filesClosed waits until at most so many files are open: a client is no longer counted
// a moment before the last of its files is closed.
func filesClosed(t *testing.T, most int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); openFiles(t) > most; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d files are open, where %d may be", openFiles(t), most)
		}
	}
}

// nothingLeft waits until the last client has gone, and checks that nothing of theirs is
// left.
func nothingLeft(t *testing.T, r *running) {
	t.Helper()
	awaitClients(t, r, 0)
	left := make(chan [2]int)
	r.server.Workers[0].Engine.Do(func() {
		left <- [2]int{r.server.Workers[0].Engine.QPs.Len(), r.server.Workers[0].Engine.QPs.Regions.Len()}
	})
	r.server.Workers[0].Wake()
	if n := <-left; n != [2]int{} {
		t.Errorf("%d queue pairs and %d regions are left", n[0], n[1])
	}
}

// TestFirstMessage: anything but a greeting, and greetings of other versions,
// end the session or are refused.
func TestFirstMessage(t *testing.T) {
	r := start(t)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 200 {
		c, err := dial(r.socket)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, rng.IntN(300))
		for k := range b {
			b[k] = byte(rng.Uint32())
		}
		if i%2 == 0 && len(b) >= 8 {
			binary.NativeEndian.PutUint32(b, uint32(rng.IntN(48)))
			binary.NativeEndian.PutUint32(b[4:], uint32(len(b)))
		}
		exchange(c.conn, b, descriptorsFor(t, rng))
		c.conn.Close()
	}
	if _, err := fetch(r.socket); err != nil {
		t.Errorf("urdmad doesn't answer any more: %v", err)
	}
}

// randomBatch is a BATCH of messages, of which some name what others make.
func randomBatch(r *rand.Rand) []byte {
	q := abi.BatchRequest{Count: uint32(1 + r.IntN(abi.MaxBatch))}
	b := bytes.Clone(abi.Bytes(&q))
	for range q.Count {
		m := message(r)
		if at := 16 + 4*r.IntN(4); at+4 <= len(m) && r.IntN(2) == 0 {
			binary.NativeEndian.PutUint32(m[at:], abi.BatchMade+uint32(r.IntN(int(q.Count))))
		}
		b = append(b, m...)
	}
	copy(b, abi.Bytes(&abi.Header{Type: abi.Batch, Length: uint32(len(b))}))
	return b
}

// FuzzMessage takes one message of any bytes after a greeting.
func FuzzMessage(f *testing.F) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		f.Add(message(rng))
		f.Add(randomBatch(rng))
	}
	r := start(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 || len(b) > abi.MaxMessage {
			return
		}
		c, err := dial(r.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.conn.Close()
		exchange(c.conn, hello(), nil)
		exchange(c.conn, b, nil)
	})
}
