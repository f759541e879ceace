package programtest

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
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

// Start starts a urdmad and waits until it answers. It ends with the test. With URDMA_WORKERS it has as many workers,
// as those of lab.Wire.
func Start(t testing.TB, args ...string) *Daemon {
	t.Helper()
	dir := t.TempDir()
	if n, _ := strconv.Atoi(os.Getenv("URDMA_WORKERS")); n > 0 {
		args = withWorkers(t, n, filepath.Join(dir, "urdma.json"), args)
	}
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

// withWorkers returns arguments with a configuration, in file, that has n workers: the one that args name, or else the
// built-in one.
func withWorkers(t testing.TB, n int, file string, args []string) []string {
	t.Helper()
	text := []byte(`{"ports": [{"vdev": "loopback", "ipv4_address": "198.18.0.1/24"}]}`)
	args = slices.Clone(args)
	if i := slices.Index(args, "--config"); i >= 0 {
		var err error
		if text, err = os.ReadFile(args[i+1]); err != nil {
			t.Fatal(err)
		}
		args = slices.Delete(args, i, i+2)
	}
	var settings map[string]any
	if err := json.Unmarshal(text, &settings); err != nil {
		t.Fatal(err)
	}
	settings["workers"] = make([]struct{}, n)
	text, err := json.Marshal(settings)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return append(args, "--config", file)
}

// Kill ends urdmad as a crash would.
func (d *Daemon) Kill() {
	d.ended.Do(func() {
		_ = d.Cmd.Process.Kill() // it may have ended by itself
		_ = d.Cmd.Wait()         // reports the signal
	})
}
