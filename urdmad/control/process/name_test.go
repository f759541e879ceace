package process

import "testing"

// TestClientName: the log quotes what needs it, so a name is not quoted before.
func TestClientName(t *testing.T) {
	for in, want := range map[string]string{"ibv_devices\x00junk": "ibv_devices[7]", "a\x1b[31m\n": "a?[31m?[7]",
		"": "[7]"} {
		if got := Name([]byte(in), 7); got != want {
			t.Errorf("%q gives %q, expected %q", in, got, want)
		}
	}
}
