package test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"urdma/test/programtest"
)

const preloadLibrary = "/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so"

// rsocketsProgram builds a program in testdata/rsockets, from a file or a folder.
func rsocketsProgram(t *testing.T, name string) string {
	t.Helper()
	sources, _ := filepath.Glob("testdata/rsockets/" + name + "/*.c")
	if len(sources) == 0 {
		sources = []string{"testdata/rsockets/" + name + ".c"}
	}
	return programtest.Compile(t, filepath.Join(t.TempDir(), name),
		append(sources, "-lrdmacm", "-libverbs", "-lpthread")...)
}

const (
	address6    = "fd77::1"
	loopbackIP6 = `{"vdev": "loopback", "ipv6_address": "` + address6 + `/64"}`
)

func TestRsocketsCases(t *testing.T)     { rsocketsCases(t, startDaemon(t), "streams", address, 0) }
func TestRsocketsDatagrams(t *testing.T) { rsocketsCases(t, startDaemon(t), "datagrams", address, 0) }
func TestRsocketsDatagrams6(t *testing.T) {
	rsocketsCases(t, startDaemonOn(t, loopbackIP6), "datagrams", address6, 2)
}

// TestRsocketsDatagramsMapped: sockets of AF_INET6 on an IPv4 port.
func TestRsocketsDatagramsMapped(t *testing.T) {
	rsocketsCases(t, startDaemon(t), "datagrams", "::ffff:"+address, 1)
}

// rsocketsCases runs each case that a program lists, on one urdmad, which must have no objects of theirs at
// the end. The transports alternate.
func rsocketsCases(t *testing.T, d *daemon, name, at string, first int) {
	binary := rsocketsProgram(t, name)
	names, err := exec.Command(binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range strings.Fields(string(names)) {
		t.Run(name, func(t *testing.T) {
			d.start(t, transportOf(first+i), binary, name, at).succeed(t)
		})
	}
	d.holdsNothing(t)
}

// TestRsocketsWire: the bytes between a stream and its peer, and wrong ones, with each transport.
func TestRsocketsWire(t *testing.T) {
	d, binary := startDaemon(t), rsocketsProgram(t, "streams")
	for i := range 3 {
		for _, name := range []string{"wire_words", "wire_swapped", "wire_refused", "wire_wrong", "wire_credits",
			"wire_early", "wire_shutdown", "wire_iomap", "wire_random"} {
			t.Run(transportOf(i)+" "+name, func(t *testing.T) {
				d.start(t, transportOf(i), binary, name, address).succeed(t)
			})
		}
	}
	d.holdsNothing(t)
}

func transportOf(i int) string { return []string{"iwarp", "ib", "roce"}[i%3] }

// says waits for a line in the program's output.
func (p *program) says(t *testing.T, line string) {
	t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(p.output.String(), line); time.Sleep(5 * time.Millisecond) {
		select {
		case err := <-p.done:
			p.done <- err
			if !strings.Contains(p.output.String(), line) {
				t.Fatalf("%v ended (%v) without saying %q\n%s", p.args, err, line, p.output.String())
			}
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("%v doesn't say %q\n%s", p.args, line, p.output.String())
		}
	}
}

// startWire starts two daemons connected by memif, and returns their addresses.
func startWire(t *testing.T) (server, client *daemon, serverAddress string) {
	t.Helper()
	wire := filepath.Join(t.TempDir(), "wire")
	port := func(role, addr string) string {
		return fmt.Sprintf(`{"vdev": "memif,role=%s,socket=%s", "ipv4_address": "%s/24", "mtu": 4200}`, role, wire, addr)
	}
	server, client = startDaemonOn(t, port("server", "10.78.0.1")), startDaemonOn(t, port("client", "10.78.0.2"))
	for _, d := range []*daemon{server, client} {
		d.isLinked(t)
	}
	return server, client, "10.78.0.1"
}

// isLinked waits until programs see the daemon's port up.
func (d *daemon) isLinked(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		ports, _ := d.status(t)["ports"].([]any)
		if len(ports) == 1 && ports[0].(map[string]any)["link_up"] == true {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the port is not up: %v\n%s", ports, d.Said.String())
		}
	}
}

