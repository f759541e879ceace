package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/test/programtest"
)

// TestRecorderFiles: with "recorder_dir" urdmad writes a file with the flight recorder of each program whose queue
// pair fails, that is killed, or that sets a bookmark, and none for other programs.
func TestRecorderFiles(t *testing.T) {
	whole(t)
	need(t, "gcc")
	l := labtest.New(t)
	parent, err := os.MkdirTemp("", "urdma-records-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(parent) })
	if err := os.Chmod(parent, 0o777); err != nil { // urdmad runs as another user
		t.Fatal(err)
	}
	dir := filepath.Join(parent, "records")
	n, _ := labtest.JoinIn(t, l, lab.Loopback, lab.Config{"recorder_dir": dir})
	start := func(name, source string) *lab.Process {
		binary := programtest.Compile(t, filepath.Join(n.Directory(), name), source, "-lrdmacm", "-libverbs")
		p, err := n.Start(l.Program("urdma"), "exec", "--socket", n.Socket(), "--", binary, n.Address)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	recorded := func(p *lab.Process, want ...string) {
		t.Helper()
		var text []byte
		for deadline := time.Now().Add(lab.Patience); len(text) == 0 &&
			time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if files, _ := filepath.Glob(filepath.Join(dir, fmt.Sprintf("urdma-*-%d.txt", p.PID()))); len(files) == 1 {
				text, _ = os.ReadFile(files[0])
			}
		}
		for _, w := range want {
			if !strings.Contains(string(text), w) {
				t.Errorf("the file of process %d has no %q:\n%s", p.PID(), w, text)
			}
		}
	}
	failed := start("no_right", "../../test/mistakes/no_right.c")
	if err := failed.Wait(lab.Patience); err != nil {
		t.Error(err)
	}
	recorded(failed, "(no_right)", "has failed: 0x0102", "ibv_modify_qp", "WHY", "it has no IBV_ACCESS_REMOTE_WRITE")
	killed := start("not_armed", "../../test/mistakes/not_armed.c")
	await(t, "its queue pairs", func() (bool, string) {
		out, _ := n.Urdma("show", "qp")
		return strings.Contains(out, fmt.Sprint(killed.PID())) && strings.Contains(out, "RTS"), out
	})
	killed.Kill()
	recorded(killed, "the program ended with 2 queue pairs left", "STATE")
	marked := start("mark", "testdata/mark.c")
	if err := marked.Wait(lab.Patience); err != nil {
		t.Error(err, marked.Output())
	}
	recorded(marked, "it has set a bookmark: this should not happen", "BOOKMARK")
	right := start("right", "testdata/right.c")
	if err := right.Wait(lab.Patience); err != nil {
		t.Error(err, right.Output())
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 3 {
		t.Errorf("%d files, expected 3: %q", len(files), files)
	}
}
