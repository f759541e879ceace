package test

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestForkWhileConnecting: a child that another thread forks while the library waits
// for urdmad has no copy of its socket.
func TestForkWhileConnecting(t *testing.T) {
	dir := t.TempDir()
	binary := compile(t, filepath.Join(dir, "connecting"), "testdata/alone/connecting.c", "-libverbs", "-lpthread")
	c := exec.Command(binary, dir)
	c.Env = append(c.Environ(), "LD_PRELOAD="+preload(t))
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
