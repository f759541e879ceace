package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"urdma/inspect"
	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/urdma/measure"
	"urdma/verbs"
	"urdma/verbs/probe"
)

// measureWires has one wire of each kind of port.
var measureWires = []lab.Wire{lab.Loopback.WithWorkers(1), lab.Memif, lab.UDP, lab.TCP, lab.AFPacket}

// urdmaPing pings b from a and parses the output. It waits long for an answer, unless given another time-out.
func urdmaPing(t *testing.T, a, b *lab.Node, args ...string) (r measure.PingResult, err error) {
	t.Helper()
	out, err := a.Urdma(append([]string{"ping", "--json", b.Address, "-W", "20s"}, args...)...)
	if err != nil && !strings.HasPrefix(out, "{") {
		return r, fmt.Errorf("%w: %s", err, out)
	}
	if text, _, ok := strings.Cut(out, "\n}"); ok {
		out = text + "}"
	}
	if wrong := json.Unmarshal([]byte(out), &r); wrong != nil {
		t.Fatalf("%v:\n%s", wrong, out)
	}
	return r, err
}

// TestUrdmaPing: every urdmad answers, without a program or a setting.
func TestUrdmaPing(t *testing.T) {
	whole(t)
	for _, w := range measureWires {
		t.Run(w.Name, func(t *testing.T) {
			a, b := labtest.Join(t, w, nil)
			for _, size := range []string{"1", "64", "64KiB"} {
				r, err := urdmaPing(t, a, b, "-c", "3", "-i", "10ms", "-s", size)
				if err != nil || r.Reads != 3 || r.Answered != 3 || len(r.Times) != 3 || r.Warning != "" {
					t.Errorf("%s bytes: %+v, %v", size, r, err)
				}
				if wire := r.Path == inspect.PathWire; wire != (a != b) || wire != (r.Segments > 0) {
					t.Errorf("by path %q, with %d segments", r.Path, r.Segments)
				}
			}
			if s := responderOf(t, b); s.Served < 3 || s.Serves != "ping" || s.Port != probe.Port {
				t.Errorf("the responder shows %+v", s)
			}
			out, err := a.Urdma("ping", "-c", "2", "-i", "10ms", "-W", "20s", b.Address)
			if err != nil || !strings.Contains(out, "2 reads, 2 answered, 0 lost (0%)") ||
				!strings.Contains(out, "read=2 time=") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func responderOf(t *testing.T, n *lab.Node) inspect.Responder {
	t.Helper()
	s, err := inspect.Open(n.Socket())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	snap, err := s.Fetch()
	if err != nil {
		t.Fatal(err)
	}
	return *snap.Responder
}

// setResponder changes the setting of a running urdmad.
func setResponder(t *testing.T, n *lab.Node, value string) {
	t.Helper()
	if err := n.Change("responder", value); err != nil {
		t.Fatal(err)
	}
	n.Daemon.Signal(syscall.SIGHUP)
	for end := time.Now().Add(lab.Patience); responderOf(t, n).Serves != value; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the reload has no effect:\n%s", n.Daemon.Output())
		}
	}
}

// TestMeasureErrors: the error says why a peer does not answer.
func TestMeasureErrors(t *testing.T) {
	whole(t)
	a, b := labtest.Join(t, lab.Memif, nil)
	expect := func(address, want string) {
		t.Helper()
		out, err := a.Urdma("ping", "-c", "1", "-W", "20s", address)
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s\nexpected %q", address, err, out, want)
		}
	}
	network := a.Address[:strings.LastIndex(a.Address, ".")]
	expect("172.31.7.7", "no route to 172.31.7.7: urdmad has urdma0 "+a.Address)
	expect(network+".77", "nobody answers ARP or neighbour discovery for")
	expect("no-such-host.invalid", "no-such-host.invalid")
	setResponder(t, b, "off")
	expect(b.Address, "answers, but refuses: its responder is off")
	setResponder(t, b, "ping")
	if _, err := urdmaPing(t, a, b, "-c", "1"); err != nil {
		t.Error(err)
	}
	if err := b.StopDaemon(); err != nil {
		t.Fatal(err)
	}
	expect(b.Address, "no urdmad answers at "+b.Address)
	if err := b.StartDaemon(); err != nil {
		t.Fatal(err)
	}
}

// TestPingOfNobodyOverTCP: a refusal by the kernel of a host without urdmad does not count as a responder's answer.
func TestPingOfNobodyOverTCP(t *testing.T) {
	whole(t)
	a, b := labtest.Join(t, lab.TCP, nil)
	if err := b.StopDaemon(); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("nothing listens on TCP port %d at %s: no urdmad runs there", probe.Port, b.Address)
	if out, err := a.Urdma("ping", "-c", "1", "-W", "20s", b.Address); err == nil || !strings.Contains(out, want) {
		t.Errorf("%v\n%s\nexpected %q", err, out, want)
	}
}

// TestPingOfAUrdmadThatRestarts: lost pings are counted, and later ones are answered.
func TestPingOfAUrdmadThatRestarts(t *testing.T) {
	whole(t)
	a, b := labtest.Join(t, lab.Memif, lab.Config{"death_timeout_ms": 300})
	p, err := a.Start(a.Program("urdma"), "ping", "-i", "50ms", "-W", "5s", b.Address)
	if err != nil {
		t.Fatal(err)
	}
	await := func(what string, n int) {
		t.Helper()
		for end := time.Now().Add(lab.Patience); strings.Count(p.Output(), what) < n; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) || !p.Running() {
				t.Fatalf("no %q:\n%s", what, p.Output())
			}
		}
	}
	await(" time=", 2)
	b.Daemon.Kill()
	await("no urdmad answers", 1)
	if err := b.StartDaemon(); err != nil {
		t.Fatal(err)
	}
	await(" time=", strings.Count(p.Output(), " time=")+2)
	p.Signal(syscall.SIGINT)
	if err := p.Wait(lab.Patience); err != nil || !strings.Contains(p.Output(), " lost (") ||
		strings.Contains(p.Output(), " 0 lost") {
		t.Errorf("%v\n%s", err, p.Output())
	}
}

