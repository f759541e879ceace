package test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

const (
	buildDir = "../../../../build"
	address  = "10.77.0.1"
	patience = 5 * time.Minute
)

// daemon is a urdmad with one loopback port, for programs of one test.
type daemon struct {
	cmd    *exec.Cmd
	socket string
	log    output
	extra  []string // additional environment variables of its programs
}

// output collects the output of a process, which can be read while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// built returns the absolute path of a file built by `make build`.
func built(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(buildDir, name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("needs what `make build` makes: %v", err)
	}
	return path
}

func startDaemon(t *testing.T) *daemon {
	t.Helper()
	return startDaemonOn(t, fmt.Sprintf(`{"vdev": "loopback", "ipv4_address": "%s/24"}`, address))
}

// startDaemonOn starts a urdmad with this port in urdma.json.
func startDaemonOn(t *testing.T, port string) *daemon {
	t.Helper()
	dir := t.TempDir()
	d := &daemon{socket: filepath.Join(dir, "urdmad.sock")}
	config := filepath.Join(dir, "urdma.json")
	text := fmt.Sprintf(`{"ports": [%s], "socket": "%s"}`, port, d.socket)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d.cmd = exec.Command(built(t, "urdmad"), "--config", config)
	d.cmd.Stdout, d.cmd.Stderr = &d.log, &d.log
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.kill()
		if t.Failed() {
			t.Logf("urdmad said:\n%s", d.log.String())
		}
	})
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("unixpacket", d.socket); err == nil { // the socket exists before urdmad listens
			c.Close()
			return d
		}
		if time.Now().After(end) {
			t.Fatalf("urdmad made no socket:\n%s", d.log.String())
		}
	}
}

// kill ends urdmad as a crash would.
func (d *daemon) kill() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

// program is one side of a test, running on a daemon.
type program struct {
	args   []string
	cmd    *exec.Cmd
	cancel context.CancelFunc
	output output
	done   chan error
}

func (d *daemon) start(t *testing.T, transport string, args ...string) *program {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	p := &program{args: args, cancel: cancel, done: make(chan error, 1)}
	p.cmd = exec.CommandContext(ctx, args[0], args[1:]...)
	p.cmd.Env = append(os.Environ(), "LD_PRELOAD="+built(t, "liburdma.so"), "URDMA_SOCKET="+d.socket,
		"URDMA_TRANSPORT="+transport)
	p.cmd.Env = append(p.cmd.Env, d.extra...)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.done <- p.cmd.Wait() }()
	t.Cleanup(cancel)
	return p
}

// succeed waits for the program's end, which must be a success.
func (p *program) succeed(t *testing.T) {
	t.Helper()
	if err := <-p.done; err != nil {
		t.Errorf("%v: %v\n%s", p.args, err, p.output.String())
	}
}

// fail waits for the program to end by itself, which must be a failure.
func (p *program) fail(t *testing.T) {
	t.Helper()
	err := <-p.done
	if exit, ok := err.(*exec.ExitError); !ok || !exit.Exited() {
		t.Errorf("%v: ended with %v, expected a failure of its own\n%s", p.args, err, p.output.String())
	}
}
