package test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"urdma/test/lab"
)

// killRounds returns how often urdmad is killed.
func killRounds() int {
	if os.Getenv("URDMA_LONG") != "" {
		return 1000
	}
	return 30
}

// builtIn is the folder in which urdmadBinary builds; empty until then.
var builtIn string

// TestMain removes what urdmadBinary built.
func TestMain(m *testing.M) {
	status := m.Run()
	if builtIn != "" {
		os.RemoveAll(builtIn)
	}
	os.Exit(status)
}

// urdmadBinary builds the real urdmad once for all tests; or it is what the environment variable URDMA_DAEMON
// names, such as test/core/coreurdmad.
var urdmadBinary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("URDMA_DAEMON"); path != "" {
		return path, nil
	}
	if out, err := exec.Command("pkg-config", "--exists", "libdpdk").CombinedOutput(); err != nil {
		return "", fmt.Errorf("urdmad needs libdpdk-dev to build: pkg-config libdpdk: %w %s", err, out)
	}
	dir, err := os.MkdirTemp("", "urdma-slots-")
	if err != nil {
		return "", err
	}
	builtIn = dir
	path := filepath.Join(dir, "urdmad")
	out, err := exec.Command("go", "build", "-o", path, "urdma/urdmad").CombinedOutput()
	if err != nil {
		return dir, fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

// real is a real urdmad with a loopback port.
type real struct {
	cmd    *exec.Cmd
	said   bytes.Buffer
	socket string
}

func startReal(t *testing.T, args ...string) *real {
	t.Helper()
	path, err := urdmadBinary()
	if path == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r := &real{cmd: exec.Command(path, args...), socket: filepath.Join(dir, "urdma", "urdmad.sock")}
	r.cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "URDMA_SOCKET=")
	r.cmd.Stdout, r.cmd.Stderr = &r.said, &r.said
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.stop)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if c, err := net.Dial("unixpacket", r.socket); err == nil {
			c.Close()
			return r
		}
	}
	t.Fatalf("urdmad did not open its socket within a minute:\n%s", r.said.String())
	return nil
}

// startWhole is startReal for a test of what is attached to urdmad.
func startWhole(t *testing.T) *real {
	t.Helper()
	if lab.Core() {
		t.Skip("needs what is attached to urdmad; URDMA_DAEMON names one without")
	}
	return startReal(t)
}

func (r *real) stop() {
	if r.cmd.ProcessState == nil {
		_ = r.cmd.Process.Kill() // may fail: it was killed already
		_ = r.cmd.Wait()         // reports the signal
	}
}

func (r *real) run(t *testing.T, env []string, argv ...string) (said string) {
	t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.Env = append(append(os.Environ(), env...), "LD_PRELOAD="+preload(t), "URDMA_SOCKET="+r.socket,
		fmt.Sprintf("URDMAD_PID=%d", r.cmd.Process.Pid))
	guard := time.AfterFunc(3*time.Minute, func() { c.Process.Kill() })
	defer guard.Stop()
	out, err := c.CombinedOutput()
	if err != nil {
		r.stop()
		t.Fatalf("%v\n%s\nurdmad said:\n%s", err, out, r.said.String())
	}
	return string(out)
}

func slotsProgram(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "slots")
	sources, _ := filepath.Glob("testdata/slots/*.c")
	args := append([]string{"-std=gnu11", "-D_GNU_SOURCE", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-o", binary},
		sources...)
	if out, err := exec.Command("gcc",
		append(args, "-lrdmacm", "-libverbs", "-lpthread")...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return binary
}

// TestSlots runs a program on a real urdmad that checks when slots of its queues become free, and what it
// sees when urdmad is killed.
func TestSlots(t *testing.T) {
	t.Setenv("URDMA_TRANSPORT", "iwarp") // its queue pairs address each other by GID
	binary := slotsProgram(t)
	names, err := exec.Command(binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(names)) {
		rounds := 1
		if name == "killed" {
			rounds = killRounds()
		}
		t.Run(name, func(t *testing.T) {
			for range rounds {
				r := startReal(t)
				r.run(t, nil, binary, name)
				r.stop()
			}
		})
	}
}
