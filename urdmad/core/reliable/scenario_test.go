package reliable_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"urdma/urdmad/core/reliable"
	"urdma/urdmad/core/reliable/reliabletest"
	"urdma/wire"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// TestScenarios runs the scripts in testdata. Script and transcript are one
// file: lines that start with two spaces are what the command above them
// caused, and are rewritten by -update.
//
//	config KEY=VALUE…        both peers; again for another connection. Keys:
//	                         window recv isn-a isn-b death keepalive
//	send a 5                 the program above a posts 5 segments
//	deliver a1 a3-a5         these packets arrive, 20 µs after they left or now if
//	                         that is later; then the receiver has a turn
//	deliver a                all of a's that are on their way
//	drop b2 / drop b         they are lost
//	wait 50us                time passes; timers run, nothing arrives
//	sleep 9ms                both machines sleep: time passes, no timer runs
//	credits b 0              b's engine sets what it advertises
//	stats a KEY…             show fields of Stats
//
// Packets are numbered a1, a2, … as they leave.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts in testdata: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) { runScript(t, file) })
	}
}

func runScript(t *testing.T, file string) {
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := newScript()
	for n, line := range strings.Split(strings.TrimSuffix(string(want), "\n"), "\n") {
		if strings.HasPrefix(line, "  ") {
			continue
		}
		s.out.WriteString(line + "\n")
		if err := s.command(strings.Fields(line)); err != nil {
			t.Fatalf("%s:%d: %s: %v", file, n+1, line, err)
		}
	}
	got := s.out.String()
	if got == string(want) {
		return
	}
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s differs from what happens now (go test -run Scenarios -update rewrites it):\n%s", file,
		firstDifference(string(want), got))
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, w[i], g[i])
		}
	}
	return fmt.Sprintf("want %d lines, got %d", len(w), len(g))
}

type script struct {
	out   strings.Builder
	now   reliable.Time
	peers [2]*reliabletest.Peer
	onWay [2][]travelling
	sent  [2]int
}

type travelling struct {
	number int
	left   reliable.Time
	pkt    *reliabletest.Packet
}

func newScript() *script {
	s := &script{}
	if err := s.config(nil); err != nil {
		panic(err)
	}
	return s
}

func (s *script) printf(format string, args ...any) {
	fmt.Fprintf(&s.out, "  %10.3f ", float64(s.now)/1000)
	fmt.Fprintf(&s.out, format+"\n", args...)
}

func (s *script) command(words []string) error {
	if len(words) == 0 || words[0] == "#" {
		return nil
	}
	verbs := map[string]func([]string) error{
		"config": s.config, "send": s.send, "deliver": s.deliver, "drop": s.drop,
		"wait": s.wait, "sleep": s.sleep, "credits": s.credits, "stats": s.stats,
	}
	do, ok := verbs[words[0]]
	if !ok {
		return fmt.Errorf("no such command")
	}
	return do(words[1:])
}

func (s *script) config(words []string) error {
	a := reliable.Config{LocalISN: 100, PeerISN: 200, Window: 64, RecvWindow: 64}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		n, _ := strconv.Atoi(value)
		d, _ := time.ParseDuration(value)
		switch key {
		case "window":
			a.Window = n
		case "recv":
			a.RecvWindow = n
		case "isn-a":
			a.LocalISN = wire.PSN(n)
		case "isn-b":
			a.PeerISN = wire.PSN(n)
		case "death":
			a.DeathTimeout = reliable.Time(d)
		case "keepalive":
			a.KeepAlive = reliable.Time(d)
		default:
			return fmt.Errorf("no such key: %s", key)
		}
	}
	b := a
	b.LocalISN, b.PeerISN = a.PeerISN, a.LocalISN
	*s = script{out: s.out, peers: [2]*reliabletest.Peer{reliabletest.NewPeer("a", a, 1, 2),
		reliabletest.NewPeer("b", b, 2, 1)}}
	for i, p := range s.peers {
		p.Emit = func(pkt *reliabletest.Packet) { s.emit(i, pkt) }
		p.Log = func(format string, args ...any) { s.printf("%s: %s", p.Name, fmt.Sprintf(format, args...)) }
		s.turn(i)
	}
	return nil
}

