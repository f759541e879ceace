package test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/test/lab"
	"urdma/test/programtest"
	"urdma/verbs/abi"
)

// relay passes messages and descriptors between programs and a urdmad. It looks at whatever urdmad says, on its control
// socket and on each socket that it gives a program, and may tell one lie about it.
type relay struct {
	t         *testing.T
	path      string
	urdmad    string
	listener  *net.UnixListener
	hears     func(message) // nil: nobody
	falsehood               // the lie; none if it has no name

	mu    sync.Mutex
	heard map[string]int // messages by their kind
	done  chan struct{}  // the program has ended
}

// message describes one that urdmad has sent: the number-th of its kind.
type message struct {
	kind          string
	number, bytes int
	fds           int
	memory        bool // one of its descriptors is memory
}

func startRelay(t *testing.T, urdmad string) *relay {
	t.Helper()
	r := &relay{t: t, urdmad: urdmad, path: filepath.Join(t.TempDir(), "relay.sock"), heard: map[string]int{},
		done: make(chan struct{})}
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: r.path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	r.listener = l
	return r
}

// serve takes the program's connections to urdmad, which it sends over a socket, and joins each of its connections to
// the relay with one of them.
func (r *relay) serve(program int) {
	oob := make([]byte, 256)
	_, n, _, _, err := unix.Recvmsg(program, oob[128:], oob[:128], unix.MSG_CMSG_CLOEXEC)
	unix.Close(program)
	if err != nil || n == 0 {
		return // it has ended
	}
	for _, up := range rightsIn(oob[:n]) {
		client, err := r.listener.AcceptUnix()
		if err != nil {
			unix.Close(up)
			continue
		}
		r.join(r.connection(up), client, "")
	}
}

func rightsIn(oob []byte) []int {
	c, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(c) == 0 {
		return nil
	}
	fds, _ := unix.ParseUnixRights(&c[0])
	return fds
}

// join passes messages both ways until one of the sockets is closed. kind is the kind of urdmad's messages; "": they
// are answers, each of a kind of its own.
func (r *relay) join(urdmad, client *net.UnixConn, kind string) {
	go r.pass(urdmad, client, func(body []byte, fds []int) ([]byte, []int, int) { return r.change(kind, body, fds) })
	go r.pass(client, urdmad, nil)
}

func (r *relay) pass(from, to *net.UnixConn, change func(body []byte, fds []int) ([]byte, []int, int)) {
	defer from.Close()
	defer to.Close()
	buf, oob := make([]byte, 1<<17), make([]byte, 4096)
	for {
		n, oobn, _, _, err := from.ReadMsgUnix(buf, oob)
		if err != nil || n == 0 {
			return
		}
		fds := rightsIn(oob[:oobn])
		body, owned, copies := buf[:n], fds, 1
		r.interpose(abi.Type(nativeWord(body)), fds, change != nil)
		if change != nil {
			body, fds, copies = change(body, fds)
		}
		var rights []byte
		if len(fds) > 0 {
			rights = unix.UnixRights(fds...)
		}
		for range copies {
			_, _, err = to.WriteMsgUnix(body, rights, nil)
		}
		for _, fd := range owned {
			unix.Close(fd)
		}
		if err != nil {
			return
		}
	}
}

// interpose puts the relay between the two ends of each event socket that a message hands over.
func (r *relay) interpose(of abi.Type, fds []int, fromUrdmad bool) {
	for i, fd := range fds {
		if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || kind != unix.SOCK_SEQPACKET {
			continue
		}
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			r.t.Error(err)
			return
		}
		given, ours := r.connection(fd), r.connection(pair[0])
		fds[i] = pair[1]
		if fromUrdmad {
			r.join(given, ours, fmt.Sprintf("event after %v", of))
		} else {
			r.join(ours, given, "answer elsewhere")
		}
	}
}

// connection takes ownership of a socket.
func (r *relay) connection(fd int) *net.UnixConn {
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		r.t.Fatal(err)
	}
	return c.(*net.UnixConn)
}

