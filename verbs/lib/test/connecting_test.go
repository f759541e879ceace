package test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"urdma/test/programtest"
)

// TestForkWhileConnecting: a child forked by another thread while the library waits for urdmad, or gives up a
// connection, has no copy of its socket.
func TestForkWhileConnecting(t *testing.T) {
	dir := t.TempDir()
	binary := programtest.Compile(t, filepath.Join(dir, "connecting"), "testdata/alone/connecting.c", "-libverbs", "-lpthread", "-ldl")
	for _, args := range [][]string{{dir}, {t.TempDir(), "refused"}} {
		c := exec.Command(binary, args...)
		c.Env = append(c.Environ(), "LD_PRELOAD="+preload(t))
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}
