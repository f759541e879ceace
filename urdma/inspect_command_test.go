package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestLookWithoutUrdmad: each command says clearly that nothing runs.
func TestLookWithoutUrdmad(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "none.sock")
	for _, args := range [][]string{{"status"}, {"show", "qp"}, {"status", "--json"}, {"top"}, {"top", "--count", "1"}} {
		r := run(t, nil, append(args, "--socket", socket)...)
		want := "urdma " + args[0] + ": no urdmad is running at " + socket + "; start it"
		if r.status.ExitStatus() != exitFailure || r.stdout != "" || !strings.HasPrefix(r.stderr, want) {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

// TestLookSaysWhere: without a socket's name each place looked at is told.
func TestLookSaysWhere(t *testing.T) {
	dir := t.TempDir()
	r := run(t, []string{"XDG_RUNTIME_DIR=" + dir}, "status")
	if strings.Contains(r.stdout, "urdmad") {
		t.Skip("an urdmad of this machine runs")
	}
	for _, want := range []string{dir + "/urdma/urdmad.sock, ", "/run/user/" + strconv.Itoa(os.Getuid()) + "/urdma/urdmad.sock, ", "/run/urdma/urdmad.sock, ", "/tmp/urdma-"} {
		if r.status.ExitStatus() != exitFailure || !strings.Contains(r.stderr, want) {
			t.Errorf("no %q: %+v", want, r)
		}
	}
	if r := run(t, []string{"URDMA_SOCKET=" + dir + "/none.sock"}, "status", "--all"); !strings.Contains(r.stderr, "no urdmad is running in any default place") && r.stdout == "" {
		t.Errorf("--all: %+v", r)
	}
}

func TestShowRefuses(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		stderr string
	}{
		{[]string{"show"}, exitUsage, "urdma show: accepts 1 arg(s), received 0; use: urdma show OBJECT [flags]\n"},
		{[]string{"show", "queue"}, exitUsage, "urdma show: \"queue\" is no kind of object, allowed: port, client, pd, mr, cq, qp, srq, ah, connection, listener\n"},
		{[]string{"show", "srq"}, exitFailure, "urdma show: urdmad has no shared receive queues yet\n"},
		{[]string{"show", "ah"}, exitFailure, "urdma show: urdmad has no address handles yet\n"},
	} {
		r := run(t, nil, c.args...)
		if r.status.ExitStatus() != c.status || r.stdout != "" || r.stderr != c.stderr {
			t.Errorf("%q: %+v", c.args, r)
		}
	}
}
