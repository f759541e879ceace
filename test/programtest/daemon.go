package programtest

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Daemon is a urdmad for one test, with the built-in configuration unless arguments change it.
type Daemon struct {
	Cmd    *exec.Cmd
	Dir    string // its XDG_RUNTIME_DIR
	Socket string // its control socket
	Said   Output
	ended  sync.Once
}

// Output collects the output of a process, and can be read while it runs.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Start starts a urdmad and waits until it answers. It ends with the test.
func Start(t testing.TB, args ...string) *Daemon {
	t.Helper()
	dir := t.TempDir()
	d := &Daemon{Cmd: exec.Command(Program(t, "urdma/urdmad"), args...), Dir: dir,
		Socket: filepath.Join(dir, "urdma", "urdmad.sock")}
	d.Cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "URDMA_SOCKET=")
	d.Cmd.Stdout, d.Cmd.Stderr = &d.Said, &d.Said
	if err := d.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.Kill()
		if t.Failed() {
			t.Logf("urdmad said:\n%s", d.Said.String())
		}
	})
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if c, err := net.Dial("unixpacket", d.Socket); err == nil { // the file exists before urdmad listens
			c.Close()
			return d
		}
	}
	t.Fatal("urdmad did not open its socket within a minute")
	return nil
}

// Kill ends urdmad as a crash would.
func (d *Daemon) Kill() {
	d.ended.Do(func() {
		_ = d.Cmd.Process.Kill() // it may have ended by itself
		_ = d.Cmd.Wait()         // reports the signal
	})
}
