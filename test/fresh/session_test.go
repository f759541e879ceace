package fresh

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSession: Ctrl-C ends everything that a command under .ci/session started, even in its own session or process
// group, and removes its temporary files. The command's own end does the same, and keeps its exit status.
func TestSession(t *testing.T) {
	const starts = `sleep 1000 & echo $!; setsid sleep 1000 & echo $!; (setsid sleep 1000 & echo $!)
		mktemp "$TMPDIR/XXXXXX"; echo begun; `
	for _, c := range []struct {
		ends   string
		signal syscall.Signal
		status int
	}{{"sleep 1000", syscall.SIGINT, 130}, {"sleep 1000", syscall.SIGTERM, 143}, {"exit 3", 0, 3}} {
		dir := t.TempDir()
		// A shell can't trap a signal that it was started without.
		run := exec.Command("env", "--default-signal=INT,HUP", "../../.ci/session", "sh", "-c", starts+c.ends)
		run.Env = append(os.Environ(), "TMPDIR="+dir)
		out, err := run.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		var pids []int
		for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "begun"; {
			if pid, err := strconv.Atoi(lines.Text()); err == nil {
				pids = append(pids, pid)
			}
		}
		if c.signal != 0 {
			_ = run.Process.Signal(c.signal)
		}
		var exit *exec.ExitError
		if err := run.Wait(); !errors.As(err, &exit) || exit.ExitCode() != c.status {
			t.Errorf("%s, %v: %v, expected exit status %d", c.ends, c.signal, err, c.status)
		}
		for _, pid := range pids {
			for end := time.Now().Add(time.Minute); runs(pid); time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%s, %v: process %d still runs", c.ends, c.signal, pid)
				}
			}
		}
		if left, _ := filepath.Glob(dir + "/*"); len(pids) != 3 || len(left) > 0 {
			t.Errorf("%s, %v: started %v, left %v", c.ends, c.signal, pids, left)
		}
	}
}

// runs reports whether a process has not ended; its parent may not know that yet.
func runs(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
