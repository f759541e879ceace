package memif

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/dpdk/port"
)

// turn makes the calls of a worker: receive, answer, free.
func turn(p tested) {
	for _, q := range p.queues {
		turnOf(q)
	}
}

func turnOf(p *queue) {
	pk := make([]port.Packet, 16)
	n := p.Rx(pk)
	for i := range pk[:n] {
		for _, b := range pk[i].Data { // read every byte: a wrong span would crash
			_ = b
		}
	}
	p.Free(pk[:n])
	n = p.Alloc(pk[:4])
	for i := range pk[:n] {
		for j := range pk[i].Data {
			pk[i].Data[j] = byte(i + j)
		}
		pk[i].Data = pk[i].Data[:100]
	}
	k := p.Tx(pk[:n])
	p.Flush()
	p.Free(pk[k:n])
	if _, armed := p.ArmRx(); armed {
		p.DisarmRx()
	}
}

func openServer(t *testing.T) (p tested, path string) { return openServerOf(t, 1) }

// openServerOf opens a server with so many queues.
func openServerOf(t *testing.T, queues int) (p tested, path string) {
	path = filepath.Join(t.TempDir(), "m.sock")
	return mustOpen(t, Options{Name: "victim", SocketPath: path, Server: true, Queues: queues, Ring: ringOf}), path
}

// stillServes checks that a port still works.
func stillServes(t *testing.T, p tested, path string) {
	t.Helper()
	c := mustOpen(t, Options{Name: "honest", SocketPath: path})
	defer c.Close()
	waitLink(t, true, c, p)
	tx, rx := make([]port.Packet, 1), make([]port.Packet, 1)
	deadline := time.Now().Add(time.Minute)
	for c.Alloc(tx) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("no buffer")
		}
	}
	tx[0].Data = tx[0].Data[:60]
	if c.Tx(tx) != 1 {
		t.Fatal("Tx took nothing")
	}
	for p.Rx(rx) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("an honest client's frame never came")
		}
	}
	p.Free(rx)
}

// lie is a violation of the protocol by a hostile peer.
type lie struct {
	name string
	do   func(r *rawPeer)
}

// ringLies are violations in shared memory.
var ringLies = []lie{
	{"region unknown", func(r *rawPeer) { r.sendFrame(0, desc{region: 1, length: 60, offset: 0}) }},
	{"region huge", func(r *rawPeer) { r.sendFrame(0, desc{region: 65535, length: 60, offset: 0}) }},
	{"offset outside", func(r *rawPeer) { r.sendFrame(0, desc{length: 60, offset: uint32(len(r.mem))}) }},
	{"offset at the edge", func(r *rawPeer) { r.sendFrame(0, desc{length: 60, offset: uint32(len(r.mem) - 59)}) }},
	{"offset wraps", func(r *rawPeer) { r.sendFrame(0, desc{length: 60, offset: 0xffffffff}) }},
	{"length huge", func(r *rawPeer) { r.sendFrame(0, desc{length: 0xffffffff, offset: rawBuffer(0)}) }},
	{"length wraps", func(r *rawPeer) { r.sendFrame(0, desc{length: 0xfffffff0, offset: 0x10 + 60}) }},
	{"chain without end", func(r *rawPeer) { r.sendFrame(0, desc{flags: descNext, length: 60, offset: rawBuffer(0)}) }},
	{"chain to nowhere", func(r *rawPeer) {
		x := r.ring(r.c2s)
		x.store(0, desc{flags: descNext, length: 60, offset: rawBuffer(0)})
		x.store(1, desc{length: 60, offset: uint32(len(r.mem))})
		x.advanceHead(2)
	}},
	{"chain all round", func(r *rawPeer) {
		x := r.ring(r.c2s)
		for i := range 1 << rawLog2 {
			x.store(uint16(i), desc{flags: descNext, length: 60, offset: rawBuffer(i)})
		}
		x.advanceHead(1 << rawLog2)
	}},
	{"head too far", func(r *rawPeer) { setHead(r.ring(r.c2s), 1<<rawLog2+1) }},
	{"head far", func(r *rawPeer) { setHead(r.ring(r.c2s), 0x8000) }},
	{"head back", func(r *rawPeer) { setHead(r.ring(r.c2s), 0xffff) }},
	{"head back after frames", func(r *rawPeer) {
		r.sendFrame(0, desc{length: 60, offset: rawBuffer(0)})
		r.sendFrame(1, desc{length: 60, offset: rawBuffer(0)})
		for r.ring(r.c2s).tail() != 2 {
			time.Sleep(time.Millisecond)
		}
		setHead(r.ring(r.c2s), 1)
	}},
	{"posted head too far", func(r *rawPeer) { setHead(r.ring(r.s2c), 1<<rawLog2+1) }},
	{"posted offset outside", func(r *rawPeer) {
		x := r.ring(r.s2c)
		x.store(0, desc{length: rawRoom, offset: uint32(len(r.mem))})
		x.advanceHead(1)
	}},
	{"posted length huge", func(r *rawPeer) {
		x := r.ring(r.s2c)
		x.store(0, desc{length: 0xffffffff, offset: rawBuffer(1)})
		x.advanceHead(1)
	}},
	{"posted region unknown", func(r *rawPeer) {
		x := r.ring(r.s2c)
		x.store(0, desc{region: 7, length: rawRoom})
		x.advanceHead(1)
	}},
	{"message on a working link", func(r *rawPeer) { r.ctl.send(newMessage(kindAck), -1) }},
}

