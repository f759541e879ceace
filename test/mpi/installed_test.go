package mpi

import (
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

// components are the components of the installed Open MPI, such as "btl:openib"; none without Open MPI. Open MPI 5,
// of Debian 13, has neither openib nor pt2pt.
var components = sync.OnceValue(func() map[string]bool {
	found := map[string]bool{}
	out, _ := exec.Command("ompi_info", "--parsable").Output()
	for line := range strings.Lines(string(out)) {
		if f := strings.Split(line, ":"); f[0] == "mca" && len(f) > 2 {
			found[f[1]+":"+f[2]] = true
		}
	}
	return found
})

// missing returns the first component that a way names and that is not installed; "" if there is none.
func (w *way) missing() string {
	for pair := range slices.Chunk(w.parameters, 2) {
		if !slices.Contains([]string{"pml", "btl", "mtl", "osc"}, pair[0]) {
			continue
		}
		for name := range strings.SplitSeq(pair[1], ",") {
			if !components()[pair[0]+":"+name] {
				return pair[0] + " " + name
			}
		}
	}
	return ""
}

// orLibfabric returns the way, or libfabric if this Open MPI lacks a component.
func (w way) orLibfabric() way {
	if w.missing() == "" {
		return w
	}
	return libfabric()
}

// libfabric lets Open MPI choose a component for one-sided operations if it lacks pt2pt.
func libfabric() way {
	parameters := []string{"pml", "cm", "mtl", "ofi", "mtl_ofi_provider_include", "verbs;ofi_rxm", "btl", "self"}
	if components()["osc:pt2pt"] {
		parameters = append(parameters, "osc", "pt2pt")
	}
	return way{"libfabric", parameters, nil}
}

// installed skips a test of a way that this Open MPI lacks.
func installed(t *testing.T, w way) {
	t.Helper()
	if missing := w.missing(); missing != "" {
		t.Skipf("SKIPPED: this Open MPI has no %s", missing)
	}
}

// needOpenib skips a test of openib itself.
func needOpenib(t *testing.T) {
	t.Helper()
	installed(t, way{"openib", openib, nil})
}
