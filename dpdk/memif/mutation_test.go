package memif

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
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

// TestServerMutations: a server changes each number that it shares with a client, and each number of its messages.
// The client continues, or connects again.
func TestServerMutations(t *testing.T) {
	had, tries := leftovers(t), 0
	open := func(t *testing.T) (tested, func() *rawPeer) {
		path := filepath.Join(t.TempDir(), "m.sock")
		ln := serveRaw(t, path)
		t.Cleanup(func() { ln.Close() })
		p := mustOpen(t, Options{Name: "victim", SocketPath: path, Queues: 1, Ring: ringOf})
		return p, func() *rawPeer {
			r, _ := rawServer{}.accept(t, ln)
			waitLink(t, true, p)
			return r
		}
	}
	var numbers []number
	var memory []byte
	t.Run("without a change", func(t *testing.T) {
		_, accept := open(t)
		r := accept()
		numbers, memory = r.shared(), slices.Clone(r.mem)
		r.close()
	})
	for _, n := range numbers {
		changes(t, &tries, "memory", n, memory, func(t *testing.T, value []byte, when int) {
			p, accept := open(t)
			r := accept()
			turn(p)
			r.scribble(p, func() {
				x := r.ring(r.s2c)
				for i := range uint16(3) {
					x.storeLength(i, desc{length: 60})
				}
				x.setTail(3)
				r.ring(r.c2s).setTail(r.ring(r.c2s).head())
			}, n, value, when)
			if down := !p.Link(); down {
				accept().close()
			}
			r.close()
		})
	}
	t.Logf("%d changes", tries)
	nothingLeft(t, had)
}
