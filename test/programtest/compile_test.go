package programtest

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestKeptWhole: a program that several tests keep at the same time is whole whenever it can be read.
func TestKeptWhole(t *testing.T) {
	dir := t.TempDir()
	program, kept := filepath.Join(dir, "program"), filepath.Join(dir, "compiled", "kept")
	want := bytes.Repeat([]byte("whole "), 1<<20)
	if err := os.WriteFile(program, want, 0o755); err != nil {
		t.Fatal(err)
	}
	var tests sync.WaitGroup
	for range 4 {
		tests.Go(func() {
			for range 20 {
				keep(t, program, kept)
				if got, err := os.ReadFile(kept); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
				}
			}
		})
	}
	tests.Wait()
}
