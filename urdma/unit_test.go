package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFailedUnit: a command that waits for a failed systemd unit reports the failure, but neither an old failure
// nor one of a urdmad with another socket.
func TestFailedUnit(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	t.Setenv("XDG_RUNTIME_DIR", dir)
	users := filepath.Join(dir, "urdma/urdmad.sock")
	since := monotonic()
	for _, c := range []struct {
		name, socket, scope string
		at                  time.Duration
		fails               bool
	}{
		{"user's", "", "--user", since, true},
		{"machine's", "", "--system", since, true},
		{"the user's socket", users, "--user", since, true},
		{"the user's socket, the machine's unit", users, "--system", since, false},
		{"another socket", filepath.Join(dir, "other.sock"), "--user", since, false},
		{"old", "", "--user", since - time.Second, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			script := fmt.Sprintf("#!/bin/sh\n[ $1 = %s ] && echo ActiveState=failed || echo ActiveState=inactive\necho "+
				"InactiveEnterTimestampMonotonic=%d\n"+
				"echo 'StatusText=failed: ports[0]: wrong'\n", c.scope, c.at.Microseconds()+1)
			if err := os.WriteFile(filepath.Join(dir, "systemctl"), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			err := failedUnit(c.socket, since)
			if c.fails != (err != nil) || err != nil &&
				!strings.Contains(err.Error(), "did not start: failed: ports[0]: wrong; journalctl "+c.scope) {
				t.Error(err)
			}
		})
	}
	t.Run("await", func(t *testing.T) {
		script := fmt.Sprintf("#!/bin/sh\necho ActiveState=failed\necho InactiveEnterTimestampMonotonic=%d\n",
			time.Duration(1<<62).Microseconds())
		if err := os.WriteFile(filepath.Join(dir, "systemctl"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		o := lookOptions{socket: users, wait: time.Minute}
		if err := o.await(); err == nil || !strings.Contains(err.Error(), "did not start") {
			t.Error(err)
		}
	})
}
