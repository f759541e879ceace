package hostile

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/urdmad/control/controltest"
	"urdma/verbs"
	"urdma/verbs/abi"
)

// hostileEnv makes this program a hostile client: seed, socket, its own address, key and address of memory offered by
// others, and the first host's address.
const hostileEnv = "URDMA_TEST_HOSTILE"

func TestMain(m *testing.M) {
	if s := os.Getenv(hostileEnv); s != "" {
		newIntruder(strings.Fields(s)).run()
		os.Exit(0)
	}
	if s := os.Getenv(attackerEnv); s != "" {
		runAttacker(strings.Fields(s))
	}
	if s := os.Getenv(streamEnv); s != "" {
		runStreamAttacker(strings.Fields(s))
	}
	os.Exit(m.Run())
}

// intruder is a hostile client. It attacks until it is killed.
type intruder struct {
	r       *rand.Rand
	socket  string
	address string
	first   string   // the address of the first host
	words   []uint64 // values worth writing
	self    *os.File // /proc/self/mem
	args    []string // its own command line
}

func newIntruder(args []string) *intruder {
	number := func(i int) uint64 { n, _ := strconv.ParseUint(args[i], 10, 64); return n }
	self, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	return &intruder{r: rand.New(rand.NewPCG(number(0), 9)), socket: args[1], address: args[2], first: args[5], self: self,
		args:  args,
		words: []uint64{0, 1, 2, 3, 4, 1 << 31, ^uint64(0), 65536, number(3), number(4), number(4) + 65500}}
}

// run is one life of the client. The next life begins in the same process: execve(2) closes everything of the last
// one, as its death would, and a client that has overwritten its own indices can't get lost among them.
func (x *intruder) run() {
	next := x.r.Uint64()
	again := func() {
		x.args[0] = strconv.FormatUint(next, 10)
		_ = os.Setenv(hostileEnv, strings.Join(x.args, " "))
		_ = unix.Exec("/proc/self/exe", os.Args, os.Environ())
	}
	time.AfterFunc(time.Duration(20+x.r.IntN(400))*time.Millisecond, again)
	switch x.r.IntN(6) {
	case 0:
		x.talk()
	case 1, 2:
		x.pairs()
	default:
		x.connected()
	}
	again()
}

// pairs lets two clients connect queue pairs of every type in every way, to each other and to those of other
// processes.
func (x *intruder) pairs() {
	domain, err := os.CreateTemp("", "urdma-hostile-")
	if err != nil {
		return
	}
	defer domain.Close()
	_ = os.Remove(domain.Name())
	own, first := netip.MustParseAddr(x.address), netip.MustParseAddr(x.first)
	var numbers []uint32
	var clients [2]*controltest.Client
	for i := range clients {
		if clients[i], err = controltest.New(controltest.Config{Rand: x.r, Socket: x.socket, Own: own,
			Peers: []netip.Addr{own, first, netip.IPv6Loopback(), netip.AddrFrom4([4]byte{127, 0, 0, 1})}, Domain: domain,
			Numbers: &numbers}); err != nil {
			return
		}
	}
	for err == nil {
		err = clients[x.r.IntN(2)].Step()
		numbers = numbers[max(0, len(numbers)-32)&^1:]
	}
}

// talk sends well-formed messages and others, with descriptors.
func (x *intruder) talk() {
	conn, err := net.Dial("unixpacket", x.socket)
	if err != nil {
		return
	}
	defer conn.Close()
	c := conn.(*net.UnixConn)
	hello := abi.HelloRequest{ABIVersion: abi.Version}
	hello.Header = abi.Header{Type: abi.Hello, Length: uint32(abi.Size[abi.HelloRequest]())}
	x.exchange(c, abi.Bytes(&hello))
	for range x.r.IntN(200) {
		b := make([]byte, []int{16, 24, 24, 32, 40, 72, 96, 312}[x.r.IntN(8)]) // lengths of requests
		for i := 16; i+4 <= len(b); i += 4 {
			binary.NativeEndian.PutUint32(b[i:], uint32(x.r.IntN(12)))
		}
		if len(b) > 16 && x.r.IntN(3) == 0 {
			binary.NativeEndian.PutUint32(b[16+4*x.r.IntN((len(b)-16)/4):], x.r.Uint32())
		}
		binary.NativeEndian.PutUint32(b, uint32(x.r.IntN(70)))
		binary.NativeEndian.PutUint32(b[4:], uint32(len(b)))
		if x.r.IntN(60) == 0 {
			b = b[:x.r.IntN(len(b))]
		}
		x.exchange(c, b)
	}
}

