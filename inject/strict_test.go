package inject

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"urdma/verbs/abi"
)

func TestParseStrict(t *testing.T) {
	all := everything()
	for text, want := range map[string]Rule{
		"strict":                   {Seed: 1, Strict: &Strict{Behaviours: all}},
		"strict all":               {Seed: 1, Strict: &Strict{Behaviours: all}},
		"strict seed:7":            {Seed: 7, Strict: &Strict{Behaviours: all}},
		"strict -garbage,seed=7":   {Seed: 7, Strict: &Strict{Behaviours: all &^ abi.StrictGarbage}},
		"strict srq-order,garbage": {Seed: 1, Strict: &Strict{Behaviours: abi.StrictSRQOrder | abi.StrictGarbage}},
		"strict max_sge:3, max_cqe:9": {Seed: 1,
			Strict: &Strict{limits: [len(limits)]uint32{0: 3, 4: 9}, lowered: 1<<0 | 1<<4}},
		"strict all,-slots,max_sge_rd=0": {Seed: 1, Strict: &Strict{Behaviours: all &^ abi.StrictSlots, lowered: 1 << 1}},
	} {
		got, err := Parse(text)
		if err != nil || len(got) != 1 || got[0].Verb != Apply || got[0].Rule.Point != Strictly ||
			got[0].Rule.Seed != want.Seed || *got[0].Rule.Strict != *want.Strict {
			t.Errorf("%q: %+v, %v, expected %+v", text, got, err, want.Strict)
		}
	}
	for text, want := range map[string]string{
		"strict everything": "garbage", "strict max_sge:x": "a number", "strict max_sge": "max_sge:N",
		"strict seed:x":    "a number",
		"strict garbage:3": "expected a behaviour", "strict -nothing": "garbage",
	} {
		if got, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, error %v, expected one with %q", text, got, err, want)
		}
	}
}

func TestLower(t *testing.T) {
	got, err := Parse("strict max_sge:3,max_cqe:100")
	if err != nil {
		t.Fatal(err)
	}
	d := abi.Device{MaxSGE: 32, MaxCQE: 64, MaxQPWR: 16}
	if got[0].Rule.Strict.Lower(&d); d.MaxSGE != 3 || d.MaxCQE != 64 || d.MaxQPWR != 16 {
		t.Errorf("%+v", d)
	}
}

var update = flag.Bool("update", false, "write the table of docs/debugging.md")

// TestBehavioursInDocs: the tables of behaviours and limits in docs/debugging.md match this package.
func TestBehavioursInDocs(t *testing.T) {
	const file = "../docs/debugging.md"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const head = "| behaviour | what happens | what allows it |\n|---|---|---|\n"
	before, rest, _ := strings.Cut(string(b), head)
	table, after, ok := strings.Cut(rest, "\n\n")
	if !ok {
		t.Fatalf("%s has no table %q", file, head)
	}
	var rows []string
	for i := range Behaviours {
		v := &Behaviours[i]
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |", v.Name, v.Does, v.Allowed))
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+head+strings.Join(rows, "\n")+"\n\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !slices.Equal(rows, strings.Split(table, "\n")) {
		t.Errorf("%s has\n%s\nexpected (go test ./inject -run InDocs -update)\n%s", file, table, strings.Join(rows, "\n"))
	}
	for _, name := range Limits() {
		if !strings.Contains(after, "`"+name+"`") {
			t.Errorf("%s does not name the limit %s", file, name)
		}
	}
}
