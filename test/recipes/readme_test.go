package recipes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadme executes README.md's first lines of use, at a human's pace.
func TestReadme(t *testing.T) {
	dir := top(t)
	need(t, []string{"ibv_devinfo", "rping"})
	blocks := sections(t, "../../README.md")["Use"]
	if len(blocks) != 2 || !strings.HasPrefix(blocks[0], "build/urdma run ") ||
		!strings.HasPrefix(blocks[1], "build/urdmad &") {
		t.Fatalf("README.md's use is not urdma run, then a urdmad that stays: %q", blocks)
	}
	sockets, err := os.MkdirTemp("", "urdma-readme")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(sockets) })
	socket := filepath.Join(sockets, "urdma", "urdmad.sock")
	out := typed(t, dir, []string{"XDG_RUNTIME_DIR=" + sockets, "URDMA_SOCKET="},
		blocks[0]+patiently(blocks[1], socket, socket))
	for want, times := range map[string]int{"PORT_ACTIVE": 1, "ping data: rdma-ping-4": 3} {
		if got := strings.Count(out, want); got < times {
			t.Errorf("%q %d times, expected %d, in\n%s", want, got, times, out)
		}
	}
}

// patiently executes a text like a person who looks at the result of the last line: it starts a program only once a
// urdmad runs, and a client once its server listens. own and peer are the sockets of this machine's urdmad and of the
// one on which servers run.
func patiently(text, own, peer string) string {
	urdma := func(socket, rest string) string {
		return "until URDMA_SOCKET=" + socket + " build/urdma " + rest + "; do sleep 0.1; done\n"
	}
	there := func(socket string) string { return urdma(socket, "status >/dev/null 2>&1") }
	listens := func(program string) string {
		return urdma(peer, "show listener 2>/dev/null | grep -q "+program)
	}
	var b strings.Builder
	for _, line := range strings.SplitAfter(text, "\n") {
		command, _, _ := strings.Cut(line, "#")
		background := strings.HasSuffix(strings.TrimSpace(command), "&")
		switch {
		case strings.Contains(command, "urdma ping"):
			b.WriteString(there(peer))
		case strings.Contains(command, "rping -c"):
			b.WriteString(listens("rping"))
		}
		b.WriteString(line)
		if background && strings.Contains(command, "urdmad") {
			b.WriteString(there(own))
		}
	}
	return b.String()
}
