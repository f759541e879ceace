package verbs_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"urdma/verbs"
)

const patience = 20 * time.Second

var (
	buildOnce sync.Once
	buildDir  string
	buildErr  error
)

func TestMain(m *testing.M) {
	status := m.Run()
	if buildDir != "" {
		os.RemoveAll(buildDir)
	}
	os.Exit(status)
}

// built builds urdmad and the examples once and returns one's path.
func built(t *testing.T, name string) string {
	t.Helper()
	buildOnce.Do(func() {
		if buildDir, buildErr = os.MkdirTemp("", "urdma-verbs-test"); buildErr != nil {
			return
		}
		out, err := exec.Command("go", "build", "-o", buildDir+"/", "urdma/urdmad", "urdma/examples/go/ping").CombinedOutput()
		if err != nil {
			buildErr = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if buildErr != nil {
		t.Fatalf("building urdmad: %v", buildErr)
	}
	return filepath.Join(buildDir, name)
}

// daemon is a urdmad with one loopback port.
type daemon struct {
	cmd    *exec.Cmd
	socket string
	log    bytes.Buffer
}

const address = "198.18.7.1"

func startDaemon(t *testing.T) *daemon {
	t.Helper()
	dir := t.TempDir()
	d := &daemon{socket: filepath.Join(dir, "s")}
	config := filepath.Join(dir, "urdma.json")
	text := fmt.Sprintf(`{"ports": [{"vdev": "loopback", "ipv4_address": "%s/24"}], "socket": "%s"}`, address, d.socket)
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
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if c, err := verbs.OpenSocket(d.socket); err == nil {
			c.Close()
			return d
		} else if time.Now().After(end) {
			t.Fatalf("urdmad doesn't answer: %v\n%s", err, d.log.String())
		}
	}
}

// kill ends urdmad as a crash would.
func (d *daemon) kill() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}