// TestHostileRings: an honest handshake, then violations in shared memory, in the only ring in each direction
// and in the second of two. Each must end the link and be counted, and the port must serve the next peer.
func TestHostileRings(t *testing.T) {
	for rings := 1; rings <= rawRings; rings++ {
		for _, c := range ringLies {
			t.Run(fmt.Sprintf("%s, of %d rings", c.name, rings), func(t *testing.T) {
				p, path := openServerOf(t, rings)
				r := dialRaw(t, path)
				defer r.close()
				r.offerAll(rings)
				waitLink(t, true, p)
				done := make(chan struct{})
				go func() {
					defer close(done)
					c.do(r)
				}()
				deadline := time.Now().Add(time.Minute)
				for p.Link() {
					turn(p)
					if time.Now().After(deadline) {
						t.Fatal("the link survived")
					}
				}
				<-done
				turn(p)
				t.Logf("peer was told: %q", r.dropped())
				if s := p.Stats(); s.RxErrors == 0 {
					t.Errorf("no error was counted: %+v", s)
				}
				stillServes(t, p, path)
			})
		}
	}
}

// TestBadFramesAreSkipped: frames with a useless length do not end the link.
func TestBadFramesAreSkipped(t *testing.T) {
	p, path := openServer(t)
	r := dialRaw(t, path)
	defer r.close()
	r.offerAll(1)
	waitLink(t, true, p)
	for i, n := range []uint32{0, 13, 1515, 2000, 60} {
		r.sendFrame(i, desc{length: n, offset: rawBuffer(i)})
	}
	pk := make([]port.Packet, 8)
	if n := p.Rx(pk); n != 1 || len(pk[0].Data) != 60 {
		t.Fatalf("Rx gave %d packets, want the one of 60 bytes", n)
	}
	p.Free(pk[:1])
	if s := p.Stats(); s.RxErrors != 4 {
		t.Errorf("RxErrors %d, want 4", s.RxErrors)
	}
	if tail := r.ring(r.c2s).tail(); tail != 5 {
		t.Errorf("slots given back: %d, want 5", tail)
	}
}

