package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// TestSilent: a program and the tools report that urdmad is stopped, and the program continues when urdmad does.
func TestSilent(t *testing.T) {
	n, _ := labtest.Join(t, lab.Loopback, nil)
	n.Daemon.Signal(syscall.SIGSTOP)
	state := fmt.Sprintf("process %d", n.Daemon.PID())
	awaits(t, "urdmad stopped", patience, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.Daemon.PID()))
		return err == nil && strings.Contains(string(stat), ") T ")
	})
	program, err := n.Exec("ibv_devinfo")
	if err != nil {
		t.Fatal(err)
	}
	said := func() bool {
		return strings.Contains(program.Output(), state+" of user ") &&
			strings.Contains(program.Output(), ", stopped; SIGCONT ")
	}
	awaits(t, "the program names urdmad's process and state", patience, func() bool {
		if !program.Running() {
			t.Fatalf("the program ended:\n%s", program.Output())
		}
		return said()
	})
	for _, tool := range []string{"status", "doctor"} {
		if out, err := n.Urdma(tool); err == nil || !strings.Contains(out+err.Error(), "urdmad is stopped: "+state) {
			t.Errorf("%s: %v\n%s", tool, err, out)
		}
	}
	n.Daemon.Signal(syscall.SIGCONT)
	if err := program.Wait(patience); err != nil || strings.Count(program.Output(), "has not answered") != 1 {
		t.Errorf("%v:\n%s", err, program.Output())
	}
}

// TestAbsent: if no urdmad can be reached, the tools say why.
func TestAbsent(t *testing.T) {
	n, _ := labtest.Join(t, lab.Loopback, nil)
	says := func(what, want string) {
		t.Helper()
		for _, tool := range []string{"status", "doctor"} {
			if out, err := n.Urdma(tool); err == nil || !strings.Contains(out+err.Error(), want) {
				t.Errorf("%s: %s doesn't say %q: %v\n%s", what, tool, want, err, out)
			}
		}
	}
	if os.Getuid() == 0 { // then the node's daemon belongs to another user
		dir := filepath.Dir(n.Socket())
		for _, c := range []struct {
			path string
			mode os.FileMode
			want string
		}{
			{n.Socket(), 0o600, n.Socket() + " belongs to user root and has mode 0600"},
			{n.Socket(), 0o660, "members of group root may use it: usermod --append --groups root USER"},
			{dir, 0o700, "the directory " + dir + " belongs to user root, and its mode 0700"},
		} {
			before, err := os.Stat(c.path)
			if err != nil {
				t.Fatal(err)
			}
			owner := before.Sys().(*syscall.Stat_t)
			if err := os.Chown(c.path, 0, 0); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(c.path, c.mode); err != nil {
				t.Fatal(err)
			}
			says(c.path, c.want)
			if err := os.Chmod(c.path, before.Mode().Perm()); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(c.path, int(owner.Uid), int(owner.Gid)); err != nil {
				t.Fatal(err)
			}
		}
	}
	n.Daemon.Kill()
	says("after its end", "no urdmad is running")
	says("after its end", "has left files")
	if err := n.StartDaemon(); err != nil { // the end of the test stops it
		t.Fatal(err)
	}
}
