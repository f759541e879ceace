package recipes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"urdma/test/lab"
)

// TestReadme types README.md's first lines of use, at a human's pace.
func TestReadme(t *testing.T) {
	dir := top(t)
	need(t, []string{"ibv_devinfo", "rping", "ib_write_bw"})
	blocks := sections(t, "../../README.md")["Use"]
	if len(blocks) == 0 || !strings.HasPrefix(blocks[0], "build/urdmad &") {
		t.Fatal("README.md does not begin its use with build/urdmad &")
	}
	sockets, err := os.MkdirTemp("", "urdma-readme")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(sockets) })
	out := typed(t, dir, []string{"XDG_RUNTIME_DIR=" + sockets, "URDMA_SOCKET="}, slowly(blocks[0])+
		"build/urdma exec -- ib_write_bw -R -n 100 127.0.0.1\nkill %1") // and so on: its client
	for _, want := range []string{"PORT_ACTIVE", "ping data: rdma-ping-4", "MsgRate"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// slowly waits a second behind what begins in the background.
func slowly(text string) string {
	var b strings.Builder
	for _, line := range strings.SplitAfter(text, "\n") {
		b.WriteString(line)
		if command, _, _ := strings.Cut(line, "#"); strings.HasSuffix(strings.TrimSpace(command), "&") {
			b.WriteString("sleep 1\n")
		}
	}
	return b.String()
}

// TestReadmeTwoMachines types README.md's four commands on two hosts.
func TestReadmeTwoMachines(t *testing.T) {
	dir := top(t)
	need(t, []string{"rping", "ip", "nsenter"})
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: two hosts with an interface take root")
	}
	var typedOn = map[byte]string{}
	for _, text := range sections(t, "../../README.md")["Use"] {
		for _, line := range strings.SplitAfter(text, "\n") {
			if strings.HasPrefix(line, "A$ ") || strings.HasPrefix(line, "B$ ") {
				typedOn[line[0]] += line[3:]
			}
		}
	}
	if strings.Count(typedOn['A'], "\n") != 2 || strings.Count(typedOn['B'], "\n") != 2 {
		t.Fatalf("four commands are promised: %q", typedOn)
	}
	l, err := lab.New(filepath.Join(dir, "build"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	machines := twoMachines(t, l)
	// The server of -P serves for ever, and here until B is through.
	server := strings.Replace(slowly(typedOn['A']), "build/urdma exec -- rping -s", "timeout 15 build/urdma exec -- rping -s", 1)
	done := make(chan string, 1)
	go func() { done <- onMachine(t, dir, machines[0], strings.TrimSpace(server)+" || true\n") }()
	client := onMachine(t, dir, machines[1], slowly(typedOn['B']))
	if out := <-done; !strings.Contains(client, "ping data: rdma-ping-4") {
		t.Errorf("A:\n%s\nB:\n%s", out, client)
	}
}