// TestRsocketsStream: both ends send at once, and every byte is checked. Sizes, calls, flags and options are
// random, with fixed seeds.
func TestRsocketsStream(t *testing.T) {
	binary := rsocketsProgram(t, "stream")
	seeds, size := 6, "1500000"
	if os.Getenv("URDMA_LONG") != "" {
		seeds, size = 60, "20000000"
	}
	run := func(t *testing.T, server, client *daemon, at string) {
		for i := range seeds {
			seed, port := fmt.Sprint(time.Now().UnixNano()), strconv.Itoa(7700+i)
			t.Logf("seed %s", seed)
			s := server.start(t, transportOf(i), binary, "s", at, port, seed, size)
			s.says(t, "listening")
			client.start(t, transportOf(i), binary, "c", at, port, seed, size).succeed(t)
			s.succeed(t)
		}
		server.holdsNothing(t)
		client.holdsNothing(t)
	}
	t.Run("loopback", func(t *testing.T) {
		d := startDaemon(t)
		run(t, d, d, address)
	})
	t.Run("memif", func(t *testing.T) {
		server, client, at := startWire(t)
		run(t, server, client, at)
	})
}

// TestRsocketsPeerKilled: killing one end ends the connection for the other.
func TestRsocketsPeerKilled(t *testing.T) {
	binary := rsocketsProgram(t, "wait")
	run := func(t *testing.T, server, client *daemon, at string) {
		s := server.start(t, "iwarp", binary, "s", at, "7790")
		s.says(t, "listening")
		c := client.start(t, "iwarp", binary, "c", at, "7790")
		s.says(t, "connected")
		if err := c.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		s.succeed(t)
		server.holdsNothing(t)
		client.holdsNothing(t)
	}
	t.Run("loopback", func(t *testing.T) {
		d := startDaemon(t)
		run(t, d, d, address)
	})
	t.Run("memif", func(t *testing.T) {
		server, client, at := startWire(t)
		run(t, server, client, at)
	})
}

// TestRsocketsKeepalive: idle sockets with SO_KEEPALIVE send messages, and the server's program sees none.
func TestRsocketsKeepalive(t *testing.T) {
	d, binary := startDaemon(t), rsocketsProgram(t, "wait")
	for i := range 3 {
		port := strconv.Itoa(7795 + i)
		s := d.start(t, transportOf(i), binary, "s", address, port, "keepalive")
		s.says(t, "listening")
		c := d.start(t, transportOf(i), binary, "c", address, port, "keepalive")
		s.says(t, "connected")
		for n := d.sent(t) + 4; d.sent(t) < n; time.Sleep(50 * time.Millisecond) {
		}
		if err := c.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		s.succeed(t)
	}
	d.holdsNothing(t)
}

// TestRsocketsDaemonKilled: the end of urdmad ends connections, too.
func TestRsocketsDaemonKilled(t *testing.T) {
	d, binary := startDaemon(t), rsocketsProgram(t, "wait")
	s := d.start(t, "iwarp", binary, "s", address, "7791")
	s.says(t, "listening")
	d.start(t, "iwarp", binary, "c", address, "7791")
	s.says(t, "connected")
	d.Kill()
	s.succeed(t)
}

// holdsNothing waits until urdmad has no objects of any client.
func (d *daemon) holdsNothing(t *testing.T) {
	t.Helper()
	var left map[string]any
	lists := []string{"clients", "queue_pairs", "completion_queues", "memory_regions", "protection_domains", "connections",
		"listeners"}
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		left = d.status(t)
		n := 0
		for _, name := range lists {
			list, _ := left[name].([]any)
			n += len(list)
		}
		if n == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("urdmad still has clients %v, queue pairs %v, connections %v", left["clients"], left["queue_pairs"],
				left["connections"])
		}
	}
}

// listens waits until a server has a listening id: an earlier client is refused.
func (d *daemon) listens(t *testing.T, p *program) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		status, err := d.askStatus(t)
		listeners, _ := status["listeners"].([]any)
		for _, l := range listeners {
			if l.(map[string]any)["pid"] == float64(p.cmd.Process.Pid) {
				return
			}
		}
		if time.Now().After(end) {
			t.Fatalf("%v does not listen (%v):\n%s", p.args, err, p.output.String())
		}
	}
}

// status returns urdmad's snapshot.
func (d *daemon) status(t *testing.T) (status map[string]any) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		status, err := d.askStatus(t)
		if err == nil {
			return status
		}
		if time.Now().After(end) || !strings.Contains(err.Error(), "does not answer within") {
			t.Fatal(err)
		}
	}
}

// askStatus returns an error if urdmad is too busy to answer in time, as while 1,000 connections end.
func (d *daemon) askStatus(t *testing.T) (status map[string]any, err error) {
	t.Helper()
	var said bytes.Buffer
	command := exec.Command(built(t, "urdma"), "status", "--json", "--socket", d.Socket)
	command.Stderr = &said
	out, err := command.Output()
	if err == nil {
		err = json.Unmarshal(out, &status)
	}
	if err != nil {
		err = fmt.Errorf("urdma status: %w: %s", err, said.String())
	}
	return status, err
}

