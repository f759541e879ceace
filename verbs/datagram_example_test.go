package verbs_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"urdma/test/programtest"
)

// TestDatagramExample: examples/go/ud with two clients.
func TestDatagramExample(t *testing.T) {
	ud := programtest.Program(t, "urdma/examples/go/ud")
	d := startDaemon(t)
	address := fmt.Sprintf("127.0.0.1:%d", programtest.FreePort(t))
	run := func(args ...string) (*exec.Cmd, *strings.Builder) {
		c, said := exec.CommandContext(patience(t), ud, args...), new(strings.Builder)
		c.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+d.Dir, "URDMA_SOCKET=")
		c.Stdout, c.Stderr = said, said
		ok(t, c.Start())
		return c, said
	}
	server, served := run("-listen", address, "-clients", "2")
	for i := range 2 {
		var client *exec.Cmd
		var heard *strings.Builder
		var err error
		for range 3000 { // until it listens
			client, heard = run("-n", "300", address)
			if err = client.Wait(); err == nil || !strings.Contains(heard.String(), "refused") {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil || !strings.Contains(heard.String(), "OK: 300 datagrams") {
			t.Errorf("client %d: %v\n%s", i, err, heard)
		}
		t.Log(heard)
	}
	if err := server.Wait(); err != nil || !strings.Contains(served.String(), "OK: 2 clients") {
		t.Errorf("server: %v\n%s", err, served)
	}
}
