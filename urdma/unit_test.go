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

// TestDoctorOnFailedUnit: doctor has the unit's reason, from the journal if systemd has none, and reads the unit's file.
func TestDoctorOnFailedUnit(t *testing.T) {
	dir := t.TempDir()
	for name, script := range map[string]string{
		"systemctl": "[ $1 = --user ] && echo ActiveState=failed || echo ActiveState=inactive\n" +
			"echo InactiveEnterTimestampMonotonic=5\n",
		"journalctl": "echo 'the last line of the log'\n",
	} {
		write(t, filepath.Join(dir, name), "#!/bin/sh\n"+script, 0o755)
	}
	file := filepath.Join(dir, "urdma/urdma.json")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, file, `{"ports":[{"vdev":"loopback","ipv4_address":"10.0.0.999"}]}`, 0o600)
	r := run(t, []string{"PATH=" + dir, "XDG_CONFIG_HOME=" + dir, "XDG_RUNTIME_DIR=" + dir, "URDMA_SOCKET="}, "doctor")
	for _, want := range []string{"programs find none: systemd's urdmad.service did not start: the last line of the log",
		"correct that, then systemctl --user restart urdmad", file + ":1: ports[0].ipv4_address: found"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in\n%s%s", want, r.stdout, r.stderr)
		}
	}
}
