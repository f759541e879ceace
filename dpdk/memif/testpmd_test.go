package memif

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"urdma/dpdk/port"
	"urdma/dpdk/port/porttest"
)

// startTestpmd runs DPDK's own memif driver as the peer, which sends every frame back once forward was called. That is
// to be done when the link is up: the driver of DPDK 22.11 crashes now and then if its rings are polled while it
// connects.
func startTestpmd(t *testing.T, role, path string, extra string, args ...string) (cmd *exec.Cmd, forward func()) {
	t.Helper()
	bin, err := exec.LookPath("dpdk-testpmd")
	if err != nil {
		t.Skip("SKIPPED: dpdk-testpmd (Debian package dpdk-dev) is not installed")
	}
	fifo := filepath.Join(t.TempDir(), "stdin")
	if err := exec.Command("mkfifo", fifo).Run(); err != nil {
		t.Fatal(err)
	}
	// Its main thread reads stdin all the time unless stdin stays open.
	stdin, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	prefix := fmt.Sprintf("urdmatest%d", time.Now().UnixNano()%1e9)
	cmd = exec.Command(bin, append([]string{"--no-huge", "--no-shconf", "-m", "256", "--no-pci", "--no-telemetry",
		"--lcores", "0@0,1@0",
		"--file-prefix=" + prefix,
		fmt.Sprintf("--vdev=net_memif0,role=%s,id=0,socket=%s,socket-abstract=no%s", role, path, extra),
		"--", "-i", "--forward-mode=io", "--no-flush-rx", "--total-num-mbufs=8192"}, args...)...)
	cmd.Stdin = stdin
	// otherwise it would run for ever after the test is killed
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		ended := cmd.Wait()
		stdin.Close()
		for _, dir := range []string{"/var/run", os.Getenv("XDG_RUNTIME_DIR"), "/tmp"} {
			os.Remove(filepath.Join(dir, "dpdk", prefix)) // the EAL leaves the empty directory behind
		}
		if t.Failed() {
			b, _ := os.ReadFile(log.Name())
			t.Logf("testpmd: %v; it said:\n%s", ended, b)
		}
	})
	return cmd, func() {
		t.Helper()
		if _, err := stdin.WriteString("start\n"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestInteroperatesWithNetMemif sends frames of all sizes through testpmd and
// back, in both roles, with buffers that fit a frame and buffers that don't.
func TestInteroperatesWithNetMemif(t *testing.T) {
	for _, c := range []struct {
		name, role, extra string
		mtu, ring         int
	}{
		{"we are the client", "server", "", 1500, 1024},
		{"we are the server", "client", "", 1500, 0},
		{"we are the server, small buffers", "client", ",bsize=512,rsize=8", 1500, 0},
		{"we are the client, small ring", "server", "", 1500, 64},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "memif") // no comma in the name, unlike the subtest's
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			path := filepath.Join(dir, "m.sock")
			o := Options{Name: "ours", SocketPath: path, Server: c.role == "client", MTU: c.mtu, RingSize: c.ring}
			var p tested
			if o.Server {
				p = mustOpen(t, o)
			}
			_, forward := startTestpmd(t, c.role, path, c.extra)
			if !o.Server {
				p = mustOpen(t, o)
			}
			waitLink(t, true, p)
			forward()
			porttest.Echo(t, p, 3000, func() { time.Sleep(20 * time.Microsecond) })
		})
	}
}

// TestNetMemifWithQueues: testpmd sends each frame back on the queue with the same number, with as many
// queues as we have, fewer, and more.
func TestNetMemifWithQueues(t *testing.T) {
	for _, c := range []struct {
		role         string
		ours, theirs int
		rings        int // in each direction
	}{{"server", 2, 2, 2}, {"client", 2, 2, 2}, {"server", 3, 1, 1}, {"client", 3, 1, 1}, {"client", 8, 8, 8}} {
		t.Run(fmt.Sprintf("%s, our queues %d, its %d", c.role, c.ours, c.theirs), func(t *testing.T) {
			dir, err := os.MkdirTemp("", "memif")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			path := filepath.Join(dir, "m.sock")
			queues := fmt.Sprint(c.theirs)
			p := mustOpen(t, Options{Name: "ours", SocketPath: path, Server: c.role == "client", Queues: c.ours, Ring: ringOf})
			_, forward := startTestpmd(t, c.role, path, "", "--rxq="+queues, "--txq="+queues)
			waitLink(t, true, p)
			forward()
			for w := range c.rings {
				forwards(t, p, w)
			}
			const each = 500
			got := make([]int, c.ours)
			end := time.Now().Add(time.Minute)
			for sent, back := 0, 0; back < each*c.ours; time.Sleep(10 * time.Microsecond) {
				if time.Now().After(end) {
					t.Fatalf("of %d frames sent %d came back in a minute, by queue %v; %+v", sent, back, got, p.Stats())
				}
				var one [1]port.Packet
				if q := p.queues[sent%c.ours]; sent < each*c.ours && q.Alloc(one[:]) == 1 {
					one[0].Data = numbered(one[0].Data, byte(sent/c.ours), byte(sent%c.ours), uint32(sent+1))
					if q.Tx(one[:]) == 1 {
						sent++
					} else {
						q.Free(one[:])
					}
					q.Flush()
				}
				for w, q := range p.queues {
					var burst [16]port.Packet
					n := q.Rx(burst[:])
					for i := range burst[:n] {
						to, from, number, ok := isNumbered(burst[i].Data)
						if !ok || int(to)%c.rings != w {
							t.Errorf("queue %d received frame %d of queue %d for %d; whole: %v", w, number, from, to, ok)
						}
						if number > 0 { // number 0 was sent by forwards
							back++
							got[w]++
						}
					}
					q.Free(burst[:n])
				}
			}
			for w, n := range got {
				if want := w < c.rings; want != (n > 0) {
					t.Errorf("queue %d received %d frames, of %d rings each way", w, n, c.rings)
				}
			}
		})
	}
}

// forwards waits until testpmd sends back frames from a ring; before it drops them.
func forwards(t *testing.T, p tested, ring int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		var one [1]port.Packet
		if q := p.queues[0]; q.Alloc(one[:]) == 1 {
			one[0].Data = numbered(one[0].Data, byte(ring), 0, 0)
			q.Free(one[q.Tx(one[:]):])
			q.Flush()
		}
		if q := p.queues[ring]; q.Rx(one[:]) == 1 {
			q.Free(one[:])
			return
		}
	}
	t.Fatalf("nothing comes back by ring %d", ring)
}

// TestNetMemifKilled: testpmd is killed and started again under load.
func TestNetMemifKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.sock")
	p := mustOpen(t, Options{Name: "ours", SocketPath: path, Server: true})
	for range 3 {
		cmd, forward := startTestpmd(t, "client", path, "")
		waitLink(t, true, p)
		forward()
		pk := make([]port.Packet, 16)
		stop := time.Now().Add(50 * time.Millisecond)
		for got := 0; got == 0 || time.Now().Before(stop); {
			n := p.Alloc(pk)
			for i := range pk[:n] {
				pk[i].Data = pk[i].Data[:100]
			}
			k := p.Tx(pk[:n])
			p.Flush()
			p.Free(pk[k:n])
			n = p.Rx(pk)
			p.Free(pk[:n])
			got += n
			if time.Now().After(stop.Add(time.Minute)) {
				t.Fatal("nothing comes back from testpmd")
			}
		}
		cmd.Process.Kill()
		for p.Link() {
			n := p.Rx(pk)
			p.Free(pk[:n])
		}
		cmd.Wait()
	}
}