// TestChains: small buffers are chained in both directions.
func TestChains(t *testing.T) {
	p, path := openServer(t)
	r := dialRaw(t, path)
	defer r.close()
	r.offerAll(1)
	waitLink(t, true, p)
	in := r.ring(r.c2s)
	for i := range 1000 {
		r.mem[int(rawBuffer(i/600))+i%600] = byte(i)
	}
	in.store(0, desc{flags: descNext, length: 600, offset: rawBuffer(0)})
	in.store(1, desc{length: 400, offset: rawBuffer(1)})
	in.advanceHead(2)
	pk := make([]port.Packet, 8)
	if n := p.Rx(pk); n != 1 || len(pk[0].Data) != 1000 {
		t.Fatalf("Rx gave %d packets", n)
	}
	for i, b := range pk[0].Data {
		if b != byte(i) {
			t.Fatalf("byte %d is %d", i, b)
		}
	}
	p.Free(pk[:1])
	out := r.ring(r.s2c)
	for i := range 4 {
		out.store(uint16(i), desc{length: 512, offset: rawBuffer(10 + i)})
	}
	out.advanceHead(4)
	if n := p.Alloc(pk[:1]); n != 1 || len(pk[0].Data) != 1514 {
		t.Fatalf("Alloc gave %d", n)
	}
	pk[0].Data = pk[0].Data[:1200]
	for i := range pk[0].Data {
		pk[0].Data[i] = byte(i * 3)
	}
	if p.Tx(pk[:1]) != 1 || out.tail() != 3 {
		t.Fatalf("1200 bytes in buffers of 512 took %d slots", out.tail())
	}
	for i := range 1200 {
		if got := r.mem[int(rawBuffer(10+i/512))+i%512]; got != byte(i*3) {
			t.Fatalf("byte %d is %d", i, got)
		}
	}
	for i, want := range []desc{{flags: 1, length: 512}, {flags: 1, length: 512}, {length: 176}} {
		if d := out.load(uint16(i)); d.flags != want.flags || d.length != want.length {
			t.Errorf("slot %d: %+v, want %+v", i, d, want)
		}
	}
	// One slot of 512 bytes is left: another 1200 bytes do not fit, and we keep the frame.
	p.Alloc(pk[:1])
	pk[0].Data = pk[0].Data[:1200]
	if p.Tx(pk[:1]) != 0 {
		t.Error("Tx took a frame the ring has no room for")
	}
	p.Free(pk[:1])
}

var goodInit = initMsg{version: version, name: "raw"}

// null returns a descriptor that is neither memory nor an interrupt; it is closed at the end of the test.
func (r *rawPeer) null() int {
	f, err := os.Open("/dev/null")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { f.Close() })
	return int(f.Fd())
}

