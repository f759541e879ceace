package process

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestSelfMem: the fallback path takes nothing but the mem file of the process
// that connected.
func TestSelfMem(t *testing.T) {
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = other.Process.Kill(), other.Wait() }()
	dir := filepath.Join(t.TempDir(), "1")
	plain := filepath.Join(dir, "mem") // a name that looks right
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(plain, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		pid  int
		good bool
	}{
		{"/proc/self/mem", os.Getpid(), true},
		{"/proc/self/mem", other.Process.Pid, false},
		{"/proc/self/oom_score_adj", os.Getpid(), false},
		{"/proc/sys/kernel/core_pattern", os.Getpid(), false},
		{plain, os.Getpid(), false},
		{"/dev/null", os.Getpid(), false},
	} {
		f, err := os.OpenFile(c.path, os.O_RDWR, 0)
		if errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrNotExist) {
			t.Logf("%s can't be opened here: %v", c.path, err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckMem(f, c.pid, os.Getuid()); (err == nil) != c.good {
			t.Errorf("%s from process %d: %v, expected it taken: %v", c.path, c.pid, err, c.good)
		}
		f.Close()
	}
}
