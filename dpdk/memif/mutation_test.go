package memif

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mutationStride makes a test try only each nth mutation: a prime number above 3, so that each kind has its turn.
func mutationStride() int {
	if os.Getenv("URDMA_LONG") != "" {
		return 5
	}
	return 41
}

// number is a number in a message or in shared memory.
type number struct {
	name     string
	at, size int
}

// values returns new values for a number: the bounds of its type and of the memif's numbers, and the values next to
// the right one.
func (n number) values(b []byte) (list [][]byte) {
	var was [8]byte
	copy(was[:], b[n.at:][:n.size])
	old := binary.LittleEndian.Uint64(was[:])
	for _, v := range []uint64{0, 1, 2, 3, 4, 8, 15, 16, 63, 64, 65, 128, 255, 256, 1514, 1515, rawRoom, old + 1, old - 1,
		old ^ 1<<(8*n.size-1), uint64(rawSize()), uint64(rawSize()) - 59, uint64(rawBuffer(1)), 1<<15 - 1, 1 << 15, 1<<16 - 1,
		maxRegionBytes, maxRegionBytes + 1, 1 << 31, math.MaxUint32, math.MaxUint32 - 15, 1 << 63, math.MaxUint64} {
		c := make([]byte, 8)
		binary.LittleEndian.PutUint64(c, v)
		list = append(list, c[:n.size])
	}
	return list
}

// shared returns the numbers of a ring in each direction: its header, and the slots that are used first.
func (r *rawPeer) shared() (list []number) {
	for _, ring := range []addRing{r.c2s, r.s2c} {
		at := int(ring.offset)
		list = append(list, number{"cookie", at, 4}, number{"flags", at + 4, 2}, number{"head", at + 6, 2},
			number{"tail", at + 64, 2})
		for slot := range 3 {
			d := at + ringHeader + slot*descSize
			list = append(list, number{"flags of a slot", d, 2}, number{"region", d + 2, 2}, number{"length", d + 4, 4},
				number{"offset", d + 8, 4})
		}
	}
	return list
}

// fields has the numbers of a client's control messages, by kind.
var fields = map[kind][]number{
	kindInit:      {{"kind", 0, 2}, {"version", 2, 2}, {"id", 4, 4}, {"mode", 8, 1}, {"secret", 9, 8}, {"name", 33, 1}},
	kindAddRegion: {{"kind", 0, 2}, {"index", 2, 2}, {"size", 4, 8}},
	kindAddRing: {{"kind", 0, 2}, {"flags", 2, 2}, {"index", 4, 2}, {"region", 6, 2}, {"offset", 8, 4}, {"slots", 12, 1},
		{"private header", 13, 2}},
	kindConnect: {{"kind", 0, 2}, {"name", 2, 1}},
}

// changes tries each change in turn, in a short test a part of them; each at one of three times, see when.
func changes(t *testing.T, tries *int, name string, n number, b []byte, do func(t *testing.T, value []byte, when int)) {
	for k, v := range n.values(b) {
		for when := range 3 {
			if *tries++; *tries%mutationStride() == 0 {
				t.Run(fmt.Sprintf("%s, %s at %d, %d, %d", name, n.name, n.at, k, when), func(t *testing.T) { do(t, v, when) })
			}
		}
	}
}

// scribble sends frames in both directions, and changes a number before they arrive, when they have arrived, or when
// they have been processed.
func (r *rawPeer) scribble(p tested, frames func(), n number, value []byte, when int) {
	errors := p.Stats().RxErrors
	for step := range 3 {
		if when == step {
			copy(r.mem[n.at:], value)
		}
		if step == 0 {
			frames()
		} else {
			turn(p)
		}
	}
	turn(p)
	if s := p.Stats(); !p.Link() && s.RxErrors == errors {
		r.t.Errorf("the link has ended, and no error was counted: %+v", s)
	}
}

// leftovers returns the number of mapped regions of peers, and of open descriptors.
func leftovers(t *testing.T) [2]int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return [2]int{strings.Count(string(maps), "/memfd:"), len(fds)}
}

// nothingLeft waits until no more regions and descriptors are left than before.
func nothingLeft(t *testing.T, had [2]int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		now := leftovers(t)
		if now[0] <= had[0] && now[1] <= had[1] {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%v regions and descriptors, there were %v", now, had)
		}
	}
}

