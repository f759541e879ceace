package test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"urdma/test/programtest"
)

const (
	buildDir = "../../../../build"
	address  = "10.77.0.1"
	patience = 5 * time.Minute
)

func TestMain(m *testing.M) { os.Exit(programtest.Main(m)) }

// daemon is a urdmad with one loopback port, for programs of one test.
type daemon struct {
	*programtest.Daemon
	extra []string // additional environment variables of its programs
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
	config := filepath.Join(t.TempDir(), "urdma.json")
	if err := os.WriteFile(config, []byte(fmt.Sprintf(`{"ports": [%s]}`, port)), 0o600); err != nil {
		t.Fatal(err)
	}
	return &daemon{Daemon: programtest.Start(t, "--config", config)}
}

// program is one side of a test, running on a daemon.
type program struct {
	args   []string
	cmd    *exec.Cmd
	cancel context.CancelFunc
	output programtest.Output
	done   chan error
}

func (d *daemon) start(t *testing.T, transport string, args ...string) *program {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	p := &program{args: args, cancel: cancel, done: make(chan error, 1)}
	p.cmd = exec.CommandContext(ctx, args[0], args[1:]...)
	p.cmd.Env = append(os.Environ(), "LD_PRELOAD="+built(t, "liburdma.so"), "URDMA_SOCKET="+d.Socket,
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
