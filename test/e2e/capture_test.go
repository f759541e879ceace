package e2e

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// capturing is a running urdma capture.
type capturing struct {
	t    *testing.T
	p    *lab.Process
	file string
}

// captures numbers the directories of captures.
var captures int

func capture(t *testing.T, l *lab.Lab, n *lab.Node, args ...string) *capturing {
	t.Helper()
	c := &capturing{t: t, file: filepath.Join(outputs(t, n), "capture.pcapng")}
	c.p = startCapture(t, l, n, append([]string{"capture", "-o", c.file}, args...)...)
	return c
}

// outputs makes a new directory to which the node's user may write.
func outputs(t *testing.T, n *lab.Node) string {
	t.Helper()
	captures++
	dir := filepath.Join(filepath.Dir(filepath.Dir(n.Socket())), fmt.Sprint("capture", captures))
	err := os.Mkdir(dir, 0o777)
	if err == nil {
		err = os.Chmod(dir, 0o777) // without the umask
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// startCapture starts an urdma capture or trace and waits until urdmad captures.
func startCapture(t *testing.T, l *lab.Lab, n *lab.Node, args ...string) *lab.Process {
	t.Helper()
	const begins = "capture begins"
	before := strings.Count(n.Daemon.Output(), begins)
	p, err := n.Start(append([]string{l.Program("urdma"), args[0], "--socket", n.Socket()}, args[1:]...)...)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(lab.Patience); strings.Count(n.Daemon.Output(),
		begins) == before; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) || !p.Running() {
			t.Fatalf("no capture begins:\n%s\n%s", p.Output(), lab.Tail(n.Daemon.Output(), 5))
		}
	}
	return p
}

// end interrupts the capture and returns its file.
func (c *capturing) end() []packet {
	c.t.Helper()
	c.p.Signal(syscall.SIGINT)
	if err := c.p.Wait(lab.Patience); err != nil {
		c.t.Fatalf("%v\n%s", err, c.p.Output())
	}
	return packets(c.t, c.file)
}

// packet is one packet of a pcapng file.
type packet struct {
	frame     []byte
	length    int
	device    int
	direction pcapgo.NgEpbFlag
	comment   string
	at        time.Time
}

func packets(t *testing.T, file string) (list []packet) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewNgReader(f, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	for {
		frame, info, options, err := r.ReadPacketDataWithOptions()
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatalf("%s, packet %d: %v", file, len(list), err)
		}
		p := packet{frame: frame, length: info.Length, device: info.InterfaceIndex, at: info.Timestamp,
			comment: strings.Join(options.Comments, "\n")}
		if options.Flags != nil {
			p.direction = options.Flags.Direction
		}
		list = append(list, p)
	}
}

// way has the UDP datagrams of one direction, IPv4 and IPv6.
func way(list []packet, d pcapgo.NgEpbFlag) (frames [][]byte) {
	for _, p := range list {
		if p.direction == d && udpAt(p.frame) > 0 {
			frames = append(frames, p.frame)
		}
	}
	return frames
}

// udpAt returns the offset of a frame's UDP header; 0 if it has none.
func udpAt(frame []byte) int {
	const ethernet, protocol, next = 14, 9, 6
	switch family := binary.BigEndian.Uint16(frame[12:]); {
	case family == 0x0800 && frame[ethernet+protocol] == syscall.IPPROTO_UDP:
		return ethernet + 20
	case family == 0x86dd && frame[ethernet+next] == syscall.IPPROTO_UDP:
		return ethernet + 40
	}
	return 0
}