func (s *script) emit(i int, pkt *reliabletest.Packet) {
	s.sent[i]++
	s.printf("%s%d> %v", s.peers[i].Name, s.sent[i], pkt)
	kept := *pkt
	kept.Runs = append([]wire.SackRun(nil), pkt.Runs...)
	kept.Payload = append([]byte(nil), pkt.Payload...)
	s.onWay[i] = append(s.onWay[i], travelling{s.sent[i], s.now, &kept})
}

func (s *script) turn(i int) {
	if err := s.peers[i].Turn(s.now); err != nil && err != reliable.ErrPeerDead {
		s.printf("FAILURE: %v", err)
	}
}

func peerIndex(name string) (int, error) {
	if i := strings.Index("ab", name); i >= 0 && len(name) == 1 {
		return i, nil
	}
	return 0, fmt.Errorf("%q is not a peer", name)
}

func (s *script) send(words []string) error {
	i, err := peerIndex(words[0])
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(words[1])
	s.peers[i].Queued += n
	s.turn(i)
	return err
}

// take removes the packets that word names from those on their way.
func (s *script) take(word string) (from int, taken []travelling, err error) {
	if from, err = peerIndex(word[:1]); err != nil {
		return
	}
	first, last := 1, s.sent[from]
	if len(word) > 1 {
		lo, hi, isRange := strings.Cut(word[1:], "-")
		if first, err = strconv.Atoi(lo); err != nil {
			return
		}
		last = first
		if isRange {
			if last, err = strconv.Atoi(strings.TrimPrefix(hi, word[:1])); err != nil {
				return
			}
		}
	}
	var rest []travelling
	for _, p := range s.onWay[from] {
		if p.number >= first && p.number <= last {
			taken = append(taken, p)
		} else {
			rest = append(rest, p)
		}
	}
	s.onWay[from] = rest
	if len(taken) == 0 && len(word) > 1 {
		err = fmt.Errorf("%s is not on its way", word)
	}
	return
}

// transit is how long a packet takes at least.
const transit = 20 * reliable.Microsecond

func (s *script) deliver(words []string) error {
	var reached [2]bool
	for _, word := range words {
		from, taken, err := s.take(word)
		if err != nil {
			return err
		}
		if n := len(taken); n > 0 {
			if err := s.waitUntil(max(s.now, taken[n-1].left+transit)); err != nil {
				return err
			}
		}
		for _, p := range taken {
			if err := s.peers[1-from].Receive(s.now, p.pkt); err != nil {
				return err
			}
		}
		reached[1-from] = true
	}
	for i := range s.peers {
		if reached[i] {
			s.turn(i)
		}
	}
	return nil
}

func (s *script) drop(words []string) error {
	for _, word := range words {
		if _, _, err := s.take(word); err != nil {
			return err
		}
	}
	return nil
}

func (s *script) wait(words []string) error {
	d, err := time.ParseDuration(words[0])
	if err != nil {
		return err
	}
	return s.waitUntil(s.now + reliable.Time(d))
}

func (s *script) sleep(words []string) error {
	d, err := time.ParseDuration(words[0])
	s.now += reliable.Time(d)
	return err
}

func (s *script) waitUntil(end reliable.Time) error {
	for range 10_000 {
		a, b := s.peers[0].Conn.Deadline(), s.peers[1].Conn.Deadline()
		if min(a, b) > end {
			s.now = end
			return nil
		}
		s.now = max(s.now, min(a, b))
		if a <= b {
			s.turn(0)
		} else {
			s.turn(1)
		}
	}
	return fmt.Errorf("timers never come to rest")
}

func (s *script) credits(words []string) error {
	i, err := peerIndex(words[0])
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(words[1])
	s.peers[i].Conn.SetCredits(n)
	s.turn(i)
	return err
}

func (s *script) stats(words []string) error {
	i, err := peerIndex(words[0])
	if err != nil {
		return err
	}
	all := fmt.Sprintf("%+v", s.peers[i].Conn.Stats())
	var shown []string
	for _, field := range strings.Fields(strings.NewReplacer("Counters:{", "", "{", "", "}", "").Replace(all)) {
		key, _, _ := strings.Cut(field, ":")
		for _, word := range words[1:] {
			if strings.EqualFold(key, word) {
				shown = append(shown, field)
			}
		}
	}
	s.printf("%s: %s", words[0], strings.Join(shown, " "))
	return nil
}
