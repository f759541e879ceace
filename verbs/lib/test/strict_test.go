package test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"urdma/inject"
	"urdma/test/programtest"
)

// TestStrict: for each behaviour there is a wrong program that works without it and fails with it or with all
// of them, and a right one that always works.
func TestStrict(t *testing.T) {
	r := startWhole(t)
	binary := programtest.Compile(t, filepath.Join(t.TempDir(), "strict"), "testdata/strict/main.c", "-libverbs")
	run := func(strict, name, which, seconds string) string {
		return strings.TrimSpace(r.run(t, []string{"URDMA_STRICT=" + strict}, binary, name, which, seconds))
	}
	for i := range inject.Behaviours {
		name := inject.Behaviours[i].Name
		if said := run("", name, "wrong", "60"); said != "done" {
			t.Errorf("%s: without strict the wrong program says %q", name, said)
		}
		if said := run(name+",seed:3", name, "wrong", "1"); !strings.HasPrefix(said, "broken") {
			t.Errorf("%s: the wrong program says %q", name, said)
		}
		for _, strict := range []string{name + ",seed:3", "all,seed:3"} {
			if said := run(strict, name, "right", "60"); said != "done" {
				t.Errorf("%s: the right program says %q with %s", name, said, strict)
			}
		}
	}
}

// TestWrongStrict: a program with an unknown behaviour does not run as if there were none.
func TestWrongStrict(t *testing.T) {
	r, binary := startWhole(t), faultsProgram(t)
	c := exec.Command(binary, "calls")
	c.Env = append(c.Environ(), "LD_PRELOAD="+preload(t), "URDMA_SOCKET="+r.Socket, "URDMA_STRICT=everthing")
	if out, err := c.CombinedOutput(); err == nil ||
		!strings.Contains(string(out), `urdmad refuses to inject "strict everthing"`) ||
		strings.Contains(string(out), "URDMA_INJECT") {
		t.Errorf("%v, %q", err, out)
	}
}