// handshakeLies are violations on the control socket.
var handshakeLies = []lie{
	{"wrong version", func(r *rawPeer) { i := goodInit; i.version = 0x300; r.ctl.send(i.encode(), -1) }},
	{"wrong id", func(r *rawPeer) { i := goodInit; i.id = 9; r.ctl.send(i.encode(), -1) }},
	{"ip mode", func(r *rawPeer) { i := goodInit; i.mode = 1; r.ctl.send(i.encode(), -1) }},
	{"region first", func(r *rawPeer) { r.ctl.send(addRegion{0, 4096}.encode(), -1) }},
	{"short message", func(r *rawPeer) { r.ctl.conn.Write([]byte{3, 0}) }},
	{"long message", func(r *rawPeer) { r.ctl.conn.Write(make([]byte, 4000)) }},
	{"empty message", func(r *rawPeer) { r.ctl.conn.Write(nil); r.ctl.conn.Write([]byte{}) }},
	{"unknown kind", func(r *rawPeer) { r.ctl.send(newMessage(77), -1) }},
	{"region without fd", func(r *rawPeer) {
		r.must(goodInit.encode(), -1, kindAck)
		r.ctl.send(addRegion{0, 4096}.encode(), -1)
	}},
	{"region of /dev/null", func(r *rawPeer) {
		r.must(goodInit.encode(), -1, kindAck)
		r.ctl.send(addRegion{0, 4096}.encode(), r.null())
	}},
	{"region too small", func(r *rawPeer) {
		r.rawRegion(4096)
		r.must(goodInit.encode(), -1, kindAck)
		r.ctl.send(addRegion{0, 8192}.encode(), r.fd)
	}},
	{"region of no bytes", func(r *rawPeer) {
		r.rawRegion(4096)
		r.must(goodInit.encode(), -1, kindAck)
		r.ctl.send(addRegion{0, 0}.encode(), r.fd)
	}},
	{"region enormous", func(r *rawPeer) {
		r.rawRegion(4096)
		r.must(goodInit.encode(), -1, kindAck)
		r.ctl.send(addRegion{0, 1 << 63}.encode(), r.fd)
	}},
	{"region not sealed", func(r *rawPeer) {
		r.fd, _ = unix.MemfdCreate("raw", unix.MFD_ALLOW_SEALING)
		unix.Ftruncate(r.fd, 4096)
		r.must(goodInit.encode(), -1, kindAck)
		r.ctl.send(addRegion{0, 4096}.encode(), r.fd)
	}},
	{"region read-only", func(r *rawPeer) {
		r.fd, _ = unix.MemfdCreate("raw", unix.MFD_ALLOW_SEALING)
		unix.Ftruncate(r.fd, 4096)
		unix.FcntlInt(uintptr(r.fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_WRITE)
		r.must(goodInit.encode(), -1, kindAck)
		r.ctl.send(addRegion{0, 4096}.encode(), r.fd)
	}},
	{"region index 5", func(r *rawPeer) {
		r.rawRegion(4096)
		r.must(goodInit.encode(), -1, kindAck)
		r.ctl.send(addRegion{5, 4096}.encode(), r.fd)
	}},
	{"ring without interrupt", func(r *rawPeer) {
		r.must(goodInit.encode(), -1, kindAck)
		r.ctl.send(addRing{flags: ringC2S, log2: 6}.encode(), -1)
	}},
	{"interrupt is a file", func(r *rawPeer) {
		r.must(goodInit.encode(), -1, kindAck)
		r.ctl.send(addRing{flags: ringC2S, log2: 6}.encode(), r.null())
	}},
	{"connect without rings", func(r *rawPeer) {
		r.must(goodInit.encode(), -1, kindAck)
		r.ctl.send(connectMsg(kindConnect, "x"), -1)
	}},
	{"ring too long", func(r *rawPeer) { r.offerRings(15, 0, 0) }},
	{"ring outside", func(r *rawPeer) { r.offerRings(6, uint32(rawSize()-8), 0) }},
	{"ring askew", func(r *rawPeer) { r.offerRings(6, 4, 0) }},
	{"ring in no region", func(r *rawPeer) { r.offerRings(6, 0, 3) }},
	{"ring without cookie", func(r *rawPeer) { r.offerRings(6, 64, 0) }},
	{"a ring more than we have queues", func(r *rawPeer) {
		r.must(goodInit.encode(), -1, kindAck)
		in, _ := unix.Eventfd(0, unix.EFD_CLOEXEC)
		defer unix.Close(in)
		r.must(rawRing(ringC2S, 0).encode(), in, kindAck)
		r.ctl.send(rawRing(ringC2S, 1).encode(), in)
	}},
	{"more rings than there can be", func(r *rawPeer) {
		r.must(goodInit.encode(), -1, kindAck)
		in, _ := unix.Eventfd(0, unix.EFD_CLOEXEC)
		defer unix.Close(in)
		for i := range uint16(maxQueues) {
			r.must(rawRing(0, i).encode(), in, kindAck)
		}
		r.ctl.send(rawRing(0, maxQueues).encode(), in)
	}},
	{"second ring first", func(r *rawPeer) {
		r.must(goodInit.encode(), -1, kindAck)
		in, _ := unix.Eventfd(0, unix.EFD_CLOEXEC)
		defer unix.Close(in)
		r.ctl.send(rawRing(0, 1).encode(), in)
	}},
	{"hang up", func(r *rawPeer) { r.ctl.conn.CloseWrite() }},
}

// TestHostileHandshake: control messages a server must refuse.
func TestHostileHandshake(t *testing.T) {
	for _, c := range handshakeLies {
		t.Run(c.name, func(t *testing.T) {
			p, path := openServer(t)
			r := dialRaw(t, path)
			defer r.close()
			c.do(r)
			t.Logf("peer was told: %q", r.dropped())
			turn(p)
			if p.Link() {
				t.Error("link is up")
			}
			stillServes(t, p, path)
		})
	}
}

// offerRings performs a handshake with the given rings; dropped reads the server's answer.
func (r *rawPeer) offerRings(log2 uint8, offset uint32, region uint16) {
	r.rawRegion(rawSize())
	r.must(initMsg{version: version}.encode(), -1, kindAck)
	r.must(addRegion{0, uint64(len(r.mem))}.encode(), r.fd, kindAck)
	r.c2sInt, _ = unix.Eventfd(0, unix.EFD_CLOEXEC)
	r.s2cInt, _ = unix.Eventfd(0, unix.EFD_CLOEXEC)
	r.must(addRing{flags: ringC2S, log2: log2, offset: offset, region: region}.encode(), r.c2sInt, kindAck)
	r.must(addRing{log2: log2, offset: offset, region: region}.encode(), r.s2cInt, kindAck)
	r.ctl.send(connectMsg(kindConnect, "raw"), -1)
}

// TestHostileServer: violations by a server, in the only ring in each direction and in the second of two.
func TestHostileServer(t *testing.T) {
	for _, c := range []lie{
		{"tail too far", func(r *rawPeer) { r.ring(r.s2c).setTail(5000) }},
		{"tail back", func(r *rawPeer) { r.ring(r.s2c).setTail(0xffff) }},
		{"length beyond the buffer", func(r *rawPeer) {
			x := r.ring(r.s2c)
			x.storeLength(0, desc{length: 0xffffffff})
			x.setTail(1)
		}},
		{"chain without end", func(r *rawPeer) {
			x := r.ring(r.s2c)
			x.storeLength(0, desc{flags: descNext, length: 64})
			x.setTail(1)
		}},
		{"done with frames never sent", func(r *rawPeer) { r.ring(r.c2s).setTail(0x8000) }},
		{"done with frames backwards", func(r *rawPeer) { r.ring(r.c2s).setTail(0xfff0) }},
	} {
		for rings := 1; rings <= 2; rings++ {
			t.Run(fmt.Sprintf("%s, of %d rings", c.name, rings), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "m.sock")
				ln := serveRaw(t, path)
				p := mustOpen(t, Options{Name: "victim", SocketPath: path, Queues: rings, Ring: ringOf})
				server := rawServer{says: uint16(rings - 1)}
				r, _ := server.accept(t, ln)
				defer r.close()
				waitLink(t, true, p)
				turn(p)
				c.do(r)
				deadline := time.Now().Add(time.Minute)
				for p.Link() {
					for range 50 {
						turn(p)
					}
					if time.Now().After(deadline) {
						t.Fatal("the link survived")
					}
				}
				if s := p.Stats(); s.RxErrors == 0 {
					t.Errorf("no error was counted: %+v", s)
				}
				r2, _ := server.accept(t, ln) // the client connects again by itself
				defer r2.close()
				waitLink(t, true, p)
			})
		}
	}
}

