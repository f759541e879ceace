package capture

import (
	"os"
	"path/filepath"
	"testing"

	"urdma/inspect"
)

// TestFileIsItsOwners: only their owner can read captured packets, even in a file that existed before.
func TestFileIsItsOwners(t *testing.T) {
	for _, before := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "x.pcapng")
		if before {
			if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		f, err := Open(path, Section{Ports: []inspect.Port{{Name: "urdma0"}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(0); err != nil {
			t.Fatal(err)
		}
		if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("there before: %v: mode %v, error %v", before, fi.Mode(), err)
		}
	}
}
