package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestObjects runs a program on a real urdmad that uses objects and attributes in
// all their ways, over queue pairs connected by number; each case alone, and on one
// urdmad, so that what a case leaves behind shows in the next.
func TestObjects(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "objects")
	sources, _ := filepath.Glob("testdata/objects/*.c")
	args := append([]string{"-std=gnu11", "-D_GNU_SOURCE", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-o", binary}, sources...)
	if out, err := exec.Command("gcc", append(args, "-libverbs", "-lpthread")...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	names, err := exec.Command(binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	r := startReal(t)
	for _, name := range strings.Fields(string(names)) {
		if name != "limits" {
			t.Run(name, func(t *testing.T) { r.run(t, nil, binary, name) })
		}
	}
	t.Run("limits", func(t *testing.T) { // with less memory than this machine has
		config := filepath.Join(t.TempDir(), "urdma.json")
		if err := os.WriteFile(config, []byte(`{"ports": [{"vdev": "loopback", "ipv4_address": "198.18.0.1/24"}], "limits": {"registered_bytes": 1073741824}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		startReal(t, "--config", config).run(t, nil, binary, "limits")
	})
	for _, name := range []string{"modify", "datagram_header"} {
		t.Run(name+"/roce", func(t *testing.T) { r.run(t, []string{"URDMA_TRANSPORT=roce"}, binary, name) })
	}
}
