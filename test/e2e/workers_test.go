package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"urdma/test/bystander"
	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// TestStandingWorker: while a worker is stopped its clients wait and another worker's clients continue; afterwards
// all continue. On a port with one queue worker 0 polls for all, so there the other worker is stopped.
func TestStandingWorker(t *testing.T) {
	cores := twoCores(t)
	settings := lab.Config{"death_timeout_ms": 60000,
		"workers": []any{lab.Config{"core": cores[0]}, lab.Config{"core": cores[1]}}}
	for _, x := range []struct {
		wire   lab.Wire
		stands []int
	}{{lab.UDP, []int{0, 1}}, {lab.TCP, []int{0, 1}}, {lab.Memif, []int{0, 1}}, {lab.AFPacket, []int{1}}} {
		t.Run(x.wire.Name, func(t *testing.T) {
			a, b := labtest.Join(t, x.wire.WithWorkers(2), settings)
			ctx, cancel := context.WithTimeout(context.Background(), 5*lab.Patience)
			defer cancel()
			var pairs [2]*bystander.Pair // a client of each worker, at either host
			for i := range pairs {
				p, err := bystander.New(ctx, a.Socket(), b.Socket(), fmt.Sprintf("%s:%d", a.Address, 7900+i), uint64(i))
				if err != nil {
					t.Fatal(err)
				}
				defer p.Close()
				pairs[i] = p
			}
			for _, worker := range x.stands {
				s := stand{t, threadOn(t, a.Daemon.PID(), cores[worker])}
				s.during(func() { oneGoesOn(t, worker, pairs) })
				before := rounds(pairs)
				await(t, "both pairs to go on", func() (bool, string) {
					now := rounds(pairs)
					return now[0] > before[0]+10 && now[1] > before[1]+10,
						fmt.Sprintf("worker %d: rounds %v, were %v", worker, now, before)
				})
			}
			for _, p := range pairs {
				if err := p.Stop(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func rounds(pairs [2]*bystander.Pair) (n [2]int64) {
	for i, p := range pairs {
		n[i] = p.Client.Rounds()
	}
	return n
}

// oneGoesOn waits for many rounds of one of the pairs, in which the other pair may finish its current round.
func oneGoesOn(t *testing.T, worker int, pairs [2]*bystander.Pair) {
	before := rounds(pairs)
	var more [2]int64
	await(t, "a pair to go on", func() (bool, string) {
		now := rounds(pairs)
		more = [2]int64{now[0] - before[0], now[1] - before[1]}
		return max(more[0], more[1]) > 100, fmt.Sprintf("worker %d stands, rounds %v", worker, more)
	})
	t.Logf("while worker %d stood: %v rounds", worker, more)
	if min(more[0], more[1]) > 1 {
		t.Errorf("worker %d stands, and both pairs go on: %v rounds", worker, more)
	}
}

// twoCores returns two cores that this process may use.
func twoCores(t *testing.T) (two [2]int) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	n := 0
	for core := 0; n < len(two); core++ {
		if core == len(set)*64 {
			t.Skip("SKIPPED: two workers with cores of their own need two processors")
		}
		if set.IsSet(core) {
			two[n] = core
			n++
		}
	}
	return two
}

// threadOn returns the thread of a process that runs on one core only: a worker. It must not be the main thread: to the
// lab, which waits for the end of the process, a stop of the traced main thread looks like this end.
func threadOn(t *testing.T, pid, core int) int {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		tid, _ := strconv.Atoi(filepath.Base(f))
		var set unix.CPUSet
		if unix.SchedGetaffinity(tid, &set) == nil && set.Count() == 1 && set.IsSet(core) {
			if tid == pid {
				t.Fatalf("the worker on core %d has the main thread", core)
			}
			return tid
		}
	}
	t.Fatalf("process %d has no thread that runs on core %d alone", pid, core)
	return 0
}

// stand stops one thread of another process, which only its tracer can do.
type stand struct {
	t   *testing.T
	tid int
}

func (s *stand) during(fn func()) {
	s.t.Helper()
	runtime.LockOSThread() // this thread is the tracer
	defer runtime.UnlockOSThread()
	if err := unix.PtraceSeize(s.tid); err != nil {
		if os.Getuid() != 0 {
			s.t.Skipf("SKIPPED: a thread can't be stopped: %v; root may", err)
		}
		s.t.Fatal(err)
	}
	defer func() {
		if err := unix.PtraceDetach(s.tid); err != nil {
			s.t.Error(err)
		}
	}()
	if err := unix.PtraceInterrupt(s.tid); err != nil {
		s.t.Fatal(err)
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(s.tid, &status, unix.WALL, nil); err != nil || !status.Stopped() {
		s.t.Fatalf("the thread did not stop: %v, status %#x", err, status)
	}
	fn()
}

// TestAcrossPorts: clients of two workers reach each other through any two ports of their urdmad: by rdma_cm, and by
// number over wires with different packet formats.
func TestAcrossPorts(t *testing.T) {
	const second = "198.18.9.1"
	udp := lab.Config{"vdev": "udp"}
	roce := lab.Config{"vdev": "udp", "protocol": "rocev2"}
	wires := map[string][2]lab.Config{
		"udp and udp":                 {udp, udp},
		"udp and tcp":                 {udp, {"vdev": "tcp"}},
		"frames and udp":              {{"vdev": lab.AFPacket.Device}, udp},
		"rocev2, both frames and udp": {{"vdev": lab.AFPacket.Device, "protocol": "rocev2"}, roce},
		"udp and rocev2":              {udp, roce},
	}
	if long {
		wires["udp and loopback"] = [2]lab.Config{udp, {"vdev": "loopback", "transport": "iwarp"}}
	}
	for name, ports := range wires {
		t.Run(name, func(t *testing.T) {
			w := lab.UDP
			if ports[0]["vdev"] == lab.AFPacket.Device {
				w = lab.AFPacket
			}
			a, _ := labtest.Join(t, w.WithWorkers(2), nil)
			addresses := [2]string{a.Address, second}
			var list []any
			for i, p := range ports {
				p = maps.Clone(p)
				p["ipv4_address"] = addresses[i] + "/24"
				list = append(list, p)
			}
			for _, do := range []func() error{a.StopDaemon, func() error { return a.Change("ports", list) },
				func() error { return a.Net.Run("ip", "address", "add", second+"/24", "dev", "veth0") }, a.StartDaemon} {
				if err := do(); err != nil {
					t.Fatal(err)
				}
			}
			for i, to := range addresses {
				pass(t, lab.Pair{ServerNode: a, ClientNode: a, Server: []string{"rping", "-s", "-a", to, "-C", "10"},
					Client: []string{"rping", "-c", "-I", addresses[1-i], "-a", to, "-C", "10"}})
				for n, kind := range []string{"rc", "uc", "ud"} {
					if name == "udp and rocev2" && kind != "rc" { // only a connection determines the protocol
						continue
					}
					port := 18700 + n
					line := []string{"ibv_" + kind + "_pingpong", "-g", "0", "-n", "100", "-p", fmt.Sprint(port), "-d"}
					pass(t, lab.Pair{ServerNode: a, ClientNode: a, TCPPort: port,
						Server: append(slices.Clone(line), fmt.Sprint("urdma", i)),
						Client: append(line, fmt.Sprint("urdma", 1-i), "127.0.0.1")})
				}
			}
		})
	}
}
