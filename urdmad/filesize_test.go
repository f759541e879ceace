package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestFileSizeLimit: a soft limit is raised, and a hard one is named in a message. Limits can't be undone in a
// process, so urdmad runs in its own.
func TestFileSizeLimit(t *testing.T) {
	if file := os.Getenv("URDMA_TEST_FSIZE"); file != "" {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := runDaemon(ctx, source{file: file}); err != nil {
			t.Error(err)
		}
		var limit unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil || limit.Cur != limit.Max {
			t.Errorf("the limit is %+v (%v)", limit, err)
		}
		return
	}
	for options, want := range map[string]bool{"-S": false, "": true} {
		dir := t.TempDir()
		written(t, dir, "")
		c := exec.Command("sh", "-c", "ulimit "+options+` -f 64; exec "$0" "$@"`, os.Args[0], "-test.run=^TestFileSizeLimit$",
			"-test.v")
		c.Env = append(os.Environ(), "URDMA_TEST_FSIZE="+filepath.Join(dir, "urdma.json"))
		out, err := c.CombinedOutput()
		if err != nil || strings.Contains(string(out), "RLIMIT_FSIZE") != want {
			t.Errorf("ulimit %s -f 64: %v, expected a warning: %v\n%s", options, err, want, out)
		}
	}
}
