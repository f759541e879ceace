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
	socket := filepath.Join(sockets, "urdma", "urdmad.sock")
	out := typed(t, dir, []string{"XDG_RUNTIME_DIR=" + sockets, "URDMA_SOCKET="},
		patiently(blocks[0]+"build/urdma exec -- ib_write_bw -R -n 100 127.0.0.1\n", socket, socket)+"kill %1") // and so on: its client
	for _, want := range []string{"PORT_ACTIVE", "ping data: rdma-ping-4", "MsgRate"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// patiently types a text as somebody does who looks at what the last line
// brought: a program only once a urdmad is there, a client once its server
// listens. Own and peer are the sockets of this machine's urdmad and of the one
// that servers run on.
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
		case strings.Contains(command, "ib_write_bw") && !background:
			b.WriteString(listens("ib_write_bw"))
		}
		b.WriteString(line)
		if background && strings.Contains(command, "urdmad") {
			b.WriteString(there(own))
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
	through := filepath.Join(machines[0].home, "through")
	server := strings.TrimSpace(typedOn['A']) + " &\nuntil [ -e " + through + " ]; do sleep 0.1; done\n"
	done := make(chan string, 1)
	go func() { done <- onMachine(t, dir, machines[0], machines[0], server) }()
	client := onMachine(t, dir, machines[1], machines[0], typedOn['B'])
	if err := os.WriteFile(through, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := <-done; !strings.Contains(client, "ping data: rdma-ping-4") {
		t.Errorf("A:\n%s\nB:\n%s", out, client)
	}
}
