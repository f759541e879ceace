package verbs_test

import (
	"errors"
	"syscall"
	"testing"

	"urdma/verbs"
)

// TestProfile: a Go program names devices as the profile in its environment does.
func TestProfile(t *testing.T) {
	d := startDaemon(t)
	t.Setenv("URDMA_PROFILE", "cx6")
	if got := d.open().Devices()[0].Name; got != "mlx5_0" {
		t.Errorf("the device is %q", got)
	}
	t.Setenv("URDMA_PROFILE", "cx")
	if _, err := verbs.Open(d.Socket); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("an unknown profile: %v", err)
	}
}
