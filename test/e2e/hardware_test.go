package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/test/programtest"
)

// TestErrorsAsOnHardware: requests that fail get the answers of docs/VERBS.md's table, on each kind of adapter.
func TestErrorsAsOnHardware(t *testing.T) {
	need(t, "gcc")
	page, err := os.ReadFile("../../docs/VERBS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), hardwareTable)
	if !ok {
		t.Fatalf("docs/VERBS.md has no table %q", hardwareTable)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	want := map[string][]string{}
	for row := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(strings.TrimPrefix(row, "| "), " | ")
		if len(cells) != 5 {
			t.Fatalf("%q has %d cells", row, len(cells))
		}
		for i, transport := range []string{"ib", "roce", "iwarp"} {
			if answer := strings.Trim(cells[1+i], " `"); answer != "" {
				want[transport] = append(want[transport], cells[0]+": "+answer)
			}
		}
	}
	for _, w := range []lab.Wire{lab.Memif, lab.RoCEFrames} {
		t.Run(w.Name, func(t *testing.T) {
			a, _ := labtest.Join(t, w, nil)
			absent := a.Address[:strings.LastIndex(a.Address, ".")] + ".77" // on the port's link
			binary := programtest.Compile(t, filepath.Join(a.Directory(), "hardware"), "testdata/hardware.c", "-lrdmacm",
				"-libverbs")
			for transport, lines := range want {
				out, err := a.Urdma("exec", "--transport", transport, "--", binary, a.Address, absent, "192.0.2.1")
				if got, want := strings.TrimSpace(out), strings.Join(lines, "\n"); err != nil || got != want {
					t.Errorf("as %s, %v, the program says\n%s\nthe table\n%s", transport, err, got, want)
				}
			}
		})
	}
}

const hardwareTable = "| a request that fails | `ib` | `roce` | `iwarp` | the kernel's drivers |\n|---|---|---|---|---|\n"