// TestPingTellsOfASmallerMTU: small packets pass and large ones don't, as through a switch with a smaller MTU.
func TestPingTellsOfASmallerMTU(t *testing.T) {
	whole(t)
	a, b := labtest.Join(t, lab.AFPacket.Jumbo(), nil)
	if err := b.Net.Run("ip", "link", "set", "veth0", "mtu", "1500"); err != nil {
		t.Fatal(err)
	}
	var r measure.PingResult
	var err error
	for try := 0; r.Answered == 0 && try < 10; try++ { // a second may be too short for the small packet
		r, err = urdmaPing(t, a, b, "-c", "1", "-W", "1s")
	}
	if err != nil || r.Answered != 1 || !strings.Contains(r.Warning, "MTU of 9000") {
		t.Errorf("%+v, %v", r, err)
	}
}

// asker is a client that connects to a responder with any request.
type asker struct {
	t      *testing.T
	client *verbs.Client
	peer   string
}

func newAsker(t *testing.T, a, b *lab.Node) *asker {
	t.Helper()
	c, err := verbs.Open(a.Socket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &asker{t, c, b.Address}
}

func (x *asker) dial(private []byte) (*verbs.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lab.Patience)
	defer cancel()
	return x.client.Dial(ctx, fmt.Sprintf("%s:%d", x.peer, probe.Port), &verbs.ConnOptions{PrivateData: private})
}

// refused returns the status with which a request is rejected.
func (x *asker) refused(private []byte) probe.Status {
	x.t.Helper()
	conn, err := x.dial(private)
	var r *verbs.RejectedError
	if !errors.As(err, &r) {
		if err == nil {
			conn.Close()
		}
		x.t.Errorf("request %x: %v, expected a reject", private, err)
		return 0
	}
	answer, err := probe.ParseAnswer(r.PrivateData)
	if err != nil {
		x.t.Error(err)
	}
	return answer.Status
}

// TestResponderBounds: the requests that strangers may make, and the limits.
func TestResponderBounds(t *testing.T) {
	whole(t)
	a, b := labtest.Join(t, lab.Memif, lab.Config{"responder_allow": []string{"10.0.0.0/8", "198.18.0.0/15"}})
	x := newAsker(t, a, b)
	want := probe.Request{Seed: 7}.Append(nil)
	newer := append([]byte{}, want...)
	newer[4]++
	for _, private := range [][]byte{nil, []byte("rping"), newer, want[:9]} {
		if s := x.refused(private); s != probe.OtherVersion {
			t.Errorf("%x is refused with %d", private, s)
		}
	}
	var all []*verbs.Conn
	for range 6 { // four have room
		c, err := x.dial(want)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		all = append(all, c)
	}
	for i, c := range all {
		select {
		case <-c.Done():
			if i > 1 {
				t.Errorf("connection %d was ended", i)
			}
		case <-time.After(map[bool]time.Duration{true: lab.Patience, false: 0}[i < 2]):
			if i < 2 {
				t.Errorf("connection %d is still there", i)
			}
		}
	}
	x.readOnly(all[5])
	setResponder(t, b, "off")
	select {
	case <-all[5].Done():
	case <-time.After(lab.Patience):
		t.Error("responder off, and a connection goes on")
	}
}

// readOnly: a ping's memory can't be written, nor read beyond its end.
func (x *asker) readOnly(c *verbs.Conn) {
	answer, err := probe.ParseAnswer(c.PrivateData())
	if err != nil {
		x.t.Fatal(err)
	}
	m, err := c.PD().AllocMemory(4096, verbs.LocalWrite)
	if err != nil {
		x.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lab.Patience)
	defer cancel()
	at := verbs.Remote{Addr: answer.Addr, RKey: answer.RKey}
	if err := c.Read(ctx, at, m.SGE(0, 64)); err != nil {
		x.t.Error(err)
	}
	if err := c.Write(ctx, at, m.SGE(0, 64)); err == nil {
		x.t.Error("a ping's memory was written")
	}
}

// TestResponderAllow: other networks than those in the setting are refused.
func TestResponderAllow(t *testing.T) {
	whole(t)
	a, b := labtest.Join(t, lab.Memif, lab.Config{"responder_allow": []string{"192.0.2.0/24"}})
	out, err := a.Urdma("ping", "-c", "1", "-W", "20s", b.Address)
	if err == nil || !strings.Contains(out, "responder_allow") {
		t.Errorf("%v\n%s", err, out)
	}
	if r, err := urdmaPing(t, a, a, "-c", "1"); err != nil || r.Answered != 1 {
		t.Errorf("itself: %+v, %v", r, err)
	}
}

// TestPingOnLoopback: for an address that no other host can have, ping says why it fails.
func TestPingOnLoopback(t *testing.T) {
	whole(t)
	n, _ := labtest.Join(t, lab.Loopback, nil)
	nobody := n.Address[:strings.LastIndex(n.Address, ".")] + ".77"
	want := "nobody has " + nobody + ": its network is that of the loopback port urdma0 " + n.Address +
		"/24, on which only programs of this urdmad are"
	if out, err := n.Urdma("ping", "-c", "1", "-W", "20s", nobody); err == nil || !strings.Contains(out, want) {
		t.Errorf("%v\n%s\nexpected %q", err, out, want)
	}
}