// TestMutations: a client changes each number that it shares with a server, and each number and descriptor of its
// messages. A link that ends because of that counts as an error. The next client is served, and no resources of the
// one before remain.
func TestMutations(t *testing.T) {
	p, path := openServer(t)
	stillServes(t, p, path)
	waitLink(t, false, p)
	had, tries := leftovers(t), 0
	link := func(t *testing.T) *rawPeer {
		r := dialRaw(t, path)
		r.offerAll(1)
		waitLink(t, true, p)
		return r
	}
	first := link(t)
	numbers, memory := first.shared(), slices.Clone(first.mem)
	first.close()
	turnUntilDown(t, p)
	for _, n := range numbers {
		changes(t, &tries, "memory", n, memory, func(t *testing.T, value []byte, when int) {
			r := link(t)
			r.scribble(p, func() {
				for i := range 3 {
					r.sendFrame(i, desc{length: 60, offset: rawBuffer(i)})
					r.ring(r.s2c).store(uint16(i), desc{length: rawRoom, offset: rawBuffer(10 + i)})
				}
				r.ring(r.s2c).advanceHead(3)
			}, n, value, when)
			r.close()
			turnUntilDown(t, p)
		})
	}
	messages := []message{initMsg{version: version, name: "raw"}.encode(), addRegion{0, uint64(rawSize())}.encode(),
		rawRing(ringC2S, 0).encode(), rawRing(0, 0).encode(), connectMsg(kindConnect, "raw")}
	for i := range messages {
		m := &messages[i]
		do := func(t *testing.T, n number, value []byte, when int) {
			changed := *m
			copy(changed[n.at:], value)
			say(t, p, path, slices.Concat(messages[:i+when/2], []message{changed}, messages[i+(when+1)/2:]))
		}
		for _, n := range fields[m.kind()] {
			changes(t, &tries, m.kind().String(), n, m[:], func(t *testing.T, value []byte, when int) { do(t, n, value, when) })
		}
	}
	t.Logf("%d changes", tries)
	nothingLeft(t, had)
	stillServes(t, p, path)
}