// TestScribbler: a peer that writes random data everywhere, all the time, never crashes or stops us.
func TestScribbler(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, seed))
	p, path := openServerOf(t, rawRings)
	stop := time.Now().Add(2 * time.Second)
	links := 0
	for time.Now().Before(stop) {
		r := dialRaw(t, path)
		r.offerAll(rawRings)
		waitLink(t, true, p)
		links++
		head := 2 * rawRings * ringBytes(rawLog2)
		for i := 0; p.Link() && i < 3000; i++ {
			switch rng.IntN(4) {
			case 0:
				r.ring(r.c2s).advanceHead(uint16(rng.IntN(4)))
				r.ring(r.s2c).advanceHead(uint16(rng.IntN(4)))
			case 1:
				at := ringHeader + rng.IntN(head-ringHeader)
				r.mem[at] = byte(rng.Uint32() & 3)
			default:
				at := rng.IntN(2*rawRings)*ringBytes(rawLog2) + ringHeader + rng.IntN(1<<rawLog2)*descSize + 8
				r.mem[at+1] = byte(rng.Uint32())
			}
			turn(p)
		}
		if !p.Link() {
			r.dropped() // a moment later; before that no other peer is accepted
		}
		r.close()
		for p.Link() {
			turn(p)
		}
	}
	t.Logf("%d links, stats %+v", links, p.Stats())
	stillServes(t, p, path)
}