// TestRsocketsPrograms runs the programs of rdmacm-utils.
func TestRsocketsPrograms(t *testing.T) {
	d := startDaemon(t)
	for i, args := range []string{
		"rstream -S all -I 5 -C 5 -T v", "rstream -S 1000 -I 50 -C 20 -T a", "rstream -S 65536 -I 5 -C 20 -T n",
		"rstream -S 100 -I 20 -C 20 -T r",
		"rstream -S 4096 -I 20 -C 20 -T b -B 20000", "rstream -S 100 -I 50 -C 10 -i 16 -k 10 -T b",
		"riostream -S 65536 -I 3 -C 5 -T v",
	} {
		t.Run(args, func(t *testing.T) {
			words := words(t, args+" -p "+strconv.Itoa(7800+i))
			server := d.start(t, transportOf(i), append(words, "-b", address)...)
			d.listens(t, server)
			d.start(t, transportOf(i), append(words, "-s", address)...).succeed(t)
			server.succeed(t)
		})
	}
}

// TestRcopy copies a file and compares it; a larger one with URDMA_LONG.
func TestRcopy(t *testing.T) {
	d, dir, size := startDaemon(t), t.TempDir(), 3_000_001
	if os.Getenv("URDMA_LONG") != "" {
		size = 1 << 30
	}
	content := make([]byte, size)
	_, _ = rand.Read(content)
	if err := os.WriteFile(dir+"/from", content, 0o600); err != nil {
		t.Fatal(err)
	}
	d.listens(t, d.start(t, "iwarp", words(t, "rcopy -p 7850")...))
	d.start(t, "iwarp", words(t, fmt.Sprintf("rcopy %s/from ADDRESS:%s/to -p 7850", dir, dir))...).succeed(t)
	if copied, err := os.ReadFile(dir + "/to"); err != nil || !bytes.Equal(copied, content) {
		t.Errorf("the copy differs (%d bytes of %d): %v", len(copied), size, err)
	}
}

// TestPreloadedSockets: a program with ordinary sockets runs with librspreload, also in its mode for programs
// that fork. Its bytes go through urdmad.
func TestPreloadedSockets(t *testing.T) {
	if _, err := os.Stat(preloadLibrary); err != nil {
		t.Skipf("needs librdmacm1's librspreload: %v", err)
	}
	d, binary := startDaemon(t), rsocketsProgram(t, "echo")
	d.extra = []string{"LD_PRELOAD=" + built(t, "liburdma.so") + ":" + preloadLibrary}
	for i, at := range []string{address, "127.0.0.1"} {
		before := d.messages(t)
		// an address that the kernel also has, because the kernel carries the first bytes of such sockets
		if at == "127.0.0.1" {
			d.extra = append(d.extra, "RDMAV_FORK_SAFE=1")
		}
		port := strconv.Itoa(7860 + i)
		s := d.start(t, "iwarp", binary, "s", at, port, "0")
		s.says(t, "listening")
		d.start(t, "iwarp", binary, "c", at, port, "400000").succeed(t)
		s.succeed(t)
		if d.messages(t) == before {
			t.Errorf("%s: not one message went through urdmad", at)
		}
	}
}

// TestPreloadedDatagrams: the same with datagrams, of both families.
func TestPreloadedDatagrams(t *testing.T) {
	if _, err := os.Stat(preloadLibrary); err != nil {
		t.Skipf("needs librdmacm1's librspreload: %v", err)
	}
	binary := rsocketsProgram(t, "messages")
	for at, d := range map[string]*daemon{address: startDaemon(t), address6: startDaemonOn(t, loopbackIP6)} {
		d.extra = []string{"LD_PRELOAD=" + built(t, "liburdma.so") + ":" + preloadLibrary}
		before := d.messages(t)
		s := d.start(t, "roce", binary, "s", at, "7870", "0")
		s.says(t, "bound")
		d.start(t, "roce", binary, "c", at, "7870", "20").succeed(t)
		s.succeed(t)
		if n := d.messages(t) - before; n < 42 {
			t.Errorf("%s: %v messages went through urdmad", at, n)
		}
	}
}

// messages returns the number of messages that urdmad's queue pairs have sent.
func (d *daemon) messages(t *testing.T) float64 {
	t.Helper()
	return named(d.status(t), "messages_sent")
}

// sent returns the number of messages that the queue pairs which exist now have sent.
func (d *daemon) sent(t *testing.T) (n float64) {
	t.Helper()
	pairs, _ := d.status(t)["queue_pairs"].([]any)
	for _, pair := range pairs {
		n += named(pair, "messages_sent")
	}
	return n
}

// named adds up all numbers with that name, at any depth.
func named(v any, name string) (n float64) {
	object, _ := v.(map[string]any)
	for k, x := range object {
		if f, ok := x.(float64); ok && k == name {
			n += f
		}
		n += named(x, name)
	}
	return n
}