// say sends messages from a client, each with the descriptor of its kind, and closes the connection.
func say(t *testing.T, p tested, path string, messages []message) {
	r := dialRaw(t, path)
	defer r.close()
	r.rawRegion(rawSize())
	r.c2sInt, _ = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	for _, m := range messages {
		fd := map[kind]int{kindAddRegion: r.fd, kindAddRing: r.c2sInt}[m.kind()]
		if fd == 0 {
			fd = -1
		}
		if r.ctl.send(m, fd) != nil {
			break // the server has closed the connection
		}
	}
	_ = r.ctl.conn.CloseWrite()
	for closed := false; !closed; turn(p) {
		_ = r.ctl.conn.SetReadDeadline(time.Now().Add(time.Minute))
		_, fd, err := r.ctl.recv()
		closeFD(fd)
		if closed = err != nil; errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
	turnUntilDown(t, p)
}

// turnUntilDown lets a port take turns until its link is down and another peer may connect.
func turnUntilDown(t *testing.T, p tested) {
	t.Helper()
	for end := time.Now().Add(time.Minute); p.Link() || p.busy.Load(); turn(p) {
		if time.Now().After(end) {
			t.Fatal("the link is up for a minute after its peer has left")
		}
	}
}

// victim is a client with one or two queues, and the socket of its server.
type victim struct {
	tested
	ln     *net.UnixListener
	server rawServer
}

func openVictim(t *testing.T, queues int) *victim {
	path := filepath.Join(t.TempDir(), "m.sock")
	ln := serveRaw(t, path)
	t.Cleanup(func() { ln.Close() })
	return &victim{mustOpen(t, Options{Name: "victim", SocketPath: path, Queues: queues, Ring: ringOf}), ln,
		rawServer{says: uint16(queues - 1)}}
}

// accept returns a server that keeps the protocol.
func (v *victim) accept(t *testing.T) *rawPeer {
	r, _ := v.server.accept(t, v.ln)
	waitLink(t, true, v.tested)
	return r
}

// TestServerMutations: a server changes each number that it shares with a client. The client continues, or connects
// again.
func TestServerMutations(t *testing.T) {
	had, tries := leftovers(t), 0
	for queues := 1; queues <= 2; queues++ {
		var numbers []number
		var memory []byte
		t.Run("without a change", func(t *testing.T) {
			r := openVictim(t, queues).accept(t)
			numbers, memory = r.shared(), slices.Clone(r.mem)
			r.close()
		})
		for _, n := range numbers {
			changes(t, &tries, "memory", n, memory, func(t *testing.T, value []byte, when int) {
				v := openVictim(t, queues)
				r := v.accept(t)
				turn(v.tested)
				r.scribble(v.tested, func() {
					x := r.ring(r.s2c)
					for i := range uint16(3) {
						x.storeLength(i, desc{length: 60})
					}
					x.setTail(3)
					r.ring(r.c2s).setTail(r.ring(r.c2s).head())
				}, n, value, when)
				if down := !v.Link(); down {
					v.accept(t).close()
				}
				r.close()
			})
		}
	}
	t.Logf("%d changes", tries)
	nothingLeft(t, had)
}

// serverFields has the numbers of a server's control messages, by kind.
var serverFields = map[kind][]number{
	kindHello: {{"kind", 0, 2}, {"name", 2, 1}, {"lowest version", 34, 2}, {"highest version", 36, 2}, {"regions", 38, 2},
		{"rings to the client", 40, 2}, {"rings to the server", 42, 2}, {"slots", 44, 1}},
	kindAck:       {{"kind", 0, 2}},
	kindConnected: {{"kind", 0, 2}, {"name", 2, 1}, {"name's end", 33, 1}},
}

// distorted returns ways to send a message: with other numbers or another length, twice, not at all, and with
// descriptors of nothing that was asked for.
func distorted(m message) (ways map[string]func(r *rawPeer)) {
	ways = map[string]func(r *rawPeer){
		"nothing": func(r *rawPeer) { r.ctl.send(m, -1) },
		"twice":   func(r *rawPeer) { r.ctl.send(m, -1); r.ctl.send(m, -1) },
		"an end":  func(r *rawPeer) { r.ctl.conn.Close() },
		"half":    func(r *rawPeer) { r.ctl.conn.CloseWrite() },
	}
	for _, n := range serverFields[m.kind()] {
		for i, v := range n.values(m[:]) {
			ways[fmt.Sprintf("%s, value %d", n.name, i)] = func(r *rawPeer) {
				changed := m
				copy(changed[n.at:], v)
				r.ctl.send(changed, -1)
			}
		}
	}
	for _, n := range []int{0, 1, 2, messageSize - 1, messageSize + 1, 4000} {
		ways[fmt.Sprintf("%d bytes", n)] = func(r *rawPeer) { r.ctl.conn.Write(append(m[:], make([]byte, 4000)...)[:n]) }
	}
	for _, n := range []int{1, 2, 4, 5, 200} {
		ways[fmt.Sprintf("with %d descriptors", n)] = func(r *rawPeer) {
			fds := slices.Repeat([]int{r.null()}, n)
			r.ctl.conn.WriteMsgUnix(m[:], unix.UnixRights(fds...), nil)
		}
	}
	return ways
}

// TestServerMessages: a server distorts each message of the handshake. The client makes a link nevertheless or connects
// again, and nothing is left of the attempt.
func TestServerMessages(t *testing.T) {
	had, tries := leftovers(t), 0
	for queues := 1; queues <= 2; queues++ {
		for step := range 5 + 2*queues { // hello, answers to init, region and rings, connected, and one behind that
			m := newMessage(kindAck)
			switch step {
			case 0:
				h := hello{name: "raw", minVersion: version, maxVersion: version, maxRegion: 255, maxC2SRing: uint16(queues - 1),
					maxS2CRing: uint16(queues - 1), maxLog2RingEntries: maxLog2Ring}
				m = h.encode()
			case 3 + 2*queues:
				m = connectMsg(kindConnected, "raw")
			}
			ways := distorted(m)
			for _, name := range slices.Sorted(maps.Keys(ways)) {
				if tries++; tries%mutationStride() != 0 {
					continue
				}
				t.Run(fmt.Sprintf("%d queues, message %d, %s", queues, step, name), func(t *testing.T) {
					v := openVictim(t, queues)
					v.server.distort, v.server.at = ways[name], step
					v.server.talk(t, v.ln).close()
					turnUntilDown(t, v.tested)
					v.accept(t).close()
				})
			}
		}
	}
	t.Logf("%d changes", tries)
	nothingLeft(t, had)
}

// TestServerScribbler: a server that writes anything into the rings while a client reads them never crashes or stops
// it.
func TestServerScribbler(t *testing.T) {
	const seed = 12
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, seed))
	v := openVictim(t, 2)
	links := 0
	for stop := time.Now().Add(2 * time.Second); time.Now().Before(stop); links++ {
		r := v.accept(t)
		over, done := make(chan struct{}), make(chan struct{})
		random := rand.New(rand.NewPCG(rng.Uint64(), 1))
		go func() {
			defer close(done)
			rings := []*ring{r.ring(r.s2c), r.ring(r.c2s)}
			for {
				select {
				case <-over:
					return
				default:
				}
				x := rings[random.IntN(2)]
				switch random.IntN(1 << 18) {
				case 0:
					x.setTail(uint16(random.Uint32()))
				case 1:
					x.storeLength(uint16(random.Uint32()), desc{length: random.Uint32() >> random.IntN(32)})
				case 2:
					x.maskInterrupt(random.IntN(2) == 0)
				case 3:
					x.storeLength(x.tail(), desc{flags: descNext, length: 64})
				default: // what a server may do, except that it changes slots that it has given away
					x.storeLength(uint16(random.Uint32()), desc{length: uint32(random.IntN(1515))})
					if x.tail() != x.head() {
						x.setTail(x.tail() + 1)
					}
				}
			}
		}()
		for i := 0; v.Link() && i < 3000; i++ {
			turn(v.tested)
		}
		close(over)
		<-done
		r.close()
		turnUntilDown(t, v.tested)
	}
	t.Logf("%d links, stats %+v", links, v.Stats())
	v.accept(t).close()
}
