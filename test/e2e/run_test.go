package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/test/programtest"
)

// private starts urdma run as an ordinary user, with temp for its files.
func private(t *testing.T, l *lab.Lab, temp string, args ...string) *lab.Process {
	t.Helper()
	o := lab.Options{UID: lab.OrdinaryUID, Dir: temp,
		Env: []string{"PATH=" + filepath.Dir(l.Program("urdma")) + ":" + os.Getenv("PATH"), "TMPDIR=" + temp}}
	p, err := l.Start(o, append([]string{l.Program("urdma"), "run"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// privateGround makes a lab and a directory for temporary files, which must be empty at the end of the test.
func privateGround(t *testing.T) (l *lab.Lab, temp string) {
	t.Helper()
	l = labtest.New(t)
	temp = filepath.Join(l.Dir, "tmp")
	if err := errors.Join(os.Mkdir(temp, 0o755), os.Chmod(temp, os.ModeSticky|0o777)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := os.ReadDir(temp); len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
	return l, temp
}

// status returns how a process ended.
func status(t *testing.T, p *lab.Process) syscall.WaitStatus {
	t.Helper()
	err := p.Wait(lab.Patience)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v\n%s", err, p.Output())
	}
	if exit == nil {
		return 0
	}
	return exit.Sys().(syscall.WaitStatus)
}

const rpingPair = `rping -s -a 127.0.0.1 -C 5 & until urdma show listener | grep -q rping; do :; done; rping -c -a 127.0.0.1 -C 5 -v && wait $!`

// TestRun: urdma run has the exit status of its command, and each has its own urdmad, even if several run at once.
func TestRun(t *testing.T) {
	whole(t)
	need(t, "rping")
	l, temp := privateGround(t)
	var pairs []*lab.Process
	for range 3 {
		pairs = append(pairs, private(t, l, temp, "--", "sh", "-c", rpingPair))
	}
	for _, p := range pairs {
		if s := status(t, p); s != 0 || strings.Count(p.Output(), "ping data: ") != 5 {
			t.Errorf("status %v:\n%s", s, p.Output())
		}
	}
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--", "sh", "-c", "exit 7"}, 7, ""},
		{[]string{"--tcp", "--", "sh", "-c", "urdma show port --json"}, 0, `"driver": "tcp`},
		{[]string{"--udp=30135", "--", "sh", "-c", "urdma show port --json; cat /proc/net/udp"}, 0, ":75B7 "},
		{[]string{"--udp=0", "true"}, 125, "expected a port number from 1 to 65535"},
		{[]string{"--timeout=1m", "--", "sh", "-c", "exit 8"}, 8, ""},
		{[]string{"--timeout=500ms", "--", "sh", "-c", "rping -s; true"}, 124, "stopped after 500ms, the --timeout"},
		{[]string{"--timeout=500ms", "--hosts", "2", "--", "rping", "-s", "::", "sleep", "1000"}, 124,
			"stopped after 500ms, the --timeout"},
		{[]string{"no-such-program"}, 127, "no such program in PATH"},
		{[]string{"--config", "/no/such/file", "true"}, 125, "/no/such/file"},
		{[]string{"--hosts", "2", "true", "::"}, 125, "needs two programs"},
		{[]string{"--hosts", "2", "--log", "--", "ibv_devinfo", "::", "true"}, 0, "urdma: ibv_devinfo["},
		{[]string{"--hosts", "3", "true"}, 125, "allowed: 1, 2"},
		{[]string{"--", "sh", "-c", "u=$(pgrep -P $PPID urdmad); kill -9 $u; while kill -0 $u 2>/dev/null; do :; done; sleep 1"}, 125, "urdmad has ended: signal: killed"},
	} {
		p := private(t, l, temp, c.args...)
		if s := status(t, p); s.ExitStatus() != c.status || !strings.Contains(p.Output(), c.says) {
			t.Errorf("%q: status %v, want %d saying %q:\n%s", c.args, s, c.status, c.says, p.Output())
		}
	}
}

// TestRunConfig: the socket is private, whatever the file says.
func TestRunConfig(t *testing.T) {
	whole(t)
	l, temp := privateGround(t)
	socket, file := filepath.Join(temp, "of-the-file.sock"), filepath.Join(l.Dir, "urdma.json")
	text := fmt.Sprintf(`{ "ports": [ { "vdev": "loopback", "ipv4_address": "10.1.2.3/24" } ], "socket": %q }`, socket)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p := private(t, l, temp, "--config", file, "--", "sh", "-c", "urdma show port; test ! -e "+socket)
	if s := status(t, p); s != 0 || !strings.Contains(p.Output(), "10.1.2.3") {
		t.Errorf("status %v:\n%s", s, p.Output())
	}
}

// TestRunHosts: two programs on two hosts; a server that does not end is stopped.
func TestRunHosts(t *testing.T) {
	whole(t)
	need(t, "rping")
	need(t, "ibv_rc_pingpong")
	need(t, "ib_write_bw")
	l, temp := privateGround(t)
	runs := []struct {
		command string
		status  int
	}{
		{"rping -s -C 5 :: rping -c -a 198.18.0.1 -C 5 -v", 0},
		{"rping -s -P :: rping -c -a 198.18.0.1 -C 5 -v", 0},
		// Their own TCP connections go to the other host's address, or, as before, to the local host.
		{fmt.Sprintf("ibv_rc_pingpong -g 0 -p %[1]d :: ibv_rc_pingpong -g 0 -p %[1]d 198.18.0.1",
			programtest.FreePort(t)), 0},
		{fmt.Sprintf("ibv_rc_pingpong -g 0 -p %[1]d :: ibv_rc_pingpong -g 0 -p %[1]d 127.0.0.1",
			programtest.FreePort(t)), 0},
		{fmt.Sprintf("ib_write_bw -n 10 -p %[1]d :: ib_write_bw -n 10 -p %[1]d 198.18.0.1",
			programtest.FreePort(t)), 0},
		{"rping -s :: sh -c exit\t5", 5},
		{"sh -c exit\t6 :: true", 6},
	}
	var all []*lab.Process
	for _, c := range runs {
		args := []string{"--hosts", "2", "--"}
		for _, a := range strings.Split(c.command, " ") {
			args = append(args, strings.ReplaceAll(a, "\t", " "))
		}
		all = append(all, private(t, l, temp, args...)) // two of them wait for servers
	}
	for i, p := range all {
		if s := status(t, p); s.ExitStatus() != runs[i].status {
			t.Errorf("%s: status %v, want %d:\n%s", runs[i].command, s, runs[i].status, p.Output())
		}
	}
}

// TestRunHostFails: if the second urdmad can't start, urdma run says why at once, though the first waits for its link.
func TestRunHostFails(t *testing.T) {
	whole(t)
	l, temp := privateGround(t)
	urdma, err := os.ReadFile(l.Program("urdma"))
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(l.Dir, "elsewhere") // urdma starts the urdmad next to itself
	urdmad := "#!/bin/sh\ncase $* in *host2*) echo 'no memory at all' >&2; kill -9 $$ ;; esac\nexec " +
		l.Program("urdmad") + ` "$@"`
	if err := errors.Join(os.Mkdir(bin, 0o755), os.WriteFile(filepath.Join(bin, "urdma"), urdma, 0o755),
		os.WriteFile(filepath.Join(bin, "urdmad"), []byte(urdmad), 0o755)); err != nil {
		t.Fatal(err)
	}
	o := lab.Options{UID: lab.OrdinaryUID, Dir: temp, Env: []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + temp}}
	p, err := l.Start(o,
		filepath.Join(bin, "urdma"), "run", "--lib", l.Program("liburdma.so"), "--hosts", "2", "--", "true", "::", "true")
	if err != nil {
		t.Fatal(err)
	}
	s := status(t, p)
	for _, says := range []string{"urdmad has ended: signal: killed, perhaps by the kernel", "no memory at all"} {
		if s.ExitStatus() != 125 || !strings.Contains(p.Output(), says) {
			t.Errorf("status %v, expected 125 and %q:\n%s", s, says, p.Output())
		}
	}
}

// TestRunUnderLimits: docs/container.md says with how little urdma run works.
func TestRunUnderLimits(t *testing.T) {
	whole(t)
	need(t, "rping")
	need(t, "prlimit")
	l, temp := privateGround(t)
	for _, limit := range []string{"--nofile=64", "--memlock=0", "--as=2147483648"} {
		if os.Getenv("URDMA_SANITIZER") != "" && strings.HasPrefix(limit, "--as") {
			t.Log("not tried: ", limit, ": a sanitizer reserves terabytes of addresses")
			continue
		}
		o := lab.Options{UID: lab.OrdinaryUID, Dir: temp,
			Env: []string{"PATH=" + filepath.Dir(l.Program("urdma")) + ":" + os.Getenv("PATH"), "TMPDIR=" + temp}}
		p, err := l.Start(o, "prlimit", limit, "urdma", "run", "--", "sh", "-c", rpingPair)
		if err != nil {
			t.Fatal(err)
		}
		if s := status(t, p); s != 0 || strings.Count(p.Output(), "ping data: ") != 5 {
			t.Errorf("%s: status %v:\n%s", limit, s, p.Output())
		}
	}
}

// sleeping starts a command that ends only by a signal, and waits until it runs.
func sleeping(t *testing.T, l *lab.Lab, temp string) *lab.Process {
	t.Helper()
	p := private(t, l, temp, "--", "sh", "-c", "pgrep -P $PPID urdmad; echo ready; exec sleep 10000")
	await(t, "the command", func() (bool, string) { return strings.Contains(p.Output(), "ready"), p.Output() })
	return p
}

// TestRunSignals: a signal reaches the command, whose end is that of urdma run. If urdma run is killed, urdmad and
// the command end, too.
func TestRunSignals(t *testing.T) {
	whole(t)
	need(t, "pgrep")
	l, temp := privateGround(t)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(s) { // then our children ignore it, too, as under nohup(1)
			continue
		}
		p := sleeping(t, l, temp)
		p.Signal(s)
		if got := status(t, p); !got.Signaled() || got.Signal() != s {
			t.Errorf("after %v: %v\n%s", s, got, p.Output())
		}
	}
	p := sleeping(t, l, temp)
	p.Signal(syscall.SIGUSR1)
	if got := status(t, p); got.ExitStatus() != 128+int(syscall.SIGUSR1) {
		t.Errorf("after SIGUSR1: %v\n%s", got, p.Output())
	}

	p = sleeping(t, l, temp)
	var urdmad int
	if _, err := fmt.Sscan(p.Output(), &urdmad); err != nil {
		t.Fatal(err)
	}
	p.Signal(syscall.SIGKILL)
	status(t, p)
	await(t, "the end of urdmad", func() (bool, string) {
		err := syscall.Kill(urdmad, 0)
		return errors.Is(err, syscall.ESRCH), fmt.Sprint(err)
	})
	if s := status(t, private(t, l, temp, "true")); s != 0 { // it removes the files that the killed one left
		t.Errorf("after a killed one: %v", s)
	}
}

// TestWait: programs and commands wait for a urdmad that has just been started.
func TestWait(t *testing.T) {
	whole(t)
	l, temp := privateGround(t)
	socket := filepath.Join(temp, "late.sock")
	urdma := func(args ...string) *lab.Process {
		p, err := l.Start(lab.Options{UID: lab.OrdinaryUID, Env: []string{"PATH=" + os.Getenv("PATH")}},
			append([]string{l.Program("urdma")}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := urdma("status", "--socket", socket, "--wait=1ms")
	if s := status(t, p); s.ExitStatus() != 1 || !strings.Contains(p.Output(), "after 1ms: no urdmad is running") {
		t.Errorf("status %v: %s", s, p.Output())
	}
	waiting := []*lab.Process{urdma("status", "--socket", socket, "--wait=5m"),
		urdma("exec", "--socket", socket, "--wait=5m", "--", "ibv_devinfo")}
	urdmad, err := l.Start(lab.Options{UID: lab.OrdinaryUID, Env: []string{"PATH=" + os.Getenv("PATH")}},
		l.Program("urdmad"), "--socket", socket)
	if err != nil {
		t.Fatal(err)
	}
	check := func(p *lab.Process) {
		t.Helper()
		if s := status(t, p); s != 0 || !strings.Contains(p.Output(), "urdma0") && !strings.Contains(p.Output(), "loopback") {
			t.Errorf("status %v: %s", s, p.Output())
		}
	}
	for _, p := range waiting {
		check(p)
	}
	check(urdma("status", "--socket", socket, "--wait")) // a busy machine may need the default
	urdmad.Signal(syscall.SIGTERM)
	if s := status(t, urdmad); s != 0 {
		t.Errorf("urdmad: %v\n%s", s, urdmad.Output())
	}
}
