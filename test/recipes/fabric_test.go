package recipes

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestFabric executes the blocks of docs/fabric.md, after the packages of its first block are installed.
func TestFabric(t *testing.T) {
	dir := top(t)
	need(t, []string{"ibnetdiscover", "ibtracert", "smpquery"})
	page, err := os.ReadFile("../../docs/fabric.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, m := range block.FindAllStringSubmatch(string(page), -1) {
		if !strings.HasPrefix(m[1], "make build") && !strings.HasPrefix(m[1], "From ca") &&
			!strings.HasPrefix(m[1], "Switch ") {
			commands = append(commands, m[1])
		}
	}
	if len(commands) != 6 {
		t.Fatalf("the page has %d blocks of commands, expected 6", len(commands))
	}
	text := strings.NewReplacer("/tmp/fabric", t.TempDir(), "sleep 1\n",
		"until build/urdma status; do sleep 0.1; done >/dev/null 2>&1\n").Replace(strings.Join(commands, ""))
	// The tools have short time-outs, and the machine may be busy.
	text = regexp.MustCompile(`exec -- (ibswitches|ibhosts|sminfo|ibnetdiscover|ibtracert|ibroute|smpquery|ibportstate|perfquery|ibqueryerrors)`).ReplaceAllString(text, "exec -- $1 -t 50000")
	out := typed(t, dir, nil, text+"kill %1 %2\n")
	for _, want := range []string{": correct\n", `Base lid: 257`, `"switch4"`, "SMINFO_MASTER", "\n34\n", `0x0202 036 `,
		`Node Description:\.+switch2`,
		`lid 1-1 "switch1"\n\[36\] -> switch port \{0x02c220eb40f77900\}\[36\] lid 2-2 "switch2"\n\[9\] -> ca port .* lid 514-514`,
		`PhysLinkState:\.+Disabled`, `"switch1"\n.*"switch[34]"\n.*"switch2"`, `LinkDownedCounter:\.+1`,
		`SymbolErrorCounter == 50`,
		`Number of ports: 2`, `lid 1026-1026 ".* hca0"\nTo ca .* portnum 2 lid 1026-1026`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the lesson doesn't print %q:\n%s", want, out)
		}
	}
}
