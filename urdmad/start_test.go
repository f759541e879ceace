package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"urdma/test/programtest"
)

// written makes a configuration with one loopback port and more settings.
func written(t *testing.T, dir, more string) source {
	t.Helper()
	file := filepath.Join(dir, "urdma.json")
	text := `{"ports":[{"vdev":"loopback","ipv4_address":"198.18.0.1/24"}],"socket":"` +
		filepath.Join(dir, "urdmad.sock") + `"` + more + `}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return source{file: file}
}

// served runs a urdmad until the test ends, and returns when it serves clients, the last step of its start.
func served(t *testing.T, src source) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- runDaemon(ctx, src) }()
	done := false
	stop = func() error {
		cancel()
		if done {
			return nil
		}
		done = true
		return <-ended
	}
	t.Cleanup(func() { _ = stop() })
	socket := filepath.Join(filepath.Dir(src.file), "urdmad.sock")
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if c, err := net.Dial("unixpacket", socket); err == nil { // the file exists before urdmad listens
			c.Close()
			break
		}
	}
	c, status := greet(t, socket)
	c.Close()
	if status != 0 {
		t.Fatalf("HELLO: %v", status)
	}
	return stop
}

// TestResponderOption: the option replaces the configuration's value.
func TestResponderOption(t *testing.T) {
	src := written(t, t.TempDir(), `,"responder":"off"`)
	src.responder = "ping"
	cfg, _, err := src.load()
	if err != nil || cfg.Responder != "ping" || settings(cfg.Settings)["responder"] != `"ping"` {
		t.Errorf("%+v, %v", cfg, err)
	}
	src.responder = "fast"
	if _, _, err := src.load(); err == nil ||
		!strings.Contains(err.Error(), `responder: found "fast", allowed: one of off, ping`) {
		t.Errorf("%v", err)
	}
}

// TestCoreThatIsNotThere: urdmad refuses to start; the error has the setting and the existing cores, and the exit
// status is that of a wrong configuration.
func TestCoreThatIsNotThere(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := runDaemon(ctx, written(t, t.TempDir(), `,"workers":[{"core":4000}]`))
	var wrong configError
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(),
		"workers[0].core: found 4000, allowed: a core that urdmad may use here: 0") {
		t.Errorf("urdmad ended with %v", err)
	}
}

// TestArgumentsForNoEAL: arguments that would not be used are refused.
func TestArgumentsForNoEAL(t *testing.T) {
	src := written(t, t.TempDir(), "")
	src.ealArgs = []string{"--bogus"}
	err := runDaemon(context.Background(), src)
	var wrong configError
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "--bogus") {
		t.Errorf("urdmad ended with %v", err)
	}
}

// TestArgumentsWithoutDashes: a configuration's file name without an option is not taken for an argument for DPDK.
func TestArgumentsWithoutDashes(t *testing.T) {
	c := command()
	c.SetArgs([]string{"urdma.json"})
	err := c.Execute()
	var wrong configError
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), `"urdma.json"`) ||
		!strings.Contains(err.Error(), "--config") {
		t.Errorf("urdmad ended with %v", err)
	}
}

// TestSecondUrdmad: its error names the first one, whose files it does not touch.
func TestSecondUrdmad(t *testing.T) {
	dir := t.TempDir()
	src := written(t, dir, "")
	stop := served(t, src)
	err := runDaemon(context.Background(), src)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("another urdmad, process %d, listens on ", os.Getpid())) {
		t.Errorf("the second urdmad: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "urdmad.sysfs", "class", "infiniband", "urdma0")); err != nil {
		t.Errorf("the first one's files: %v", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "urdmad.sysfs")); err == nil {
		t.Error("the first one's files are left")
	}
}

// TestFailedPortLeavesNothing: a port that can't be opened is an error of the configuration, and the EAL's directory
// is removed. The EAL can be started only once in a process, so urdmad runs in its own.
func TestFailedPortLeavesNothing(t *testing.T) {
	if file := os.Getenv("URDMA_TEST_CONFIG"); file != "" {
		err := runDaemon(context.Background(), source{file: file})
		var wrong configError
		if !errors.As(err, &wrong) {
			t.Errorf("urdmad ended with %v", err)
		}
		return
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "urdma.json")
	text := `{"ports":[{"vdev":"net_af_packet0,iface=nosuch0","ipv4_address":"198.18.0.1/24"}],"socket":"` +
		filepath.Join(dir, "urdmad.sock") + `"}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	runtime := filepath.Join(dir, "runtime")
	if err := os.Mkdir(runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0], "-test.run=^TestFailedPortLeavesNothing$")
	c.Env = append(os.Environ(), "URDMA_TEST_CONFIG="+file, "RUNTIME_DIRECTORY="+runtime, "XDG_RUNTIME_DIR="+runtime)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for _, pattern := range []string{runtime + "/dpdk/urdmad-*", fmt.Sprintf("/var/run/dpdk/urdmad-%d", c.Process.Pid)} {
		if left, _ := filepath.Glob(pattern); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	}
}

// TestWorkerEnds: if a poll loop ends, urdmad ends.
func TestWorkerEnds(t *testing.T) {
	src := written(t, t.TempDir(), "")
	cfg, _, err := src.load()
	if err != nil {
		t.Fatal(err)
	}
	hups := watchHangUps()
	defer hups.stop()
	d := newDaemon(src, cfg)
	if err := d.start(); err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- errors.Join(d.run(context.Background(), hups), d.stop()) }()
	if err := d.Pollers[0].Worker.Stop(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ran:
		if err == nil || !strings.Contains(err.Error(), "the poll loop has ended") {
			t.Errorf("urdmad ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("urdmad goes on without a poll loop")
	}
}

// TestMetricsReaderThatReadsNothing: such a reader delays neither the notification of clients nor urdmad's end.
func TestMetricsReaderThatReadsNothing(t *testing.T) {
	var took time.Duration
	for range 5 { // a slow machine may fail sometimes, but not always
		if took = endBesideReader(t); took < 4*time.Second {
			return
		}
	}
	t.Errorf("urdmad took %v to end, as if it waited for the request", took)
}

// endBesideReader returns how long a urdmad takes to end while a request to it has arrived in part; it has 5 s.
func endBesideReader(t *testing.T) time.Duration {
	t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", programtest.FreePort(t))
	stop := served(t, written(t, t.TempDir(), `,"metrics_address":"`+address+`"`))
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("GET /metrics HTTP/1.1\r\n")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // for the server to accept it
	begun := time.Now()
	if err := stop(); err != nil {
		t.Error(err)
	}
	return time.Since(begun)
}