// tshark reads a file with our dissector and returns the fields of each packet.
func tshark(t *testing.T, file string, fields ...string) (lines []string) {
	t.Helper()
	need(t, "tshark")
	args := []string{"-X", "lua_script:../../wireshark/trp.lua", "-r", file, "-T", "fields", "-E", "separator=|"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	var complaints bytes.Buffer
	cmd := exec.Command("tshark", args...)
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil || strings.Contains(complaints.String()+string(out), "Lua") {
		t.Fatalf("tshark: %v\n%s\n%s", err, complaints.String(), out)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// TestCapture captures one rping on both of its hosts: the packets that left one host arrived at the other, and
// tshark finds rping's messages in them. The order is compared only with one worker, because one of several may
// receive its packets late, such as path MTU probes.
func TestCapture(t *testing.T) {
	whole(t)
	for _, w := range []lab.Wire{lab.Memif, lab.UDP, lab.AFPacket, lab.Memif.V6(), lab.UDP.V6(), lab.Memif.WithWorkers(2),
		lab.UDP.WithWorkers(2)} {
		t.Run(w.Name, func(t *testing.T) {
			l := labtest.New(t)
			a, b := labtest.JoinIn(t, l, w, nil)
			ca, cb := capture(t, l, a), capture(t, l, b)
			only, other := capture(t, l, a, "--host", net.JoinHostPort(b.Address, "7471"), "--snaplen", "60"),
				capture(t, l, a, "--host", ":7000")
			pass(t, lab.Pair{ServerNode: a, ClientNode: b,
				Server: []string{"rping", "-s", "-a", a.Address, "-p", "7471", "-C", "3", "-S", "5000", "-V"},
				Client: []string{"rping", "-c", "-a", a.Address, "-p", "7471", "-C", "3", "-S", "5000", "-V"}})
			if n := len(only.end()); n != 0 {
				t.Errorf("%d packets of a port number that only the other side has", n)
			}
			if n := len(other.end()); n != 0 {
				t.Errorf("%d packets of a port number that nobody has", n)
			}
			atA, atB := ca.end(), cb.end()
			for _, d := range [2][2][][]byte{
				{way(atA, pcapgo.NgEpbFlagDirectionOutbound), way(atB, pcapgo.NgEpbFlagDirectionInbound)},
				{way(atB, pcapgo.NgEpbFlagDirectionOutbound), way(atA, pcapgo.NgEpbFlagDirectionInbound)}} {
				for i := range d {
					if w.Workers > 1 {
						slices.SortFunc(d[i], compareFrames)
					}
				}
				if len(d[0]) < 10 || slices.CompareFunc(d[0], d[1], compareFrames) != 0 {
					t.Errorf("%d frames left and %d came, or they differ", len(d[0]), len(d[1]))
				}
			}
			checkRping(t, l, ca.file)
		})
	}
}

// compareFrames compares all bytes except the UDP checksum, which a port may fill in later.
func compareFrames(a, b []byte) int {
	a, b = bytes.Clone(a), bytes.Clone(b)
	copy(a[udpAt(a)+6:], []byte{0, 0})
	copy(b[udpAt(b)+6:], []byte{0, 0})
	return bytes.Compare(a, b)
}

// checkRping checks three rounds of rping with buffers of 5,000 bytes in tshark's output: one request and one accept,
// four messages per round and side, a Read and a Write per round, and a fin from each side. Nothing may be malformed.
func checkRping(t *testing.T, l *lab.Lab, file string) {
	t.Helper()
	count := map[string]int{}
	for i, line := range tshark(t, file, "trp.op", "iwarp_rdma.opcode", "_ws.malformed", "trp.malformed", "trp.cut") {
		fields := strings.SplitN(line+"||", "|", 3)
		count["op "+number(fields[0])]++
		if fields[1] != "" {
			count["rdma "+number(fields[1])]++
		}
		if strings.Trim(fields[2], "|") != "" {
			t.Errorf("packet %d is malformed: %s", i+1, line)
		}
	}
	for name, least := range map[string]int{"op 1": 1, "op 2": 1, "op 4": 2, "rdma 1": 3, "rdma 2": 6, "rdma 0": 6} {
		if count[name] < least {
			t.Errorf("tshark finds %d of %s, expected %d at least; all: %v", count[name], name, least, count)
		}
	}
	if sends := count["rdma 3"] + count["rdma 5"]; sends < 12 {
		t.Errorf("tshark finds %d sends, expected 12: %v", sends, count)
	}
}

// number returns a field's value without its base.
func number(s string) string {
	n, err := strconv.ParseUint(s, 0, 32)
	if err != nil {
		return s
	}
	return strconv.FormatUint(n, 10)
}

// TestCaptureOnTheHost: connections between programs of one urdmad can be captured, too, and filters select among
// them.
func TestCaptureOnTheHost(t *testing.T) {
	whole(t)
	l := labtest.New(t)
	n, _ := labtest.JoinIn(t, l, lab.Loopback.WithWorkers(1), nil) // with several workers, messages use packets
	rping := func(port string) {
		t.Helper()
		pass(t, lab.Pair{ServerNode: n, ClientNode: n,
			Server: []string{"rping", "-s", "-a", n.Address, "-p", port, "-C", "3", "-S", "5000", "-V"},
			Client: []string{"rping", "-c", "-a", n.Address, "-p", port, "-C", "3", "-S", "5000", "-V"}})
	}
	all, one := capture(t, l, n), capture(t, l, n, "--host", ":7472")
	few := capture(t, l, n, "--count", "4")
	for _, port := range []string{"7471", "7472"} {
		rping(port)
	}
	if err := few.p.Wait(lab.Patience); err != nil || len(packets(t, few.file)) != 4 {
		t.Errorf("--count 4: %v, %d packets", err, len(packets(t, few.file)))
	}
	both, chosen := all.end(), one.end()
	if len(chosen) == 0 || len(both) != 2*len(chosen) {
		t.Errorf("two connections are %d packets, one of them %d", len(both), len(chosen))
	}
	checkRping(t, l, one.file)
}

// TestCaptureNeverHoldsUp: neither a reader that stops reading nor a killed one disturbs the transfer, and when
// urdmad ends the file is complete.
func TestCaptureNeverHoldsUp(t *testing.T) {
	whole(t)
	need(t, "rping")
	l := labtest.New(t)
	n, _, err := l.Join(lab.Loopback.WithWorkers(1), nil) // with several workers, messages use packets
	if err != nil {
		t.Fatal(err)
	}
	server, err := lab.Pair{ServerNode: n, ClientNode: n,
		Server: []string{"rping", "-s", "-a", n.Address, "-S", "60000"}}.StartServer()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Kill()
	client, err := n.Exec("rping", "-c", "-a", n.Address, "-S", "60000", "-C", "1000000000")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Kill()
	var some []*capturing
	for range 4 {
		some = append(some, capture(t, l, n, "--buffer", "1MiB"))
	}
	if out, err := n.Urdma("capture", "-o", filepath.Join(filepath.Dir(some[0].file), "x"), "--socket",
		n.Socket()); err == nil || !strings.Contains(out, "as many captures run") {
		t.Errorf("a fifth capture: %v, %s", err, out)
	}
	some[0].p.Signal(syscall.SIGSTOP)
	for _, c := range some[2:] {
		c.p.Kill()
	}
	carried(t, l, n, 1000) // more than the reader's buffer holds
	some[0].p.Signal(syscall.SIGCONT)
	some[0].end()
	if !strings.Contains(some[0].p.Output(), " more were lost") {
		t.Errorf("a reader that stood still lost nothing: %s", some[0].p.Output())
	}
	again := capture(t, l, n) // the killed captures' places are free
	carried(t, l, n, 10)
	n.Daemon.Kill()
	for _, c := range []*capturing{some[1], again} {
		if err := c.p.Wait(lab.Patience); err == nil || !strings.Contains(c.p.Output(), "urdmad has ended") {
			t.Errorf("urdmad was killed, and the capture ended with %v: %s", err, c.p.Output())
		}
		if len(packets(t, c.file)) == 0 {
			t.Error("nothing is in the file")
		}
	}
}

// carried waits until urdmad has carried more messages.
func carried(t *testing.T, l *lab.Lab, n *lab.Node, more uint64) {
	t.Helper()
	before := messages(t, l, n)
	await(t, "messages", func() (bool, string) {
		now := messages(t, l, n)
		return now >= before+more, fmt.Sprint(now-before, " of ", more)
	})
}

// messages returns the number of messages that urdmad has carried.
func messages(t *testing.T, l *lab.Lab, n *lab.Node) uint64 {
	t.Helper()
	var s struct {
		Totals struct {
			LocalMessages uint64 `json:"local_messages"`
		} `json:"totals"`
	}
	if err := json.Unmarshal([]byte(urdma(t, n, l, "status", "--json")), &s); err != nil {
		t.Fatal(err)
	}
	return s.Totals.LocalMessages
}
