package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
)

// TestCDI: the specification has CDI's fields, with the given names.
func TestCDI(t *testing.T) {
	r := run(t, nil, "cdi", "--lib", "/usr/lib/urdma/liburdma.so", "--socket", "/run/x/urdmad.sock", "--name", "my-own")
	if r.status.ExitStatus() != 0 {
		t.Fatalf("%+v", r)
	}
	var spec struct {
		CDIVersion, Kind string
		Devices          []struct {
			Name           string
			ContainerEdits struct {
				Env    []string
				Mounts []struct {
					HostPath, ContainerPath string
					Options                 []string
				}
			}
		}
	}
	d := json.NewDecoder(bytes.NewReader([]byte(r.stdout)))
	d.DisallowUnknownFields()
	if err := d.Decode(&spec); err != nil {
		t.Fatal(err)
	}
	if spec.CDIVersion != "0.3.0" || spec.Kind != "urdma.dev/urdmad" || len(spec.Devices) != 1 ||
		spec.Devices[0].Name != "my-own" {
		t.Fatalf("%+v", spec)
	}
	e := spec.Devices[0].ContainerEdits
	if want := []string{"LD_PRELOAD=/usr/lib/urdma/liburdma.so", "LD_LIBRARY_PATH=/usr/lib/urdma/liburdma.d",
		"URDMA_SOCKET=/run/x/urdmad.sock"}; !slices.Equal(e.Env, want) {
		t.Errorf("env %q, expected %q", e.Env, want)
	}
	// no path hides a file of the image
	for i, path := range []string{"/usr/lib/urdma/liburdma.so", "/usr/lib/urdma/liburdma.d", "/run/x"} {
		if len(e.Mounts) != 3 || e.Mounts[i].HostPath != path || e.Mounts[i].ContainerPath != path ||
			!slices.Contains(e.Mounts[i].Options, "ro") {
			t.Errorf("mounts %+v", e.Mounts)
		}
	}
	for _, name := range []string{"", "-x", "a b", "a="} {
		if r := run(t, nil, "cdi", "--lib", "/l.so", "--name", name); r.status.ExitStatus() != exitUsage || r.stdout != "" {
			t.Errorf("--name %q: %+v", name, r)
		}
	}
}