// TestPunchedRegion: F_SEAL_SHRINK does not keep a peer from removing the pages of its memory. They read as zeros then.
func TestPunchedRegion(t *testing.T) {
	p, path := openServer(t)
	r := dialRaw(t, path)
	r.offerAll(1)
	waitLink(t, true, p)
	for i := range 100 {
		mode := uint32(unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE)
		if err := unix.Fallocate(r.fd, mode, int64(i%2*4096), int64(len(r.mem))); err != nil {
			t.Fatal(err)
		}
		if err := unix.Ftruncate(r.fd, 0); err != unix.EPERM {
			t.Fatal("truncated:", err)
		}
		r.sendFrame(i%64, desc{length: 60, offset: rawBuffer(0)})
		turn(p)
	}
	r.close()
	waitLink(t, false, p)
	stillServes(t, p, path)
}

// TestEventfdTrap: a peer fills its interrupt's counter, makes it blocking, and claims to sleep. A plain
// write would block the worker for ever.
func TestEventfdTrap(t *testing.T) {
	p, path := openServer(t)
	r := dialRaw(t, path)
	defer r.close()
	r.offerAll(1)
	waitLink(t, true, p)
	full := [8]byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	for _, fd := range []int{r.c2sInt, r.s2cInt} {
		unix.SetNonblock(fd, false)
	}
	unix.Write(r.s2cInt, full[:])
	r.ring(r.s2c).maskInterrupt(false)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			turn(p)
			p.Flush()
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the worker hangs in an interrupt")
	}
}

// TestEventfdInterrupts: real eventfds, as net_memif passes them, wake both
// ways.
func TestEventfdInterrupts(t *testing.T) {
	p, path := openServer(t)
	r := dialRaw(t, path)
	defer r.close()
	r.offerAll(1)
	waitLink(t, true, p)
	r.ring(r.s2c).maskInterrupt(false)
	turn(p)
	var b [8]byte
	for round := range 200 {
		unix.Read(r.s2cInt, b[:])
		p.toWake = 1 // as after Tx
		p.Flush()
		if n, err := unix.Read(r.s2cInt, b[:]); n != 8 {
			t.Fatalf("round %d: Flush did not signal the peer: %v", round, err)
		}
	}
	for range 5 {
		fd, armed := p.ArmRx()
		if !armed || r.ring(r.c2s).masked() {
			t.Fatal("not armed")
		}
		if pollIn(fd, 0) {
			t.Fatal("fd readable at rest")
		}
		unix.Write(r.c2sInt, kickByte[:])
		if !pollIn(fd, time.Minute) {
			t.Fatal("the peer's signal does not show")
		}
		if n := testing.AllocsPerRun(1, p.DisarmRx); n > 0 {
			t.Errorf("DisarmRx makes %v allocations", n)
		}
		if pollIn(fd, 0) || !r.ring(r.c2s).masked() {
			t.Fatal("DisarmRx left the fd readable or interrupts on")
		}
	}
}

// pollIn waits for a descriptor; signals of the Go runtime do not end the wait.
func pollIn(fd int, limit time.Duration) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		if n, err := unix.Poll(p, int(limit.Milliseconds())); err != unix.EINTR {
			return n > 0
		}
	}
}