// change is what becomes of a message of urdmad, and how often it is sent.
func (r *relay) change(kind string, body []byte, fds []int) ([]byte, []int, int) {
	if kind == "" {
		kind = "answer"
		if t := abi.Type(nativeWord(body)); t.Size() > 0 {
			kind = t.String()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	number := r.heard[kind]
	r.heard[kind]++
	if r.hears != nil {
		r.hears(message{kind, number, len(body), len(fds), len(memoryOf(fds)) > 0})
	}
	if kind != r.kind || number != r.lie.answer {
		return body, fds, 1
	}
	if r.lie.scribbles {
		for _, fd := range memoryOf(fds) {
			r.scribble(fd)
		}
		return body, fds, 1
	}
	if r.lie.twice {
		return body, fds, 2
	}
	body, fds = r.lie.change(body, fds)
	return body, fds, 1
}

// memoryOf returns which of the descriptors are memory.
func memoryOf(fds []int) (memory []int) {
	for _, fd := range fds {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Size > 0 {
			memory = append(memory, fd)
		}
	}
	return memory
}

// scribble changes the memory that urdmad shares, for a tenth of a second or longer: words here and there, or one word
// of each entry of a ring.
func (r *relay) scribble(fd int) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		r.t.Error(err)
		return
	}
	mem, err := unix.Mmap(fd, 0, int(st.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		r.t.Error(err)
		return
	}
	go func() {
		defer unix.Munmap(mem)
		value, column, entries := falseWords[rand.IntN(len(falseWords))].value, rand.IntN(8)*4, rand.IntN(2) == 0
		for range 100 {
			select {
			case <-r.done:
				return
			case <-time.After(time.Millisecond):
			}
			var used []int
			for at := 0; at+32 <= len(mem); at += 32 {
				if n := setWords(mem[at : at+32]); n >= 4 && entries {
					used = append(used, at+column) // the head of a ring has fewer
				} else if n > 0 && !entries {
					used = append(used, at+rand.IntN(8)*4)
				}
			}
			if !entries && len(used) > 0 {
				i := rand.IntN(len(used))
				used = used[i : i+1]
			}
			for _, at := range used {
				binary.NativeEndian.PutUint32(mem[at:], value(nativeWord(mem[at:])))
			}
		}
	}()
}

// setWords returns how many words are not 0.
func setWords(b []byte) (n int) {
	for ; len(b) >= 4; b = b[4:] {
		if nativeWord(b) != 0 {
			n++
		}
	}
	return n
}

func nativeWord(b []byte) uint32 {
	if len(b) < 4 {
		return 0
	}
	return binary.NativeEndian.Uint32(b)
}

// lies are all that can be told, by the kind of the message and what is wrong with it.
type lies map[string][]falsehood

// falsehood is a lie about a message of this kind.
type falsehood struct {
	kind string
	lie
}

// add adds those about a message that urdmad has sent.
func (l lies) add(m message) {
	add := func(what string, all ...lie) {
		for _, one := range all {
			one.answer = m.number
			l[m.kind+what] = append(l[m.kind+what], falsehood{m.kind, one})
		}
	}
	add("", liesAbout(m.number, m.bytes, m.fds)...)
	if m.memory {
		add(", memory", lie{name: "memory changes", scribbles: true})
	}
	if !strings.HasPrefix(m.kind, "event") {
		return
	}
	add(", twice", lie{name: "comes twice", twice: true})
	for other := range uint32(17) { // the types of rdma_cm's events
		add(", type", lie{name: fmt.Sprintf("%d is of type %d", m.number, other),
			change: func(body []byte, fds []int) ([]byte, []int) {
				binary.NativeEndian.PutUint32(body, other)
				return body, fds
			}})
	}
}

// TestUrdmadLiesToAll: what TestUrdmadLies has for libibverbs, for the rest of the library: rdma_cm, rsockets, and what
// urdmad says through calls of libc; and for memory that urdmad shares.
func TestUrdmadLiesToAll(t *testing.T) {
	if lab.Core() {
		t.Skip("needs what is attached to urdmad; URDMA_DAEMON names one without")
	}
	library := preloaded(t)
	binary := programtest.Compile(t, filepath.Join(t.TempDir(), "lies"), "testdata/lies/main.c", "-lrdmacm", "-libverbs",
		"-lpthread")
	names, err := exec.Command(binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "urdma.json")
	if err := os.WriteFile(config, []byte(`{"ports": [{"vdev": "loopback", "ipv4_address": "198.18.0.1/24", `+
		`"transport": "ib"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	d := startReal(t, "--config", config)
	for _, name := range strings.Fields(string(names)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			transport := []string{"iwarp", "ib", "roce"}[rand.IntN(3)]
			if name == "management" {
				transport = "ib" // no other devices are shown with files for it
			}
			all, honest := lies{}, startRelay(t, d.Socket)
			honest.hears = all.add
			if status, err := honest.run(library, binary, name, transport); err != nil {
				t.Fatalf("%s, %v", status, err)
			}
			drawn := 5
			if os.Getenv("URDMA_LONG") != "" {
				drawn = 30 * len(all)
			}
			first := rand.IntN(1 << 20)
			ends, kinds := map[string]int{}, slices.Sorted(maps.Keys(all))
			for i := range drawn {
				kind := all[kinds[(first+i)%len(kinds)]]
				r := startRelay(t, d.Socket)
				r.falsehood = kind[rand.IntN(len(kind))]
				status, err := r.run(library, binary, name, transport)
				ends[status]++
				if err != nil {
					t.Errorf("%s, %s: %s: %v", transport, r.kind, r.lie.name, err)
				} else if testing.Verbose() {
					t.Logf("%s, %s: %s: %s", transport, r.kind, r.lie.name, status)
				}
			}
			t.Logf("%d lies of %d kinds told; the program's status: %v", drawn, len(kinds), ends)
		})
	}
}

const (
	quiet = 3 * time.Second // a program that computes nothing for so long waits for what a lying urdmad never does
	busy  = 30              // seconds of computation, after which a program counts as one that loops
)

// run runs a case, and returns its exit status or "waits", and an error if it crashed, looped, or had no errno value.
func (r *relay) run(library, binary, name, transport string) (string, error) {
	c := exec.Command("setarch", "-R", binary, name)
	c.Env = append(os.Environ(), "URDMA_SOCKET="+r.path, "URDMAD="+r.urdmad, "URDMA_TRANSPORT="+transport,
		"ASAN_OPTIONS=detect_leaks=0", "LD_PRELOAD="+library)
	var said programtest.Output
	c.Stdout, c.Stderr = &said, &said
	defer close(r.done)
	defer r.listener.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	go r.serve(pair[0])
	theirs := os.NewFile(uintptr(pair[1]), "relay")
	c.ExtraFiles = []*os.File{theirs}
	err = c.Start()
	theirs.Close()
	if err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	used, since := uint64(0), time.Now()
	for {
		select {
		case err := <-ended:
			code := c.ProcessState.ExitCode()
			if code < 0 || code > 1 || r.lie.name == "" && code != 0 || strings.Contains(said.String(), "runtime error") {
				return strconv.Itoa(code), fmt.Errorf("%v\n%s", err, said.String())
			}
			return strconv.Itoa(code), nil
		case <-time.After(20 * time.Millisecond):
		}
		now := ticks(c.Process.Pid)
		if now > used+1 {
			used, since = now, time.Now()
		}
		if loops := now > busy*100; loops || r.lie.name != "" && time.Since(since) > quiet {
			_ = c.Process.Kill()
			<-ended
			if loops {
				return "loops", fmt.Errorf("loops\n%s", said.String())
			}
			return "waits", nil
		}
	}
}

// ticks returns how long a process has computed, in hundredths of a second.
func ticks(pid int) (sum uint64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	for i, field := range strings.Fields(rest) {
		if i == 11 || i == 12 { // utime, stime: proc_pid_stat(5)
			n, _ := strconv.ParseUint(field, 10, 64)
			sum += n
		}
	}
	return sum
}

// preloaded is what the programs preload: in long runs the library with sanitizers, and their runtimes first.
func preloaded(t *testing.T) string {
	t.Helper()
	plain := preload(t)
	if os.Getenv("URDMA_LONG") == "" {
		return plain
	}
	if out, err := exec.Command("flock", filepath.Join(root, "build/sanitized.lock"), "make", "-s", "-C", root,
		"build/sanitized/liburdma.so").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var files []string
	for _, name := range []string{"libasan.so", "libubsan.so"} {
		path, _ := exec.Command("gcc", "-print-file-name="+name).Output()
		files = append(files, strings.TrimSpace(string(path)))
	}
	return strings.Join(append(files, filepath.Join(filepath.Dir(plain), "sanitized/liburdma.so")), ":")
}
