package testpmd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// killed is the environment variable with the output prefix for a process that is to be killed.
const killed = "URDMA_TESTPMD_KILLED"

func TestMain(m *testing.M) {
	if prefix := os.Getenv(killed); prefix != "" {
		null := Port{Vdev: "net_null0"}
		_, err := Between(prefix, null, null, 64, 3600)
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// A killed bench leaves no testpmd behind, which would poll for ever.
func TestNothingOutlivesTheBench(t *testing.T) {
	if _, err := exec.LookPath("dpdk-testpmd"); err != nil {
		t.Skip("dpdk-testpmd is not installed; make deps")
	}
	prefix := filepath.Join(t.TempDir(), "null")
	bench := exec.Command(os.Args[0])
	bench.Env = append(os.Environ(), killed+"="+prefix)
	bench.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // in case the test itself is killed
	if err := bench.Start(); err != nil {
		t.Fatal(err)
	}
	var ours [2]string // identifying arguments of its two testpmds
	for cpu := range ours {
		ours[cpu] = fmt.Sprintf("\x00--file-prefix=urdmabench%d%d\x00", bench.Process.Pid, cpu)
	}
	t.Cleanup(func() {
		for _, pid := range processes(ours[:]) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		for cpu := range ours { // the EAL leaves them, empty
			os.Remove(fmt.Sprintf("/var/run/dpdk/urdmabench%d%d", bench.Process.Pid, cpu))
		}
	})
	if !within(time.Minute, func() bool { return len(processes(ours[:])) == 2 }) {
		t.Errorf("the bench has %d testpmds, want 2", len(processes(ours[:])))
	}
	_ = bench.Process.Kill()
	_ = bench.Wait()
	if !within(time.Minute/2, func() bool { return len(processes(ours[:])) == 0 }) {
		t.Errorf("%d testpmds outlive it", len(processes(ours[:])))
	}
}

// processes are the processes that have one of the arguments.
func processes(arguments []string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		var pid int
		b, err := os.ReadFile(file)
		if _, bad := fmt.Sscanf(file, "/proc/%d/", &pid); err == nil && bad == nil &&
			slices.ContainsFunc(arguments, func(a string) bool { return strings.Contains(string(b), a) }) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// within waits until ok.
func within(limit time.Duration, ok func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return true
		}
	}
	return ok()
}

// A testpmd whose port can't be opened runs on without it; the error says why.
func TestPortThatCannotBeOpened(t *testing.T) {
	if _, err := exec.LookPath("dpdk-testpmd"); err != nil {
		t.Skip("dpdk-testpmd is not installed; make deps")
	}
	none := Port{Vdev: "net_af_packet0,iface=nosuch0"}
	_, err := Between(filepath.Join(t.TempDir(), "none"), none, none, 64, 0)
	if err == nil || !strings.Contains(err.Error(), "no port: ") ||
		!strings.Contains(err.Error(), "failed to initialize net_af_packet0") {
		t.Errorf("got %v", err)
	}
}
