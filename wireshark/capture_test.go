package wireshark

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"urdma/wire"
)

// Interface descriptions of captures: urdma's, and another.
const (
	byUrdma   = "urdma: test"
	byAnother = "eth0"
)

// end is one end of a UDP conversation.
type end struct {
	ip   wire.IPv4
	port uint16
}

// The ends of most tests: requester, listener, and the listener's fresh port.
var (
	endR = end{wire.IPv4{10, 0, 0, 1}, 40001}
	endL = end{wire.IPv4{10, 0, 0, 2}, 7471}
	endA = end{wire.IPv4{10, 0, 0, 2}, 50002}
)

// packet is one UDP datagram of a capture.
type packet struct {
	from, to end
	payload  []byte
	cut      int // bytes of payload in the capture, if fewer than the length
}

func whole(from, to end, payload []byte) packet {
	return packet{from, to, payload, len(payload)}
}

// frame returns the packet as an Ethernet frame.
func (p packet) frame() []byte {
	var h wire.UDPHeader
	h.Init(wire.MAC{2, 0, 0, 0, 0, 1}, wire.MAC{2, 0, 0, 0, 0, 2}, p.from.ip, p.to.ip, p.from.port, p.to.port)
	b := make([]byte, wire.UDPHeaderLen+len(p.payload))
	h.Put(b, len(p.payload), 0)
	copy(b[wire.UDPHeaderLen:], p.payload)
	return b
}

// step is the time between two packets of a capture.
const step = time.Millisecond

// writeCapture writes the packets, a step apart, and returns the file's path.
func writeCapture(t *testing.T, description string, packets []packet) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.pcapng")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := pcapgo.NewNgWriterInterface(f, pcapgo.NgInterface{
		Name: "test", Description: description, LinkType: layers.LinkTypeEthernet, TimestampResolution: 9,
	}, pcapgo.DefaultNgWriterOptions)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1700000000, 0)
	for _, p := range packets {
		b := p.frame()
		held := len(b) - len(p.payload) + min(p.cut, len(p.payload))
		info := gopacket.CaptureInfo{Timestamp: at, CaptureLength: held, Length: len(b)}
		if err := w.WritePacket(info, b[:held]); err != nil {
			t.Fatal(err)
		}
		at = at.Add(step)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return path
}

// command returns tshark with a home directory without settings or plugins, and without its own plugins if possible:
// root can't disable them.
func command(home string, args ...string) *exec.Cmd {
	cmd := exec.Command("tshark", args...)
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "WIRESHARK_PLUGIN_DIR="+home, "TZ=UTC",
		"LC_ALL=C.UTF-8")
	return cmd
}

// unusable returns the reason why tshark can't be used in tests, or "".
var unusable = sync.OnceValue(func() string {
	if _, err := exec.LookPath("tshark"); err != nil {
		return "tshark is not installed"
	}
	out, err := command(os.TempDir(), "-G", "protocols").Output()
	if err != nil {
		return "tshark -G protocols: " + err.Error()
	}
	if bytes.Contains(out, []byte("\ttrp\n")) {
		return "tshark has a trp.lua installed and would use that one"
	}
	return ""
})

// tshark reads a capture with the dissector. Errors of the script that appear in the output end the test; see
// complain.
func tshark(t *testing.T, path string, args ...string) string {
	t.Helper()
	if why := unusable(); why != "" {
		t.Skip("SKIPPED: " + why)
	}
	var stdout, stderr bytes.Buffer
	cmd := command(t.TempDir(), append([]string{"-n", "-X", "lua_script:trp.lua", "-r", path}, args...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("tshark %v: %v\n%s", args, err, &stderr)
	}
	for _, out := range []string{stdout.String(), stderr.String()} {
		for _, wrong := range []string{"Lua Error", "Lua:", "Dissector bug", ".lua:"} {
			if i := strings.Index(out, wrong); i >= 0 {
				t.Fatalf("tshark %v says: %s", args, out[i:min(len(out), i+500)])
			}
		}
	}
	return stdout.String()
}

// complain ends the test after an error of the script that summaries don't show.
func complain(t *testing.T, path string, args ...string) {
	t.Helper()
	tshark(t, path, append(args, "-q", "-z", "expert")...)
}

// info returns the Info column of each packet; for other protocols their name.
func info(t *testing.T, path string, args ...string) []string {
	t.Helper()
	rows := columns(t, path, []string{"_ws.col.Protocol", "_ws.col.Info"}, args...)
	var lines []string
	for _, row := range rows {
		if row[0] == "TRP" {
			lines = append(lines, row[1])
		} else {
			lines = append(lines, row[0])
		}
	}
	return lines
}

// columns returns the fields of each packet as text; a field that occurs several times has commas.
func columns(t *testing.T, path string, fields []string, args ...string) [][]string {
	t.Helper()
	args = append(args, "-T", "fields", "-E", "separator=/t", "-E", "aggregator=,")
	for _, f := range append([]string{"_ws.lua.error"}, fields...) {
		args = append(args, "-e", f)
	}
	var rows [][]string
	for line := range strings.Lines(tshark(t, path, args...)) {
		row := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if row[0] != "" {
			t.Fatalf("packet %d: %s", len(rows)+1, line)
		}
		row = row[1:]
		for i := range row {
			row[i] = numeric(row[i])
		}
		rows = append(rows, row)
	}
	return rows
}

// numeric converts truth values to the form that Wireshark 4.0 prints.
func numeric(s string) string {
	switch s {
	case "True":
		return "1"
	case "False":
		return "0"
	}
	return s
}

// header writes a TRP header and a body.
func header(h wire.TRP, body []byte) []byte {
	b := make([]byte, wire.TRPExtLen+len(body))
	n := h.Put(b)
	return b[:n+copy(b[n:], body)]
}

// connect writes a request, accept or reject.
func connect(h wire.TRP, c wire.TRPConnect) []byte {
	b := make([]byte, c.Len())
	if _, err := c.Put(b); err != nil {
		panic(err)
	}
	return header(h, b)
}

// segment writes a DDP segment.
func segment(d wire.DDP, body []byte) []byte {
	b := make([]byte, wire.UntaggedLen+len(body))
	n := d.Put(b)
	return b[:n+copy(b[n:], body)]
}

// putter is a body of package wire.
type putter interface{ Put([]byte) int }

func body(p putter, size int) []byte {
	b := make([]byte, size)
	return b[:p.Put(b)]
}

func terminate(t wire.Terminate) []byte { return body(&t, wire.MaxTerminateLen) }

func runs(r ...wire.SackRun) []byte {
	b := make([]byte, len(r)*wire.SackRunLen)
	wire.PutSackRuns(b, r)
	return b
}

// newRand is the only source of randomness in a test. URDMA_SEED repeats a run.
func newRand(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(1)
	if s := os.Getenv("URDMA_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 0, 64)
		if err != nil {
			t.Fatalf("URDMA_SEED=%q: want a number: %v", s, err)
		}
		seed = n
	}
	t.Logf("seed %d (URDMA_SEED)", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func randBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.BigEndian.AppendUint64(b, r.Uint64())
	}
	return b[:n]
}
