package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCaptureRefuses: wrong flags are reported before urdmad is asked, and no file is made.
func TestCaptureRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.pcapng")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"where to? -o FILE names the file", nil},
		{`--host is "10.9", expected an address, ADDRESS:PORT`, []string{"-o", file, "--host", "10.9"}},
		{`--host is ":", expected`, []string{"-o", file, "--host", ":"}},
		{`--host is ":0", expected`, []string{"-o", file, "--host", ":0"}},
		{`--host is ":70000", expected`, []string{"-o", file, "--host", ":70000"}},
		{`--host is "fd00::g", expected`, []string{"-o", file, "--host", "fd00::g"}},
		{`--host is "[fd00::1]:0", expected`, []string{"-o", file, "--host", "[fd00::1]:0"}},
		{`--qp is "rping", expected a hexadecimal number`, []string{"-o", file, "--qp", "rping"}},
		{`--qp is "0", expected`, []string{"-o", file, "--qp", "0"}},
		{`--qp is "1000000", expected`, []string{"-o", file, "--qp", "1000000"}},
		{`--buffer is "much", expected a size`, []string{"-o", file, "--buffer", "much"}},
		{`--buffer is "5GB", expected a size`, []string{"-o", file, "--buffer", "5GB"}},
		{"expected none below 0", []string{"-o", file, "--pid", "-1"}},
		{"expected none below 0", []string{"-o", file, "--duration", "-1s"}},
		{"unknown flag: --filter", []string{"-o", file, "--filter", "x"}},
	} {
		r := run(t, nil, append([]string{"capture"}, c.args...)...)
		if r.status.ExitStatus() != exitUsage || r.stdout != "" || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%q: expected status %d and %q, got %+v", c.args, exitUsage, c.want, r)
		}
	}
	socket := filepath.Join(t.TempDir(), "none.sock")
	if r := run(t, nil, "capture", "-o", file, "--socket", socket); r.status.ExitStatus() != exitFailure ||
		!strings.Contains(r.stderr, "no urdmad is running at "+socket) {
		t.Errorf("without urdmad: %+v", r)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a file was made: %v", err)
	}
}

// TestCaptureAnnouncesWhatItHas: the message that a capture runs appears only after the file exists and urdmad has
// agreed.
func TestCaptureAnnouncesWhatItHas(t *testing.T) {
	socket := fakeDaemon(t, 100)
	for _, file := range []string{filepath.Join(t.TempDir(), "no", "such", "x.pcapng"),
		filepath.Join(t.TempDir(), "x.pcapng")} {
		r := run(t, nil, "capture", "-o", file, "--socket", socket, "--duration", "50ms")
		if strings.Contains(r.stderr, "capturing from") || r.status.ExitStatus() != exitFailure {
			t.Errorf("%s: %+v", file, r)
		}
	}
}

// TestTopWithoutUrdmad: if urdmad ends, even in the middle, the command fails.
func TestTopWithoutUrdmad(t *testing.T) {
	r := run(t, nil, "top", "--count", "50", "--interval", "100ms", "--socket", fakeDaemon(t, 3))
	if r.status.ExitStatus() != exitFailure || r.stderr == "" || r.stdout == "" {
		t.Errorf("%+v", r)
	}
}

// TestCaptureOfAbsentQP: the command fails, because no packet would ever come.
func TestCaptureOfAbsentQP(t *testing.T) {
	for _, command := range []string{"capture", "trace"} {
		file := filepath.Join(t.TempDir(), "x.pcapng")
		r := run(t, nil, command, "-o", file, "--qp", "7777", "--socket", fakeDaemon(t, 1000))
		if want := "urdma " + command +
			": --qp is \"7777\", and urdmad has no such queue pair"; r.status.ExitStatus() != exitFailure ||
			!strings.HasPrefix(r.stderr, want) {
			t.Errorf("%+v", r)
		}
		if _, err := os.Stat(file); err == nil {
			t.Error("a file was made")
		}
	}
}

// TestTraceRefuses: wrong flags are reported before urdmad is asked.
func TestTraceRefuses(t *testing.T) {
	for _, c := range []struct {
		want string
		args []string
	}{
		{`-o is "x.txt", expected a name that ends in .pcapng or .html`, []string{"-o", "x.txt"}},
		{`--kind is "poll", expected some of API, SEND`, []string{"--kind", "send,poll"}},
		{`--qp is "rping", expected a hexadecimal number`, []string{"--qp", "rping"}},
		{"expected none below 0", []string{"--pid", "-1"}},
	} {
		r := run(t, nil, append([]string{"trace"}, c.args...)...)
		if r.status.ExitStatus() != exitUsage || r.stdout != "" || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%q: expected status %d and %q, got %+v", c.args, exitUsage, c.want, r)
		}
	}
}
