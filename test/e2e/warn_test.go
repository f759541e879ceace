package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/test/programtest"
	"urdma/verbs/abi"
)

// mistakeRow is a row of the table of mistakes in docs/debugging.md.
var mistakeRow = regexp.MustCompile("(?m)^\\| `(\\w+)\\.c`: (.+) \\| `--(warn|explain)` \\| (0x[0-9a-f]{4}) \\| (.+) \\|$")

// TestMistakes: each program of test/mistakes first gets the warning about its mistake, in the words of
// docs/debugging.md. urdma show warning and the log have it, too. The flight recorder's contents and the result under
// --strict are as in the second table there.
func TestMistakes(t *testing.T) {
	whole(t)
	need(t, "gcc")
	text, err := os.ReadFile("../../docs/debugging.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := mistakeRow.FindAllStringSubmatch(string(text), -1)
	sources, _ := filepath.Glob("../../test/mistakes/*.c")
	if len(rows) < 20 || len(rows) != len(sources) {
		t.Fatalf("docs/debugging.md has %d rows of mistakes, test/mistakes %d programs", len(rows), len(sources))
	}
	l := labtest.New(t)
	n, _ := labtest.JoinIn(t, l, lab.Loopback, nil)
	dir := n.Directory() // the node's user may read there
	for _, row := range rows {
		t.Run(row[1], func(t *testing.T) { mistake(t, n, dir, row[1], row[2], row[3], row[4], row[5]) })
	}
	shown(t, n, rows)
	compared(t, n, dir, string(text), rows)
}

const (
	toolsHead = "| program | `--warn` | `--explain` | `urdma trace --dump` | `--strict` |\n|---|---|---|---|---|\n"
	forEver   = "waits for ever"
	asWithout = forEver + ", as without"
)

// compared runs each program under every tool, and compares the results with docs/debugging.md.
func compared(t *testing.T, n *lab.Node, dir, text string, rows [][]string) {
	before, rest, ok := strings.Cut(text, toolsHead)
	table, after, whole := strings.Cut(rest, "\n\n")
	if !ok || !whole {
		t.Fatalf("docs/debugging.md has no table %q", toolsHead)
	}
	documented := strings.Split(table, "\n")
	var found []string
	for _, row := range rows {
		name := row[1]
		i := slices.IndexFunc(documented, func(r string) bool { return strings.HasPrefix(r, "| `"+name+"` |") })
		if i < 0 {
			t.Fatalf("docs/debugging.md does not say what the tools tell of %s", name)
		}
		found = append(found, underTools(t, n, filepath.Join(dir, name), name, documented[i]))
	}
	switch {
	case *update:
		if err := os.WriteFile("../../docs/debugging.md", []byte(before+toolsHead+strings.Join(found, "\n")+"\n\n"+after),
			0o644); err != nil {
			t.Fatal(err)
		}
	case !slices.Equal(found, documented):
		t.Errorf("docs/debugging.md has\n%s\nexpected (go test ./test/e2e -run TestMistakes -update)\n%s", table,
			strings.Join(found, "\n"))
	}
}

var (
	saidNumber      = regexp.MustCompile(`(?m)^urdma: (warning: )?(?:[^:\n]*: )?(0x[0-9a-f]{4}), `)
	recordedFailure = regexp.MustCompile(`(?m)^\S+ +\d+ +\S+ (COMP|ASYNC|WHY) +(?:[A-Za-z ]+: )?([^,;:\n]+)`)
)

// underTool runs a program with options of urdma exec, and returns how it ended. A program that hangs is killed once
// it has printed the expected text; "": after a second.
func underTool(t *testing.T, n *lab.Node, binary string, hangs bool, says string, options ...string) (p *lab.Process,
	end string) {
	t.Helper()
	p, err := n.Start(slices.Concat([]string{n.Program("urdma"), "exec", "--socket", n.Socket()}, options,
		[]string{"--", binary, n.Address})...)
	if err != nil {
		t.Fatal(err)
	}
	if !hangs {
		if err := p.Wait(lab.Patience); err != nil {
			return p, "ends: " + err.Error()
		}
		return p, "ends"
	}
	limit := lab.Patience
	if says == "" {
		limit = time.Second
	}
	for until := time.Now().Add(limit); time.Now().Before(until) && p.Running() &&
		(says == "" || !strings.Contains(p.Output(), says)); {
		time.Sleep(10 * time.Millisecond)
	}
	if !p.Running() {
		return p, "ends"
	}
	p.Kill()
	return p, forEver
}

// underTools returns the row of a program: the numbers that --warn and --explain print, the failures in the flight
// recorder, and how it ends under --strict. The existing row says which programs hang.
func underTools(t *testing.T, n *lab.Node, binary, name, row string) string {
	t.Helper()
	plain, end := underTool(t, n, binary, strings.Contains(row, asWithout), "urdma:   see:", "--explain", "--warn")
	dump, err := n.Urdma("trace", "--dump", "--pid", fmt.Sprint(plain.PID()), "--socket", n.Socket())
	if err != nil {
		t.Errorf("trace --dump: %v\n%s", err, dump)
	}
	var warned, explained, recorded []string
	add := func(to *[]string, what string) {
		if !slices.Contains(*to, what) {
			*to = append(*to, what)
		}
	}
	for _, m := range saidNumber.FindAllStringSubmatch(plain.Output(), -1) {
		switch {
		case m[1] == "":
			add(&explained, m[2])
		case warned == nil: // what follows from the first mistake may vary
			add(&warned, m[2])
		}
	}
	for _, m := range recordedFailure.FindAllStringSubmatch(dump, -1) {
		what := m[2]
		if m[1] == "WHY" {
			what, _, _ = strings.Cut(what, " ")
		}
		if !strings.HasPrefix(what, "0x08") || slices.Contains(warned, what) {
			add(&recorded, m[1]+" "+what)
		}
	}
	slices.Sort(recorded)
	_, strict := underTool(t, n, binary, strings.Contains(row, forEver), "", "--strict")
	if strict == end && end == forEver {
		strict = asWithout
	}
	cell := func(list []string) string {
		if len(list) == 0 {
			return "nothing"
		}
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s |", name, cell(warned), cell(explained), cell(recorded), strict)
}

func mistake(t *testing.T, n *lab.Node, dir, name, what, by, number, says string) {
	source, binary := filepath.Join("../../test/mistakes", name+".c"), filepath.Join(dir, name)
	if text, err := os.ReadFile(source); err != nil ||
		!strings.HasPrefix(string(text), fmt.Sprintf("/* %s.c - %s. */\n", name, what)) {
		t.Errorf("%s does not begin with its name and %q (%v)", source, what, err)
	}
	programtest.Compile(t, binary, source, "-lrdmacm", "-libverbs")
	option, status := "--explain", 0
	if by == "warn" {
		option, status = "--warn=error", abi.WarnStatus
	}
	p, err := n.Start(n.Program("urdma"), "exec", "--socket", n.Socket(), option, "--", binary, n.Address)
	if err != nil {
		t.Fatal(err)
	}
	err = p.Wait(lab.Patience)
	if want := fmt.Sprintf("exit status %d", status); status == 0 && err != nil || status != 0 &&
		(err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s ended with %v, expected status %d", name, err, status)
	}
	first := regexp.MustCompile(`0x[0-9a-f]{4}, `).FindString(p.Output())
	if first != number+", " || !strings.Contains(p.Output(), says) {
		t.Errorf("expected %s and %q of %s, got:\n%s", number, says, name, p.Output())
	}
	if by == "warn" && !strings.Contains(p.Output(), binary+"+0x") {
		t.Errorf("the place in %s is not named:\n%s", name, p.Output())
	}
}

// shown checks urdmad's list of the last warned programs: it keeps a limited number per user.
func shown(t *testing.T, n *lab.Node, rows [][]string) {
	out, err := n.Urdma("show", "warning", "--socket", n.Socket(), "--json")
	var list []struct{ Number, Command, What, Text string }
	if err != nil || json.Unmarshal([]byte(out), &list) != nil {
		t.Fatalf("show warning: %v\n%s", err, out)
	}
	last := rows[slices.IndexFunc(rows, func(r []string) bool { return r[3] != "warn" })-1]
	if len(list) == 0 || list[len(list)-1].Number != last[4] || list[len(list)-1].Command != last[1] ||
		!strings.Contains(n.Daemon.Output(), "a program makes a mistake") {
		t.Errorf("the last warning is not %s of %s:\n%s", last[4], last[1], out)
	}
}

// TestNoMistakes: other authors' programs get no warning.
func TestNoMistakes(t *testing.T) {
	whole(t)
	l := labtest.New(t)
	n, _ := labtest.JoinIn(t, l, lab.Loopback, nil)
	warned := []string{"env", "URDMA_WARN=error"}
	port := 7300
	for _, c := range []struct {
		server []string
		client []string // nil: the server's
	}{
		{server: []string{"rping", "-s", "-C", "50", "-V"},
			client: []string{"rping", "-c", "-a", n.Address, "-C", "50", "-V"}},
		{server: []string{"ucmatose", "-c", "4", "-C", "20"},
			client: []string{"ucmatose", "-c", "4", "-C", "20", "-s", n.Address}},
		{server: []string{"rdma_server"}, client: []string{"rdma_client", "-s", n.Address}},
		{server: []string{"rdma_xserver", "-c", "x"}, client: []string{"rdma_xclient", "-c", "x", "-s", n.Address}},
		{server: []string{"udaddy", "-c", "2", "-C", "20"},
			client: []string{"udaddy", "-c", "2", "-C", "20", "-s", n.Address}},
		{server: []string{"rstream", "-S", "1000", "-C", "20"},
			client: []string{"rstream", "-S", "1000", "-C", "20", "-s", n.Address}},
	} {
		need(t, "rping")
		t.Run(c.server[0], func(t *testing.T) {
			pass(t, lab.Pair{ServerNode: n, ClientNode: n, Server: slices.Concat(warned, c.server),
				Client: slices.Concat(warned, c.client)})
		})
	}
	for _, program := range append(lab.Perftest, "ib_atomic_bw") {
		for _, args := range [][]string{nil, {"-e"}} {
			if args != nil && program != "ib_send_lat" {
				continue // docs/debugging.md has the reason
			}
			t.Run(program+strings.Join(args, ""), func(t *testing.T) {
				need(t, program)
				p := lab.PerftestPair(n, n, program, append([]string{"-n", "300"}, args...)...)
				p.Server, p.Client = slices.Concat(warned, p.Server), slices.Concat(warned, p.Client)
				pass(t, p)
			})
		}
	}
	for _, args := range [][]string{{"ibv_rc_pingpong"}, {"ibv_rc_pingpong", "-e"}, {"ibv_uc_pingpong"},
		{"ibv_ud_pingpong", "-s", "900"}} {
		t.Run(strings.Join(args, ""), func(t *testing.T) {
			need(t, args[0])
			port++
			server := slices.Concat(warned, []string{"URDMA_TRANSPORT=roce"}, args,
				[]string{"-g", "0", "-n", "300", "-p", fmt.Sprint(port)})
			pass(t, lab.Pair{ServerNode: n, ClientNode: n, TCPPort: port, Server: server,
				Client: append(slices.Clone(server), "127.0.0.1")})
		})
	}
}

// TestRight: the correct forms of some programs of test/mistakes get no warning.
func TestRight(t *testing.T) {
	if p, err := warned(t, "right"); err != nil {
		t.Errorf("%v\n%s", err, p.Output())
	}
}

// TestWarnedAsleep: a program that waits for a completion without polling gets the warning while it waits.
func TestWarnedAsleep(t *testing.T) {
	whole(t)
	if p, err := warned(t, "asleep"); err == nil || !strings.Contains(p.Output(), ": 0x081d, a send waits") {
		t.Errorf("%v\n%s", err, p.Output())
	}
}

// warned runs a program of testdata until it ends or gets a warning.
func warned(t *testing.T, name string) (*lab.Process, error) {
	t.Helper()
	need(t, "gcc")
	n, _ := labtest.JoinIn(t, labtest.New(t), lab.Loopback, nil)
	binary := programtest.Compile(t, filepath.Join(n.Directory(), name), "testdata/"+name+".c", "-libverbs")
	p, err := n.Start(n.Program("urdma"), "exec", "--socket", n.Socket(), "--warn=error", "--", binary)
	if err != nil {
		t.Fatal(err)
	}
	return p, p.Wait(lab.Patience)
}

// TestFallbackReason: urdma show mr says why a region is on the fallback path.
func TestFallbackReason(t *testing.T) {
	whole(t)
	need(t, "ibv_rc_pingpong")
	n, _ := labtest.JoinIn(t, labtest.New(t), lab.Loopback, nil)
	for value, want := range map[string]string{"0": "fallback  memory that isn't shared with urdmad ", "": "shared  - "} {
		// waits for its client
		p, err := n.Start("env", "URDMA_SHARE_MALLOC="+value, n.Program("urdma"), "exec", "--socket", n.Socket(), "--",
			"ibv_rc_pingpong")
		if err != nil {
			t.Fatal(err)
		}
		var out string
		for deadline := time.Now().Add(lab.Patience); !strings.Contains(out, want) &&
			time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			out, _ = n.Urdma("show", "mr", "--socket", n.Socket())
		}
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
		p.Kill()
	}
}