func (x *intruder) exchange(c *net.UnixConn, b []byte) {
	var oob []byte
	switch x.r.IntN(6) {
	case 0:
		oob = unix.UnixRights(int(x.self.Fd()))
	case 1:
		oob = unix.UnixRights(0, 1, 2)
	}
	if _, _, err := c.WriteMsgUnix(b, oob, nil); err != nil || x.r.IntN(20) == 0 {
		return // without waiting for the answer
	}
	in, got := make([]byte, abi.MaxMessage), make([]byte, 256)
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	_, n, _, _, _ := c.ReadMsgUnix(in, got)
	messages, _ := unix.ParseSocketControlMessage(got[:n])
	for i := range messages {
		fds, _ := unix.ParseUnixRights(&messages[i])
		for _, fd := range fds {
			unix.Close(fd)
		}
	}
}

// connected connects to itself, and while it posts it overwrites the memory that it shares with urdmad.
func (x *intruder) connected() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	client, err := verbs.Open(x.socket)
	if err != nil {
		return
	}
	here, there, err := x.pair(ctx, client)
	if err != nil {
		return
	}
	ends := [2]*verbs.Conn{here, there}
	var memory [2]*verbs.MR
	for i, c := range ends {
		if memory[i], err = c.PD().AllocMemory(1<<16, verbs.LocalWrite|verbs.RemoteRead|verbs.RemoteWrite); err != nil {
			return
		}
	}
	maps := sharedMappings()
	for range 20 + x.r.IntN(400) {
		for i, c := range ends {
			n := x.r.IntN(1 << 16)
			sge := []verbs.SGE{{Addr: memory[i].Addr() + uint64(x.r.IntN(100)), Length: uint32(n), LKey: memory[i].LKey()}}
			remote := verbs.Remote{Addr: x.words[9], RKey: uint32(x.words[8])}
			if x.r.IntN(2) == 0 {
				remote = memory[1-i].Remote(0)
			}
			if x.r.IntN(4) == 0 { // memory of others, by its key
				sge[0].LKey = uint32(x.words[8])
				if x.r.IntN(2) == 0 {
					sge[0].Addr = x.words[9]
				}
			}
			_ = c.PostRecv(&verbs.RecvWR{SGE: sge})
			_ = c.PostSend(&verbs.SendWR{Op: []verbs.Opcode{verbs.OpSend, verbs.OpWrite, verbs.OpRead}[x.r.IntN(3)], SGE: sge,
				Remote: remote})
		}
		for range x.r.IntN(6) {
			x.scribble(maps)
		}
	}
}

// pair connects two queue pairs of the client.
func (x *intruder) pair(ctx context.Context, client *verbs.Client) (here, there *verbs.Conn, err error) {
	l, err := client.Listen(net.JoinHostPort([]string{x.address, "127.0.0.1", "::1"}[x.r.IntN(3)], "0"))
	if err != nil {
		return nil, nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		there, _ = l.Accept(ctx, nil)
	}()
	here, err = client.Dial(ctx, l.Addr().String(), nil)
	<-done
	if err == nil && there == nil {
		err = ctx.Err()
	}
	return here, there, err
}

var mapping = regexp.MustCompile(`(?m)^([0-9a-f]+)-([0-9a-f]+) rw-s .*/memfd:urdma`)

// sharedMappings returns start and length of each mapping that the process shares with urdmad.
func sharedMappings() (out [][2]int64) {
	text, _ := os.ReadFile("/proc/self/maps")
	for _, m := range mapping.FindAllSubmatch(text, -1) {
		start, _ := strconv.ParseInt(string(m[1]), 16, 64)
		end, _ := strconv.ParseInt(string(m[2]), 16, 64)
		out = append(out, [2]int64{start, end - start})
	}
	return out
}

// scribble changes a word of a ring, of the doorbells or of a slot.
func (x *intruder) scribble(maps [][2]int64) {
	if len(maps) == 0 {
		return
	}
	m := maps[x.r.IntN(len(maps))]
	at := 4 * x.r.Int64N(min(m[1], 8192)/4)
	if x.r.IntN(3) == 0 {
		at = 64 * x.r.Int64N(4) // an index at the head
	}
	v := x.words[x.r.IntN(len(x.words))]
	if x.r.IntN(3) == 0 {
		v = x.r.Uint64() >> x.r.IntN(64)
	}
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], v)
	_, _ = x.self.WriteAt(b[:4+4*x.r.IntN(2)], m[0]+at)
}

// spell returns the environment variable that newIntruder reads.
func spell(seed uint64, socket, address, first string, lent verbs.Remote) string {
	return fmt.Sprintf("%s=%d %s %s %d %d %s", hostileEnv, seed, socket, address, lent.RKey, lent.Addr, first)
}
