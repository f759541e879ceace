package private

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestDirectoryElsewhere: if /tmp cannot be written, as in a read-only container, the next place is used.
func TestDirectoryElsewhere(t *testing.T) {
	const absent = "/proc/urdma"
	place := t.TempDir()
	d, err := directoryIn([]string{absent, place})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Remove(); err != nil {
			t.Error(err)
		}
	}()
	if filepath.Dir(d.Path) != place {
		t.Errorf("the directory is %s, expected one in %s", d.Path, place)
	}
	if _, err := directoryIn([]string{absent}); err == nil || !strings.Contains(err.Error(), absent) ||
		!strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("got %v, expected %s and TMPDIR in it", err, absent)
	}
}
