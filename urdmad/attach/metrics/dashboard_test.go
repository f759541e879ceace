package metrics

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestDashboard: docs/grafana uses only metrics and labels that urdmad serves.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../../docs/grafana/urdmad.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	known := map[string]family{}
	for _, f := range families() {
		known[f.name] = f
	}
	metric := regexp.MustCompile(`(urdma_\w+)\{([^}]*)\}`)
	label := regexp.MustCompile(`(\w+)=~?"`)
	legend := regexp.MustCompile(`\{\{(\w+)\}\}`)
	seen := 0
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			var wanted []string
			for _, m := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
				wanted = append(wanted, m[1])
			}
			for _, m := range metric.FindAllStringSubmatch(target.Expr, -1) {
				seen++
				f, ok := known[m[1]]
				if !ok {
					t.Errorf("panel %q asks for %s", p.Title, m[1])
				}
				for _, l := range label.FindAllStringSubmatch(m[2], -1) {
					wanted = append(wanted, l[1])
				}
				for _, l := range wanted {
					if l != "job" && l != "instance" && !slices.Contains(f.labels, l) {
						t.Errorf("panel %q: %s has no label %s", p.Title, m[1], l)
					}
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d metrics are shown", seen)
	}
}
