package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"urdma/inspect"
)

// TestLookWithoutUrdmad: each command says clearly that no urdmad runs.
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

// TestNoSocket: a file that is no socket gives a different error than a missing urdmad.
func TestNoSocket(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, nil, "status", "--socket", file); r.status.ExitStatus() != exitFailure ||
		!strings.HasPrefix(r.stderr, "urdma status: "+file+" is no socket") {
		t.Errorf("status: %+v", r)
	}
	o := execOptions{socket: file}
	if _, err := o.environment(nil, "/lib/liburdma.so", []string{"true"}); err == nil ||
		!strings.Contains(err.Error(), file+": it is no socket") {
		t.Errorf("exec: %v", err)
	}
}

// TestLookSaysWhere: without --socket, the error names each place that was searched.
func TestLookSaysWhere(t *testing.T) {
	dir := t.TempDir()
	r := run(t, []string{"XDG_RUNTIME_DIR=" + dir}, "status")
	if strings.Contains(r.stdout, "urdmad") {
		t.Skip("an urdmad of this machine runs")
	}
	for _, want := range []string{dir + "/urdma/urdmad.sock, ",
		"/run/user/" + strconv.Itoa(os.Getuid()) + "/urdma/urdmad.sock, ", "/run/urdma/urdmad.sock, ", "/tmp/urdma-"} {
		if r.status.ExitStatus() != exitFailure || !strings.Contains(r.stderr, want) {
			t.Errorf("no %q: %+v", want, r)
		}
	}
}

// TestStatusWaitsForLinks: --wait goes on while a link is down, and returns once it is up.
func TestStatusWaitsForLinks(t *testing.T) {
	down, err := os.ReadFile("report/testdata/snapshot.json")
	if err != nil {
		t.Fatal(err)
	}
	up := bytes.ReplaceAll(down, []byte(`"link_up": false`), []byte(`"link_up": true`))
	if bytes.Equal(up, down) {
		t.Fatal("no link of the sample is down")
	}
	socket := fakeAnswers(t, down, down, up, up)
	r := run(t, nil, "status", "--wait", "--socket", socket)
	if r.status.ExitStatus() != 0 || strings.Contains(r.stdout, "down") || r.stderr != "" {
		t.Errorf("%+v", r)
	}
}

func TestShowRefuses(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		stderr string
	}{
		{[]string{"show"}, exitUsage, "urdma show: OBJECT is missing, allowed: port, worker, client, pd, mr, mw, cq, " +
			"qp, srq, ah, connection, listener, peer, neighbour, group, limit, inject, warning\n"},
		{[]string{"show", "qp", "7e", "7f"}, exitUsage,
			"urdma show: too many arguments, the last is \"7f\"; use: urdma show OBJECT [NAME] [flags]\n"},
		{[]string{"show", "queue"}, exitUsage,
			"urdma show: \"queue\" is no kind of object, allowed: port, worker, client, pd, mr, mw, cq, qp, srq, ah, " +
				"connection, listener, peer, neighbour, group, limit, inject, warning\n"},
		{[]string{"show", "ah"}, exitFailure,
			"urdma show: an address handle is its program's alone: each datagram brings its address, and urdmad has none to " +
				"show\n"},
		{[]string{"show", "ah"}, exitFailure,
			"urdma show: an address handle is its program's alone: each datagram brings its address, and urdmad has none to " +
				"show\n"},
	} {
		r := run(t, nil, c.args...)
		if r.status.ExitStatus() != c.status || r.stdout != "" || r.stderr != c.stderr {
			t.Errorf("%q: %+v", c.args, r)
		}
	}
}

func TestShow(t *testing.T) {
	socket := fakeDaemon(t, 1000)
	for _, c := range []struct {
		args   []string
		status int
		out    string // part of standard output, or of standard error after a failure
		not    string
	}{
		{[]string{"qp", "--columns", "qpn,state"}, 0, "QPN     STATE\n871cec  RTS\n0000ab  INIT\n", "PEER"},
		{[]string{"qp", "--columns", "colour"}, exitUsage, `"colour" is none of QPN,`, ""},
		{[]string{"qp", "--port", "urdma1"}, 0, "0000ab", "871cec"},
		{[]string{"qp", "--pid", "5001"}, 0, "871cec", "0000ab"},
		{[]string{"cq", "--qp", "zzz"}, exitUsage, `--qp is "zzz"`, ""},
		{[]string{"qp", "871cec"}, 0, "wire.window  ", "0000ab"},
		{[]string{"qp", "871cec", "--json"}, 0, `"qpn": 8854764`, ""},
		{[]string{"qp", "111111"}, exitFailure, "qp QPN 111111: there is none", ""},
		{[]string{"qp", "--pid", "-1"}, exitUsage, "--pid is -1", ""},
	} {
		r := run(t, nil, append([]string{"show", "--socket", socket}, c.args...)...)
		text := r.stdout + r.stderr
		if r.status.ExitStatus() != c.status || !strings.Contains(text, c.out) ||
			c.not != "" && strings.Contains(text, c.not) {
			t.Errorf("%q: %+v", c.args, r)
		}
	}
	for args, want := range map[string]string{"show qp": "871cec\n", "show": "listener\n", "show qp --port": "urdma1\n",
		"capture --qp": "871cec\n"} {
		r := run(t, []string{"URDMA_SOCKET=" + socket},
			append(append([]string{"__complete"}, strings.Fields(args)...), "")...)
		if !strings.Contains(r.stdout, want) {
			t.Errorf("completion of %q: %+v", args, r)
		}
	}
}

func TestDoctor(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.sock")
	r := run(t, nil, "doctor", "--socket", none, "--", "true")
	if r.status.ExitStatus() != exitFailure || !strings.Contains(r.stdout, "problem  urdmad: programs find none") ||
		!strings.Contains(r.stdout, "names neither libibverbs") ||
		!strings.Contains(r.stderr, "are a problem") {
		t.Errorf("without urdmad: %+v", r)
	}
	r = run(t, nil, "doctor", "--socket", none, "--config", "../config/default.json")
	if !strings.Contains(r.stdout, "note     urdmad: none runs yet") || strings.Contains(r.stdout, "problem  urdmad") {
		t.Errorf("before the first start: %+v", r)
	}
	r = run(t, nil, "doctor", "--json", "--socket", fakeDaemon(t, 10), "--config", "../config/default.json")
	if !strings.Contains(r.stdout, `"verdict": "ok"`) || !strings.Contains(r.stdout, "link is down") {
		t.Errorf("with urdmad: %+v", r)
	}
}

// TestWaitForASlowUrdmad: status --wait goes on asking a urdmad that begins so slowly that it does not answer in time.
func TestWaitForASlowUrdmad(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "urdmad.sock")
	l, err := net.Listen("unixpacket", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	o := lookOptions{socket: socket, wait: time.Millisecond}
	down := &inspect.Snapshot{Ports: []inspect.Port{{Name: "urdma0"}}}
	links := make(chan error)
	go func() { links <- o.awaitLinks(down, time.Now().Add(time.Millisecond)) }()
	if err := o.await(); err == nil || !strings.HasPrefix(err.Error(), "after 1ms: urdmad at "+socket) {
		t.Errorf("%v, expected it to be asked for as long as --wait says", err)
	}
	if err := <-links; err != nil {
		t.Errorf("%v; expected no more than a warning of the link that is down", err)
	}
}
